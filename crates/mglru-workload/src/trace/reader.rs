//! A trace as a stream of requests: blocks of a few thousand, whatever the length of the trace.

use std::path::Path;

use super::compact::CompactReader;
use super::container;
use super::csv::{Columns, LCS_HEADER};
use super::cursor::Cursor;
use super::error::TraceError;
use super::format::{BYTE_ORDER_MARK, Format, Guess, packed_suffix};
use super::input::Input;
use super::line_ends::{first_line, is_silent};
use super::lines::{self, Line};
use super::raw::Bytes;
use super::record::{Request, Run, View};
use super::source;
use super::unpack::Codec;

/// Requests of a block, about: a block and the pages it names stay in the second-level cache.
const BLOCK_REQUESTS: usize = 8192;
const U32_BYTES: usize = 4;
const ORACLE_BYTES: usize = 24;
/// Place of the object's id in a record of `oracle-general`.
const ORACLE_ID: std::ops::Range<usize> = 4..12;

/// Reads a trace.
pub struct TraceReader {
    input: Input,
    format: Format,
    /// Where nobody named the format.
    guess: Option<Guess>,
    view: View,
    line: u64,
    columns: Option<Columns>,
    compact: Option<CompactReader>,
    rest: Option<Run>,
}

impl TraceReader {
    /// Opens a trace. Without a `format`, the name's suffix or the content decides it. A pipe can
    /// be opened so once; [`TraceFile`](super::TraceFile) reads it more often.
    ///
    /// # Errors
    /// The file cannot be opened or decompressed, is of another kind, its format is unknown or its
    /// header is bad.
    pub fn open(path: &Path, format: Option<Format>, view: View) -> Result<Self, TraceError> {
        Self::new(path, Box::new(source::open(path)?), format, view)
    }

    /// Reads a trace from `source`, which `path` named.
    pub(super) fn new(
        path: &Path,
        source: Bytes,
        format: Option<Format>,
        view: View,
    ) -> Result<Self, TraceError> {
        let input = Input::new(path, source)?;
        if input.data().is_empty() {
            return Err(TraceError::empty(path));
        }
        let unknown =
            || TraceError::UnknownFormat { path: path.to_path_buf(), known: Format::known() };
        let guess = match format {
            Some(_) => None,
            None => Some(Format::detect(path, input.data()).ok_or_else(unknown)?),
        };
        let format = format.or(guess.map(|guess| guess.format)).ok_or_else(unknown)?;
        let mut reader = TraceReader {
            input,
            format,
            guess,
            view,
            line: 0,
            columns: None,
            compact: None,
            rest: None,
        };
        reader.begin().map_err(|error| reader.explained(error))?;
        Ok(reader)
    }

    /// Reads what stands before the records.
    fn begin(&mut self) -> Result<(), TraceError> {
        if self.format.is_binary() {
            self.check_binary()?;
            if self.format == Format::Compact {
                self.compact = Some(CompactReader::begin(&mut self.input)?);
            }
            return Ok(());
        }
        if self.input.data().starts_with(&BYTE_ORDER_MARK) {
            self.input.consume(BYTE_ORDER_MARK.len());
        }
        match self.format {
            Format::Csv | Format::LcsCsv => self.read_header(),
            _ => Ok(()),
        }
    }

    /// Refuses what would be read as numbers for want of a mark: text, and a file whose name says
    /// that it is compressed when it is not.
    fn check_binary(&self) -> Result<(), TraceError> {
        let path = self.input.path().to_path_buf();
        let data = self.input.data();
        if container::is_text(&data[..data.len().min(container::HEAD_BYTES)]) {
            return Err(TraceError::NotBinary { path, format: self.format });
        }
        match packed_suffix(self.input.path()) {
            Some(suffix) if !self.input.is_packed() => {
                let (suffix, known) = (suffix.to_string(), Codec::ALL.map(Codec::name).join(", "));
                Err(TraceError::NotPacked { path, suffix, known })
            }
            _ => Ok(()),
        }
    }

    /// Adds the format to an error of its form, if it was guessed.
    fn explained(&self, error: TraceError) -> TraceError {
        let is_of_form = matches!(
            error,
            TraceError::Line { .. }
                | TraceError::Partial { .. }
                | TraceError::NotBinary { .. }
                | TraceError::Empty { .. }
        );
        match self.guess {
            Some(guess) if is_of_form => TraceError::Guessed { error: Box::new(error), guess },
            _ => error,
        }
    }

    /// Words the error of a trace that turned out to hold no request.
    pub fn no_requests(&self) -> TraceError {
        self.explained(TraceError::empty(self.input.path()))
    }

    /// Returns the trace's format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the path of the trace's file.
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Replaces `block` by the next requests; false (and an empty block) at the end.
    ///
    /// # Errors
    /// The trace is truncated or corrupt; nothing after the error is to be trusted.
    pub fn read_block(&mut self, block: &mut Vec<Request>) -> Result<bool, TraceError> {
        self.fill(block).map_err(|error| self.explained(error))
    }

    fn fill(&mut self, block: &mut Vec<Request>) -> Result<bool, TraceError> {
        block.clear();
        self.expand_rest(block);
        while block.len() < BLOCK_REQUESTS {
            let more = match self.format {
                Format::Lirs => self.read_lines(block, lines::lirs)?,
                Format::Plain => self.read_lines(block, lines::plain)?,
                Format::UcsdAddress => self.read_lines(block, lines::ucsd)?,
                Format::ArcLis => {
                    let view = self.view;
                    self.read_lines(block, |line| lines::arc(line, view))?
                }
                Format::Csv | Format::LcsCsv => self.read_values(block)?,
                Format::U32le => self.read_records::<U32_BYTES>(block, u32_id)?,
                Format::OracleGeneral => self.read_records::<ORACLE_BYTES>(block, oracle_id)?,
                Format::Compact => {
                    let compact = self.compact.as_mut().expect("its head was read");
                    compact.fill(&mut self.input, block, BLOCK_REQUESTS)?
                }
            };
            if !more {
                break;
            }
        }
        Ok(!block.is_empty())
    }

    /// Finds the columns in the first line that says something.
    fn read_header(&mut self) -> Result<(), TraceError> {
        while self.columns.is_none() {
            let whole = self.next_lines()?;
            let mut text = &self.input.data()[..whole];
            if text.is_empty() {
                return Err(TraceError::empty(self.input.path()));
            }
            while !text.is_empty() && self.columns.is_none() {
                let (line, rest) = first_line(text);
                self.line += 1;
                if !is_silent(line) {
                    let columns = columns(self.format, line);
                    let wrong = |e| TraceError::line(self.input.path(), self.line, e, line);
                    self.columns = Some(columns.map_err(wrong)?);
                }
                text = rest;
            }
            let consumed = whole - text.len();
            self.input.consume(consumed);
        }
        Ok(())
    }

    /// Bytes of whole lines at hand, zero at the end of the trace.
    fn next_lines(&mut self) -> Result<usize, TraceError> {
        let whole = self.input.whole_lines()?;
        let data = self.input.data();
        if whole == 0 && !data.is_empty() {
            let expected = format!("a line of at most {} bytes", data.len());
            return Err(TraceError::line(self.input.path(), self.line + 1, expected, data));
        }
        Ok(whole)
    }

    fn read_lines(
        &mut self,
        block: &mut Vec<Request>,
        mut read: impl FnMut(&mut Cursor) -> Line,
    ) -> Result<bool, TraceError> {
        let whole = self.next_lines()?;
        let text = &self.input.data()[..whole];
        let mut cursor = Cursor::new(text);
        while !cursor.is_empty() && block.len() < BLOCK_REQUESTS {
            let start = cursor.position();
            self.line += 1;
            match read(&mut cursor) {
                Ok(Some(run)) => self.rest = expand(run, block),
                Ok(None) => {}
                Err(expected) => {
                    let found = &text[start..];
                    return Err(TraceError::line(self.input.path(), self.line, expected, found));
                }
            }
        }
        let consumed = cursor.position();
        self.input.consume(consumed);
        Ok(whole > 0)
    }

    fn read_values(&mut self, block: &mut Vec<Request>) -> Result<bool, TraceError> {
        let whole = self.next_lines()?;
        let columns = self.columns.as_ref().expect("the header was read when the trace was opened");
        let mut text = &self.input.data()[..whole];
        while !text.is_empty() && block.len() < BLOCK_REQUESTS {
            let (line, rest) = first_line(text);
            self.line += 1;
            match columns.read(line, self.view) {
                Ok(Some(run)) => self.rest = expand(run, block),
                Ok(None) => {}
                Err(expected) => {
                    return Err(TraceError::line(self.input.path(), self.line, expected, text));
                }
            }
            text = rest;
        }
        let consumed = whole - text.len();
        self.input.consume(consumed);
        Ok(whole > 0)
    }

    fn read_records<const BYTES: usize>(
        &mut self,
        block: &mut Vec<Request>,
        id: impl Fn(&[u8; BYTES]) -> u64,
    ) -> Result<bool, TraceError> {
        if self.input.data().len() < BYTES {
            self.input.refill()?;
        }
        let data = self.input.data();
        if !data.is_empty() && data.len() < BYTES {
            return Err(TraceError::Partial {
                path: self.input.path().to_path_buf(),
                offset: self.input.offset(),
                have: data.len(),
                need: BYTES,
            });
        }
        let nr = (data.len() / BYTES).min(BLOCK_REQUESTS - block.len());
        let records = data[..nr * BYTES].chunks_exact(BYTES).filter_map(|r| r.first_chunk());
        block.extend(records.map(|r| Request { page: id(r), write: false }));
        self.input.consume(nr * BYTES);
        Ok(nr > 0)
    }

    fn expand_rest(&mut self, block: &mut Vec<Request>) {
        self.rest = self.rest.take().and_then(|run| expand(run, block));
    }
}

fn columns(format: Format, header: &[u8]) -> Result<Columns, String> {
    let is_lcs = header.trim_ascii().eq_ignore_ascii_case(LCS_HEADER.as_bytes());
    match format {
        Format::LcsCsv if !is_lcs => Err(format!("the header {LCS_HEADER}")),
        _ => Columns::parse(header),
    }
}

fn u32_id(record: &[u8; U32_BYTES]) -> u64 {
    u32::from_le_bytes(*record).into()
}

fn oracle_id(record: &[u8; ORACLE_BYTES]) -> u64 {
    let id = record[ORACLE_ID].try_into().expect("an id has eight bytes");
    u64::from_le_bytes(id)
}

/// Appends a run up to the size of a block and returns what is left of it.
#[inline]
fn expand(run: Run, block: &mut Vec<Request>) -> Option<Run> {
    if run.nr == 1 && block.len() < BLOCK_REQUESTS {
        block.push(Request { page: run.first, write: run.write });
        return None;
    }
    let room = (BLOCK_REQUESTS - block.len()) as u64;
    let nr = run.nr.min(room);
    let write = run.write;
    // The last page may be 2^64 - 1: there is no number behind it.
    block.extend((0..nr).map(|at| Request { page: run.first + at, write }));
    (nr < run.nr).then(|| Run { first: run.first + nr, nr: run.nr - nr, write })
}
