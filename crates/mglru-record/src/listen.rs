//! Receives what the processes of a recording send.

use std::io::{self, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;

/// How long to wait for a message before the caller looks at its program, milliseconds.
const LOOK_MS: u64 = 20;
/// A process that is stopped within a message must not hold up the recording.
const SILENCE: Duration = Duration::from_secs(10);
/// Messages are smaller: most are 128 KiB, and one entry holds at most a path.
const LONGEST: u64 = 1 << 20;

/// A socket whose name nobody else knows.
pub(crate) struct Listener {
    socket: UnixListener,
    /// Its name, in the abstract namespace.
    pub(crate) name: String,
}

impl Listener {
    /// Opens the socket.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn open(name: String) -> io::Result<Self> {
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, name })
    }

    /// Waits a moment for the next message. `None`: none came.
    ///
    /// # Errors
    /// The socket fails.
    pub(crate) fn next(&self) -> io::Result<Option<Vec<u8>>> {
        let wait = Timespec { tv_sec: 0, tv_nsec: (LOOK_MS * 1_000_000) as i64 };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.waiting(),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a message that waits already.
    fn waiting(&self) -> io::Result<Option<Vec<u8>>> {
        loop {
            match self.socket.accept() {
                Ok((stream, _)) if is_ours(&stream) => return Ok(Some(read(stream)?)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// True for a process of this user: any other could know the name too.
fn is_ours(stream: &UnixStream) -> bool {
    socket_peercred(stream).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// Reads a whole message; one whose sender died is empty.
fn read(stream: UnixStream) -> io::Result<Vec<u8>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut bytes = Vec::new();
    match stream.take(LONGEST).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Ok(Vec::new()),
    }
}
