//! Reads recordings of other programs as events: tables by a description of their columns, of
//! which the published traces are values, and texts with a grammar of their own.

mod blkparse;
mod columns;
mod damon;
mod fields;
mod lackey;
mod perf;
mod sources;
mod table;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::Path;

pub use columns::{BadColumns, Columns, Delimiter, TimeScale};
pub use sources::{Source, UnknownSource};

use super::error::TraceError;
use super::event::{Event, Head};
use super::format::BYTE_ORDER_MARK;
use super::input::Input;
use super::line_ends::{first_line, is_silent};
use super::source;

/// Events that a line stood for, each so many times in a row.
pub(super) type Found = Vec<(Event, u64)>;

/// Reads the lines of one kind of recording.
pub(super) trait Parser: Send {
    /// Says what holds for all events.
    fn head(&self) -> Head;

    /// Reads a line that is neither blank nor a comment; else says what was expected.
    fn line(&mut self, line: &[u8], found: &mut Found) -> Result<(), String>;

    /// Says what a recording without requests holds instead.
    fn passed_over(&self) -> Option<String> {
        None
    }

    /// Takes the names of spaces that appeared since the last call.
    fn names(&mut self) -> Vec<(u32, String)> {
        Vec::new()
    }
}

/// Reads a recording as events.
pub struct Importer {
    input: Input,
    line: u64,
    parser: Box<dyn Parser>,
    found: Found,
    events: u64,
}

impl Importer {
    /// Opens a recording.
    ///
    /// # Errors
    /// The file cannot be opened or decompressed, or is empty.
    pub fn open(path: &Path, source: &Source) -> Result<Self, TraceError> {
        Self::from_reader(path, Box::new(source::open(path)?), source)
    }

    /// Reads a recording while it is made; the path names it in errors.
    ///
    /// # Errors
    /// It cannot be read or decompressed, or is empty.
    pub fn from_reader(
        path: &Path,
        reader: Box<dyn Read + Send>,
        source: &Source,
    ) -> Result<Self, TraceError> {
        let mut input = Input::new(path, reader)?;
        if input.data().is_empty() {
            return Err(TraceError::empty(path));
        }
        if input.data().starts_with(&BYTE_ORDER_MARK) {
            input.consume(BYTE_ORDER_MARK.len());
        }
        let parser = source.parser();
        Ok(Importer { input, line: 0, parser, found: Vec::new(), events: 0 })
    }

    /// Says what holds for all events.
    pub fn head(&self) -> Head {
        self.parser.head()
    }

    /// Takes the names of spaces that appeared since the last call.
    pub fn names(&mut self) -> Vec<(u32, String)> {
        self.parser.names()
    }

    /// Replaces `events` by the next ones, each with how often it happened in a row; false at the
    /// end.
    ///
    /// # Errors
    /// A line has another form, the file is truncated or corrupt, or there was no event at all.
    pub fn read(&mut self, events: &mut Vec<(Event, u64)>) -> Result<bool, TraceError> {
        self.found.clear();
        while self.found.is_empty() {
            if !self.read_lines()? {
                events.clear();
                if self.events > 0 {
                    return Ok(false);
                }
                let (path, hint) = (self.input.path().to_path_buf(), self.parser.passed_over());
                let hint = hint.map_or(String::new(), |hint| format!(": {hint}"));
                return Err(TraceError::Empty { path, hint });
            }
        }
        self.events += self.found.len() as u64;
        std::mem::swap(events, &mut self.found);
        Ok(true)
    }

    /// Reads the lines at hand; false at the end.
    fn read_lines(&mut self) -> Result<bool, TraceError> {
        let whole = self.input.whole_lines()?;
        let mut text = &self.input.data()[..whole];
        if whole == 0 && !self.input.data().is_empty() {
            let data = self.input.data();
            let expected = format!("a line of at most {} bytes", data.len());
            return Err(TraceError::line(self.input.path(), self.line + 1, expected, data));
        }
        while !text.is_empty() {
            let (line, rest) = first_line(text);
            self.line += 1;
            if !is_silent(line) {
                let read = self.parser.line(line, &mut self.found);
                read.map_err(|e| TraceError::line(self.input.path(), self.line, e, line))?;
            }
            text = rest;
        }
        self.input.consume(whole);
        Ok(whole > 0)
    }
}
