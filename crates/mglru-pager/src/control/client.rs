//! The other end of the socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::sys::socket::{self, Peer};

/// A pager answers within this time, or it is stuck. `memory.reclaim` may take a while.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of an answer at most.
const LONGEST: usize = 16 << 20;

/// Says why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Reports that the pager refused.
    #[error("{reason}")]
    Refused {
        /// The errno that a system call would give.
        errno: i32,
        /// Why.
        reason: String,
    },
    /// Reports that nobody answers, or not like a pager.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl ControlError {
    /// Returns the errno that a system call would give.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Refused { errno, .. } => *errno,
            Self::Io(_) => libc::EIO,
        }
    }
}

/// Holds a connection to a pager.
#[derive(Debug)]
pub struct Client(BufReader<UnixStream>);

impl Client {
    /// Calls the pager at a socket, a path or `@` and an abstract name.
    ///
    /// # Errors
    /// No process answers there, or one of a user who is neither root nor this one.
    pub fn connect(path: &Path) -> Result<Self, ControlError> {
        let stream = UnixStream::connect_addr(&socket::address(path)?)?;
        let peer = Peer::of(&stream)?;
        if peer.has_ended() {
            return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED).into());
        }
        if !peer.is_trusted() {
            let (own, uid) = (socket::user(), peer.uid);
            let reason = format!("it is user {uid}'s, and user {own} asks only root and itself");
            return Err(ControlError::Refused { errno: libc::EPERM, reason });
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Asks one thing; the fields are text without tabs and newlines.
    ///
    /// # Errors
    /// The pager refuses or is gone.
    pub fn ask(&mut self, fields: &[&str]) -> Result<String, ControlError> {
        if fields.iter().any(|field| field.contains(['\t', '\n'])) {
            let reason = "a tab or a line break is in no name or value".into();
            return Err(ControlError::Refused { errno: libc::EINVAL, reason });
        }
        let sent = self.0.get_mut().write_all(format!("{}\n", fields.join("\t")).as_bytes());
        let mut head = String::new();
        let read = self.0.by_ref().take(64).read_line(&mut head);
        // The server sends a client the reason even when it refuses before the request.
        if head.is_empty() {
            sent.and(read)?;
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        match head.split_whitespace().collect::<Vec<_>>()[..] {
            ["ok", len] => self.text(len),
            ["no", errno, len] => {
                let errno = errno.parse().map_err(|_| garbled())?;
                Err(ControlError::Refused { errno, reason: self.text(len)? })
            }
            _ => Err(garbled().into()),
        }
    }

    fn text(&mut self, len: &str) -> Result<String, ControlError> {
        let len = len.parse().ok().filter(|&len| len <= LONGEST).ok_or_else(garbled)?;
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| garbled().into())
    }

    /// Reads the text of a group's file.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn get(&mut self, group: &str, file: &str) -> Result<String, ControlError> {
        self.ask(&["get", group, file])
    }

    /// Writes a group's file.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn set(&mut self, group: &str, file: &str, value: &str) -> Result<(), ControlError> {
        self.ask(&["set", group, file, value]).map(drop)
    }

    /// Lists the names of the groups directly below one.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn children(&mut self, group: &str) -> Result<Vec<String>, ControlError> {
        Ok(self.ask(&["ls", group])?.lines().map(str::to_string).collect())
    }

    /// Lists the paths of a group and all below it.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn subtree(&mut self, group: &str) -> Result<Vec<String>, ControlError> {
        let mut paths = vec![group.to_string()];
        let mut at = 0;
        while let Some(above) = paths.get(at).cloned() {
            let children = self.children(&above)?;
            let above = above.trim_end_matches('/');
            paths.extend(children.iter().map(|name| format!("{above}/{name}")));
            at += 1;
        }
        paths.sort();
        Ok(paths)
    }
}

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "that is no pager's answer")
}
