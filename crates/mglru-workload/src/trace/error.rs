//! What can be wrong with a trace. Every message is one line and names the file, the place and
//! what was expected there, so that the program can print it as it is.

use std::io;
use std::path::{Path, PathBuf};

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The trace.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be read, or its compressed stream is damaged.
    #[error("{}: byte {offset} of the trace: {what}: {source}", path.display())]
    Read {
        /// The trace.
        path: PathBuf,
        /// Bytes of trace (after decompression) read before the failure.
        offset: u64,
        /// What was being read.
        what: &'static str,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// A compressed stream stops before its end mark.
    #[error("{}: byte {offset} of the trace: truncated: the {stream} stream ends early",
        path.display())]
    Truncated {
        /// The trace.
        path: PathBuf,
        /// Bytes of trace (after decompression) before the end.
        offset: u64,
        /// `zstd` or `gzip`.
        stream: &'static str,
    },
    /// A line does not have the form its format asks for.
    #[error("{}: line {line}: expected {expected}, found \"{found}\"", path.display())]
    Line {
        /// The trace.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What the format asks for.
        expected: String,
        /// Beginning of the line, escaped.
        found: String,
    },
    /// A binary trace ends inside a record.
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
    /// Neither name nor content tells the format.
    #[error("{}: cannot tell the format from the name or the content; name it ({known})",
        path.display())]
    UnknownFormat {
        /// The trace.
        path: PathBuf,
        /// Names of the formats.
        known: String,
    },
    /// The trace holds no request at all.
    #[error("{}: the trace holds no requests", path.display())]
    Empty {
        /// The trace.
        path: PathBuf,
    },
    /// The trace exceeds what 32-bit page or request numbers can hold.
    #[error("{}: too large: more than {limit} {what}", path.display())]
    TooLarge {
        /// The trace.
        path: PathBuf,
        /// What there are too many of.
        what: &'static str,
        /// How many are possible.
        limit: u64,
    },
    /// The trace is not what it was when it was opened.
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
    pub(super) fn line(path: &Path, line: u64, expected: impl Into<String>, found: &[u8]) -> Self {
        let text = found.split(|&b| b == b'\n').next().unwrap_or_default();
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
        TraceError::Empty { path: path.to_path_buf() }
    }

    pub(super) fn too_large(path: &Path, what: &'static str, limit: u64) -> Self {
        TraceError::TooLarge { path: path.to_path_buf(), what, limit }
    }
}
