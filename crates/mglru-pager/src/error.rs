//! What can go wrong, by what it means for the caller.

use std::io;

/// Why the pager could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum PagerError {
    /// The kernel refused, or a file did.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A group's `memory.max` leaves no room for the tables of a mapping.
    #[error("group {0}: memory.max leaves no room for the mapping's tables")]
    NoRoom(String),
    /// A value is out of its range.
    #[error("{what}: {got} is not within {takes}")]
    OutOfRange {
        /// The name of the value.
        what: &'static str,
        /// What was given.
        got: u64,
        /// What it takes.
        takes: String,
    },
    /// A group's name is taken or not a name.
    #[error("`{0}` is not a new group's name")]
    GroupName(String),
    /// What was asked for and this pager cannot do.
    #[error("not supported: {0}")]
    Unsupported(&'static str),
    /// The pager was shut down.
    #[error("the pager has stopped")]
    Stopped,
}

impl PagerError {
    /// The errno that a C function would give.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Io(error) => error.raw_os_error().unwrap_or(match error.kind() {
                io::ErrorKind::Unsupported => libc::EOPNOTSUPP,
                _ => libc::EIO,
            }),
            Self::NoRoom(_) => libc::ENOMEM,
            Self::OutOfRange { .. } | Self::GroupName(_) => libc::EINVAL,
            Self::Unsupported(_) => libc::EOPNOTSUPP,
            Self::Stopped => libc::ESHUTDOWN,
        }
    }
}
