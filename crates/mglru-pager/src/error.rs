//! Errors, by what they mean for the caller.

use std::io;

/// Says why the pager could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum PagerError {
    /// Reports a refusal of the kernel, or of a file.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Says that a group's `memory.max` leaves no room for the tables of a mapping.
    #[error("group {0}: memory.max leaves no room for the mapping's tables")]
    NoRoom(String),
    /// Says that a value is out of its range.
    #[error("{what}: {got} is not within {takes}")]
    OutOfRange {
        /// The name of the value.
        what: &'static str,
        /// The value that was given.
        got: u64,
        /// The values that it takes.
        takes: String,
    },
    /// Says that a group's name is taken or not a name.
    #[error("`{0}` is not a new group's name")]
    GroupName(String),
    /// Says that there is no such group.
    #[error("there is no group `{0}`")]
    NoGroup(String),
    /// Says that a group still has groups or mappings, or is the root.
    #[error("group {0} is in use")]
    Busy(String),
    /// Says that no group has such a file.
    #[error("there is no file `{0}` in a group")]
    NoFile(String),
    /// Says that a file cannot be read, or cannot be written.
    #[error("{0} cannot be used this way")]
    FileAccess(String),
    /// Says that a file does not take a text.
    #[error("{file}: `{text}` is not a value")]
    Value {
        /// Its name.
        file: &'static str,
        /// The text that was written.
        text: String,
    },
    /// Says that less was reclaimed than asked for.
    #[error("{got} of {wanted} bytes were reclaimed")]
    Reclaimed {
        /// Bytes that were.
        got: u64,
        /// Bytes that were to be.
        wanted: u64,
    },
    /// Refuses a request that this pager cannot carry out.
    #[error("not supported: {0}")]
    Unsupported(&'static str),
    /// Says that the pager was shut down.
    #[error("the pager has stopped")]
    Stopped,
}

impl PagerError {
    /// Returns the errno that a C function would give.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Io(error) => error.raw_os_error().unwrap_or(match error.kind() {
                io::ErrorKind::Unsupported => libc::EOPNOTSUPP,
                _ => libc::EIO,
            }),
            Self::NoRoom(_) => libc::ENOMEM,
            Self::OutOfRange { .. } | Self::Value { .. } => libc::EINVAL,
            Self::GroupName(_) => libc::EEXIST,
            Self::NoGroup(_) | Self::NoFile(_) => libc::ENOENT,
            Self::Busy(_) => libc::EBUSY,
            Self::FileAccess(_) => libc::EACCES,
            Self::Reclaimed { .. } => libc::EAGAIN,
            Self::Unsupported(_) => libc::EOPNOTSUPP,
            Self::Stopped => libc::ESHUTDOWN,
        }
    }
}

/// Holds the answer of a C function that fails: an errno, and a line that says why.
#[derive(Debug)]
pub struct Failure(pub i32, pub String);

impl Failure {
    /// Makes the error for an argument that cannot be.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self(libc::EINVAL, why.into())
    }
}

impl From<PagerError> for Failure {
    fn from(error: PagerError) -> Self {
        Self(error.errno(), error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        PagerError::from(error).into()
    }
}
