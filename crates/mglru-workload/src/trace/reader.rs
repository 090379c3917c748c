//! A trace as a stream of requests: blocks of a few thousand, whatever the length of the trace.

use std::path::Path;

use super::csv::{Columns, LCS_HEADER};
use super::cursor::Cursor;
use super::error::TraceError;
use super::format::Format;
use super::input::Input;
use super::lines::{self, Line};
use super::record::{Request, Run, View};

/// Requests of a block, about: a block and the pages it names stay in the second-level cache.
const BLOCK_REQUESTS: usize = 8192;
const U32_BYTES: usize = 4;
const ORACLE_BYTES: usize = 24;
/// Place of the object's id in a record of `oracle-general`.
const ORACLE_ID: std::ops::Range<usize> = 4..12;

/// A trace that is being read.
pub struct TraceReader {
    input: Input,
    format: Format,
    view: View,
    line: u64,
    columns: Option<Columns>,
    rest: Option<Run>,
}

impl TraceReader {
    /// Opens a trace. Without a `format`, the name's suffix or the content tells it.
    ///
    /// # Errors
    /// The file cannot be opened or decompressed, its format is unknown or its header is bad.
    pub fn open(path: &Path, format: Option<Format>, view: View) -> Result<Self, TraceError> {
        let input = Input::open(path)?;
        if input.data().is_empty() {
            return Err(TraceError::empty(path));
        }
        let unknown =
            || TraceError::UnknownFormat { path: path.to_path_buf(), known: Format::known() };
        let detected = format.or_else(|| Format::detect(path, input.data()));
        let format = detected.ok_or_else(unknown)?;
        let mut reader = TraceReader { input, format, view, line: 0, columns: None, rest: None };
        if matches!(format, Format::Csv | Format::LcsCsv) {
            reader.read_header()?;
        }
        Ok(reader)
    }

    /// The trace's format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The trace's file.
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Replaces `block` by the next requests; false (and an empty block) at the end.
    ///
    /// # Errors
    /// The trace is truncated or corrupt; nothing after the error is to be trusted.
    pub fn read_block(&mut self, block: &mut Vec<Request>) -> Result<bool, TraceError> {
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
            };
            if !more {
                break;
            }
        }
        Ok(!block.is_empty())
    }

    fn read_header(&mut self) -> Result<(), TraceError> {
        let whole = self.next_lines()?;
        let text = &self.input.data()[..whole];
        let header = text.split(|&b| b == b'\n').next().unwrap_or_default();
        let is_lcs = header.trim_ascii().eq_ignore_ascii_case(LCS_HEADER.as_bytes());
        let columns = match self.format {
            Format::LcsCsv if !is_lcs => Err(format!("the header {LCS_HEADER}")),
            _ => Columns::parse(header),
        };
        let columns =
            columns.map_err(|expected| TraceError::line(self.input.path(), 1, expected, header))?;
        let consumed = (header.len() + 1).min(whole);
        self.columns = Some(columns);
        self.input.consume(consumed);
        self.line = 1;
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
            let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
            self.line += 1;
            match columns.read(&text[..end], self.view) {
                Ok(Some(run)) => self.rest = expand(run, block),
                Ok(None) => {}
                Err(expected) => {
                    return Err(TraceError::line(self.input.path(), self.line, expected, text));
                }
            }
            text = &text[(end + 1).min(text.len())..];
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

fn u32_id(record: &[u8; U32_BYTES]) -> u64 {
    u32::from_le_bytes(*record).into()
}

fn oracle_id(record: &[u8; ORACLE_BYTES]) -> u64 {
    let id = record[ORACLE_ID].try_into().expect("an id has eight bytes");
    u64::from_le_bytes(id)
}

/// Appends a run up to the size of a block and returns what is left of it.
fn expand(run: Run, block: &mut Vec<Request>) -> Option<Run> {
    let room = (BLOCK_REQUESTS - block.len()) as u64;
    let nr = run.nr.min(room);
    let write = run.write;
    block.extend((run.first..run.first + nr).map(|page| Request { page, write }));
    (nr < run.nr).then(|| Run { first: run.first + nr, nr: run.nr - nr, write })
}
