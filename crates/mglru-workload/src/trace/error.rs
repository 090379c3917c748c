//! Names the faults of a trace. Every message is one line and names the file, the place and
//! what was expected there, so that the program can print it as it is.

use std::io;
use std::path::{Path, PathBuf};

use super::format::{Format, Guess};
use super::line_ends::first_line;

/// Tells why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Says that the file cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The trace.
        path: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// Says that the file cannot be read, or its compressed stream is damaged.
    #[error("{}: byte {offset} of the trace: {what}: {source}", path.display())]
    Read {
        /// The trace.
        path: PathBuf,
        /// Bytes of trace (after decompression) read before the failure.
        offset: u64,
        /// The thing that was being read.
        what: &'static str,
        /// The error of the system or of the decompressor.
        source: io::Error,
    },
    /// Says that a sample of the pages does not tell what is asked of it.
    #[error("{}: {problem}", path.display())]
    Sample {
        /// Names the trace.
        path: PathBuf,
        /// Says what the sample lacks.
        problem: String,
    },
    /// Says that the file is a device that has no end.
    #[error("{}: a device, not a file or a pipe", path.display())]
    Device {
        /// The device.
        path: PathBuf,
    },
    /// Says that the content of a pipe cannot be kept for a second reading.
    #[error("{}: cannot keep what this pipe holds in {}: {source}", path.display(),
        folder.display())]
    Keep {
        /// The pipe.
        path: PathBuf,
        /// Folder of temporary files.
        folder: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// Says that the file is of another kind, and not a trace.
    #[error("{}: {what}, which is not read: unpack or convert it first", path.display())]
    Foreign {
        /// The trace.
        path: PathBuf,
        /// Its kind.
        what: String,
    },
    /// Says that text stands where binary records should be.
    #[error("{}: text, where {format} has binary records", path.display())]
    NotBinary {
        /// The trace.
        path: PathBuf,
        /// The format.
        format: Format,
    },
    /// Says that the name promises a compressed file, and nothing that is read was found in it.
    #[error("{}: named .{suffix}, but no compressed stream that is read ({known})",
        path.display())]
    NotPacked {
        /// The trace.
        path: PathBuf,
        /// The end of the name.
        suffix: String,
        /// Names of the kinds of compression that are read.
        known: String,
    },
    /// Says that a compressed stream stops before its end mark.
    #[error("{}: byte {offset} of the trace: truncated: the {stream} stream ends early",
        path.display())]
    Truncated {
        /// The trace.
        path: PathBuf,
        /// Bytes of trace (after decompression) before the end.
        offset: u64,
        /// Kind of compression.
        stream: &'static str,
    },
    /// Says that a line does not have the form its format asks for.
    #[error("{}: line {line}: expected {expected}, found \"{found}\"", path.display())]
    Line {
        /// The trace.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The thing that the format asks for.
        expected: String,
        /// Beginning of the line, escaped.
        found: String,
    },
    /// Says that a binary trace ends inside a record.
    #[error(
        "{}: byte {offset} of the trace: truncated: {have} bytes left over, a record has {need}",
        path.display()
    )]
    Partial {
        /// The trace.
        path: PathBuf,
        /// Byte (after decompression) where the last record starts.
        offset: u64,
        /// Bytes left.
        have: usize,
        /// Bytes a record has.
        need: usize,
    },
    /// Says that a compact trace is not as it was written.
    #[error("{}: byte {offset} of the trace: {what}", path.display())]
    Damaged {
        /// The trace.
        path: PathBuf,
        /// Byte (after decompression) where the part begins that is not right.
        offset: u64,
        /// The fault.
        what: String,
    },
    /// Says that the trace does not have the form of the format that its name or content suggested.
    #[error("{error}; read as {guess}")]
    Guessed {
        /// The fault that it has in that format.
        error: Box<TraceError>,
        /// The format, how it was guessed and which others there are.
        guess: Guess,
    },
    /// Says that neither name nor content gives the format.
    #[error("{}: cannot tell the format from the name or the content; name it ({known})",
        path.display())]
    UnknownFormat {
        /// The trace.
        path: PathBuf,
        /// Names of the formats.
        known: String,
    },
    /// Says that the trace holds no request at all.
    #[error("{}: the trace holds no requests{hint}", path.display())]
    Empty {
        /// The trace.
        path: PathBuf,
        /// Says what it holds instead, behind `: `; empty where nothing can be said.
        hint: String,
    },
    /// Says that the trace exceeds what 32-bit page or request numbers can hold.
    #[error("{}: too large: more than {limit} {what}", path.display())]
    TooLarge {
        /// The trace.
        path: PathBuf,
        /// The things of which there are too many.
        what: &'static str,
        /// How many are possible.
        limit: u64,
    },
    /// Says that the trace is not what it was when it was opened.
    #[error("{}: changed while it was replayed: request {at} of {expected}", path.display())]
    Changed {
        /// The trace.
        path: PathBuf,
        /// First request (from 0) that differs.
        at: u64,
        /// Requests there were.
        expected: u64,
    },
}

/// Characters of a bad line shown in an error.
const SHOWN: usize = 60;

impl TraceError {
    /// Says whether the format may be wrong, so that a message should say how to choose another.
    pub fn doubts_format(&self) -> bool {
        matches!(self, TraceError::Guessed { .. } | TraceError::UnknownFormat { .. })
    }

    pub(super) fn line(path: &Path, line: u64, expected: impl Into<String>, found: &[u8]) -> Self {
        let (text, _) = first_line(found);
        let shown = &text[..text.len().min(SHOWN)];
        let more = if text.len() > SHOWN { "…" } else { "" };
        TraceError::Line {
            path: path.to_path_buf(),
            line,
            expected: expected.into(),
            found: format!("{}{more}", shown.escape_ascii()),
        }
    }

    pub(super) fn empty(path: &Path) -> Self {
        TraceError::Empty { path: path.to_path_buf(), hint: String::new() }
    }

    pub(super) fn too_large(path: &Path, what: &'static str, limit: u64) -> Self {
        TraceError::TooLarge { path: path.to_path_buf(), what, limit }
    }
}
