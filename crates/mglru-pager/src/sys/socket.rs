//! Unix sockets: whose they are, and which users may open them.

use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;

use super::checked;

/// Describes the process at the other end of a connection, as the kernel knows it: who connected,
/// or who listened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pid: i32,
    /// Numbers its user.
    pub uid: u32,
}

impl Peer {
    /// Asks the kernel.
    pub fn of(stream: &UnixStream) -> io::Result<Self> {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut len = size_of_val(&peer) as libc::socklen_t;
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        let into = (&raw mut peer).cast();
        // SAFETY: the kernel fills in at most `len` bytes of the structure.
        checked(unsafe { libc::getsockopt(stream.as_raw_fd(), level, name, into, &mut len) })?;
        Ok(Self { pid: peer.pid, uid: peer.uid })
    }

    /// Returns its number; 0 if it is in another PID namespace.
    pub fn pid(self) -> i32 {
        self.pid
    }

    /// Tells whether its user is root or this process's user, who may do with it what they like
    /// anyway.
    pub fn is_trusted(self) -> bool {
        self.uid == 0 || self.uid == user()
    }

    /// Tells whether the process ended. A child that it forked may hold its socket open. One of
    /// another PID namespace has no number here, and counts as alive.
    pub fn has_ended(self) -> bool {
        // SAFETY: takes numbers; signal 0 is none.
        let answer = checked(unsafe { libc::kill(self.pid, 0) });
        self.pid > 0 && answer.is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
    }
}

/// Returns this process's effective user.
pub fn user() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::geteuid() }
}

/// Returns the abstract name that a path with a leading `@` stands for. Such a name is in no
/// folder, and ends with the process that has it, however that ends.
pub fn abstract_name(path: &Path) -> Option<&[u8]> {
    path.as_os_str().as_bytes().strip_prefix(b"@")
}

/// Makes the socket address of a path.
pub fn address(path: &Path) -> io::Result<SocketAddr> {
    match abstract_name(path) {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    }
}

/// Lets nobody but its owner open a socket that was just made at a path; a link there is left
/// alone.
pub fn close_to_others(path: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the string outlives the call.
    checked(unsafe { libc::fchmodat(libc::AT_FDCWD, path.as_ptr(), 0o600, flags) }).map(drop)
}
