//! The bytes of a trace, decompressed on the way in big blocks. Compression is told by the magic
//! number of the file, never by its name. The text formats see whole lines only.

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

use super::error::TraceError;

/// Bytes held at once; also the longest line.
const BUFFER_BYTES: usize = 256 << 10;
/// Back references of zstd's long mode may span 2 GiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 31;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A file whose first bytes were read to look at its magic number.
type Sniffed = Chain<Cursor<Vec<u8>>, File>;

/// A window onto the decompressed bytes of a trace.
pub(super) struct Input {
    path: PathBuf,
    source: Box<dyn Read + Send>,
    stream: &'static str,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    eof: bool,
}

impl Input {
    /// Opens a trace and reads its first block.
    pub(super) fn open(path: &Path) -> Result<Self, TraceError> {
        let open = |source| TraceError::Open { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(open)?;
        let (source, stream) = decompressed(file).map_err(open)?;
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
        Ok(input)
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

    /// Bytes at hand that make up whole lines: up to the last line feed, all of them at the end
    /// of the trace, none if the first line is longer than the buffer.
    pub(super) fn whole_lines(&mut self) -> Result<usize, TraceError> {
        let whole = last_line_feed(self.data());
        if whole > 0 {
            return Ok(whole);
        }
        self.refill()?;
        match last_line_feed(self.data()) {
            0 if self.eof => Ok(self.data().len()),
            whole => Ok(whole),
        }
    }

    fn failure(&self, source: io::Error) -> TraceError {
        let path = self.path.clone();
        let offset = self.offset + self.end as u64;
        match source.kind() {
            io::ErrorKind::UnexpectedEof => {
                TraceError::Truncated { path, offset, stream: self.stream }
            }
            _ => TraceError::Read { path, offset, what: self.stream, source },
        }
    }
}

fn last_line_feed(data: &[u8]) -> usize {
    memchr::memrchr(b'\n', data).map_or(0, |at| at + 1)
}

fn decompressed(mut file: File) -> io::Result<(Box<dyn Read + Send>, &'static str)> {
    let mut head = Vec::with_capacity(ZSTD_MAGIC.len());
    file.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut head)?;
    let is_zstd = head == ZSTD_MAGIC;
    let is_gzip = head.starts_with(&GZIP_MAGIC);
    let raw: Sniffed = Cursor::new(head).chain(file);
    if is_zstd {
        let mut decoder = zstd::Decoder::new(raw)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        Ok((Box::new(decoder), "zstd"))
    } else if is_gzip {
        Ok((Box::new(flate2::read::MultiGzDecoder::new(raw)), "gzip"))
    } else {
        Ok((Box::new(raw), "plain"))
    }
}
