//! The bytes of a file with a look ahead, which shows what comes next before it is read.

use std::io::{self, BufRead, Read};

/// Where bytes come from.
pub(super) type Bytes = Box<dyn Read + Send>;

/// Bytes held at once; also the farthest look ahead.
const BUFFER_BYTES: usize = 128 << 10;

/// A source of bytes and those of them that were read ahead.
pub(super) struct Raw {
    source: Bytes,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Raw {
    /// Reads nothing yet.
    pub(super) fn new(source: Bytes) -> Self {
        Raw { source, buffer: vec![0; BUFFER_BYTES].into(), start: 0, end: 0 }
    }

    /// Shows the next `nr` bytes and leaves them where they are; fewer at the end.
    pub(super) fn peek(&mut self, nr: usize) -> io::Result<&[u8]> {
        if self.end - self.start < nr {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            while self.end < nr && self.fetch()? > 0 {}
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + nr)])
    }

    /// Drops `nr` bytes; fewer at the end. Says how many there were.
    pub(super) fn skip(&mut self, nr: u64) -> io::Result<u64> {
        io::copy(&mut self.by_ref().take(nr), &mut io::sink())
    }

    /// Reads behind the bytes at hand; zero at the end.
    fn fetch(&mut self) -> io::Result<usize> {
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                found => {
                    let nr = found?;
                    self.end += nr;
                    return Ok(nr);
                }
            }
        }
    }
}

impl BufRead for Raw {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.fetch()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, nr: usize) {
        self.start += nr;
    }
}

impl Read for Raw {
    /// Large reads of an empty buffer go straight to the source: a plain trace is copied once.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end && out.len() >= self.buffer.len() {
            return self.source.read(out);
        }
        let nr = self.fill_buf()?.read(out)?;
        self.consume(nr);
        Ok(nr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time.
    struct Drip(Vec<u8>);

    impl Read for Drip {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let nr = out.len().min(self.0.len()).min(1);
            out[..nr].copy_from_slice(&self.0[..nr]);
            self.0.drain(..nr);
            Ok(nr)
        }
    }

    #[test]
    fn what_was_seen_is_still_read() {
        let mut raw = Raw::new(Box::new(Drip(b"abcdefgh".to_vec())));
        assert_eq!(raw.peek(3).unwrap(), b"abc");
        assert_eq!(raw.skip(2).unwrap(), 2);
        assert_eq!(raw.peek(4).unwrap(), b"cdef");
        let mut rest = String::new();
        raw.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "cdefgh");
        assert_eq!(raw.peek(1).unwrap(), b"");
        assert_eq!(raw.skip(5).unwrap(), 0);
    }
}
