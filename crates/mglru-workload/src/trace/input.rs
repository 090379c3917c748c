//! The bytes of a trace, decompressed on the way in big blocks. The text formats see whole lines
//! only.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::container::{self, Container};
use super::error::TraceError;
use super::line_ends;
use super::raw::Bytes;
use super::unpack::{self, Opened};

/// Bytes held at once; also the longest line.
const BUFFER_BYTES: usize = 256 << 10;
/// How bytes that are not compressed are named.
const PLAIN: &str = "plain";

/// A window onto the decompressed bytes of a trace.
pub(super) struct Input {
    path: PathBuf,
    source: Bytes,
    stream: &'static str,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    eof: bool,
}

impl Input {
    /// Looks at the bytes of a trace and reads its first block.
    pub(super) fn new(path: &Path, source: Bytes) -> Result<Self, TraceError> {
        let foreign = |what| TraceError::Foreign { path: path.to_path_buf(), what };
        let opened = unpack::open(source).map_err(|source| failed(path, source))?;
        let (source, stream): (Bytes, _) = match opened {
            Opened::Plain(raw) => (Box::new(raw), PLAIN),
            Opened::Packed(unpacked) => {
                let name = unpacked.codec().name();
                (Box::new(unpacked), name)
            }
            Opened::Foreign(name) => return Err(foreign(name.into())),
        };
        let mut input = Input {
            path: path.to_path_buf(),
            source,
            stream,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            eof: false,
        };
        input.refill()?;
        match input.inner() {
            Some(name) if input.is_packed() => Err(foreign(format!("{name} inside {stream}"))),
            _ => Ok(input),
        }
    }

    /// True if the trace is decompressed on the way.
    pub(super) fn is_packed(&self) -> bool {
        self.stream != PLAIN
    }

    /// Names the container that the bytes at hand begin with.
    fn inner(&self) -> Option<String> {
        let head = &self.data()[..self.data().len().min(container::HEAD_BYTES)];
        container::recognise(head).map(|found| match found {
            Container::Packed(codec) => format!("{} stream", codec.name()),
            Container::Skippable => "a skippable frame".to_string(),
            Container::Foreign(name) => name.to_string(),
        })
    }

    /// The trace.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes at hand.
    pub(super) fn data(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Position of the first byte at hand in the decompressed trace.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Drops the first `nr` bytes at hand.
    pub(super) fn consume(&mut self, nr: usize) {
        self.start += nr;
        self.offset += nr as u64;
    }

    /// Fills the buffer behind the bytes at hand.
    pub(super) fn refill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < self.buffer.len() && !self.eof {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(nr) => self.end += nr,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
        Ok(())
    }

    /// Moves the next `nr` bytes behind `out`; fewer at the end.
    pub(super) fn take(&mut self, nr: usize, out: &mut Vec<u8>) -> Result<(), TraceError> {
        let wanted = out.len() + nr;
        while out.len() < wanted {
            if self.data().is_empty() {
                self.refill()?;
            }
            let data = self.data();
            let some = data.len().min(wanted - out.len());
            if some == 0 {
                break;
            }
            out.extend_from_slice(&data[..some]);
            self.consume(some);
        }
        Ok(())
    }

    /// Bytes at hand that make up whole lines: up to the last end of a line, all of them at the
    /// end of the trace, none if the first line is longer than the buffer.
    pub(super) fn whole_lines(&mut self) -> Result<usize, TraceError> {
        let whole = line_ends::whole_lines(self.data());
        if whole > 0 {
            return Ok(whole);
        }
        self.refill()?;
        match line_ends::whole_lines(self.data()) {
            0 if self.eof => Ok(self.data().len()),
            whole => Ok(whole),
        }
    }

    fn failure(&self, source: io::Error) -> TraceError {
        let path = self.path.clone();
        let offset = self.offset + self.end as u64;
        match unpack::is_truncated(&source) {
            true => TraceError::Truncated { path, offset, stream: self.stream },
            false => TraceError::Read { path, offset, what: self.stream, source },
        }
    }
}

/// Words the error of a file that cannot be looked at.
fn failed(path: &Path, source: io::Error) -> TraceError {
    let path = path.to_path_buf();
    match unpack::is_truncated(&source) {
        true => TraceError::Truncated { path, offset: 0, stream: "compressed" },
        false => TraceError::Open { path, source },
    }
}
