//! How a process with a pager gets a ring from the one that writes its events to a file, and says
//! that it ends: a connection to an abstract socket (unix(7)). Its end is the process's end,
//! however that comes.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use super::ring::{EventReader, EventSender, Recorded};
use crate::sys::pass;
use crate::sys::socket::Peer;

/// Sent with the ring, or in its place when there is none.
const RING: u8 = b'r';
const REFUSED: u8 = b'n';
/// The process is about to end, and what it waits for is done.
const ENDS: u8 = b'e';
const DONE: u8 = b'd';
/// A process waits so long at most for the other end: it has to run, and to end.
const PATIENCE: Duration = Duration::from_secs(5);

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

fn nobody_there(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            io::Error::new(error.kind(), "the process that writes them has ended")
        }
        _ => error,
    }
}

/// Holds the connection of a process with a pager, which keeps it until it ends.
#[derive(Debug)]
pub struct Call(UnixStream);

impl Call {
    /// Gets a ring from the process that listens at this name.
    ///
    /// # Errors
    /// Nobody listens there, it is another user's, or it has no ring to give.
    pub fn connect(name: &str) -> io::Result<(Self, EventSender)> {
        let stream = UnixStream::connect_addr(&address(name)?).map_err(nobody_there)?;
        if !Peer::of(&stream)?.is_trusted() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        match pass::receive(&stream)? {
            (RING, Some(file)) => Ok((Self(stream), EventSender::map(&file)?)),
            _ => Err(io::Error::other("the process that writes them has no more rings")),
        }
    }

    /// Says that this process is about to end, and waits until its events are in the file.
    ///
    /// # Errors
    /// The other end is gone, or took too long.
    pub fn end(&self) -> io::Result<()> {
        let mut stream = &self.0;
        stream.write_all(&[ENDS])?;
        stream.read_exact(&mut [0; 1])
    }
}

/// Says what ring a process gets.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    /// Sets the least number of events it holds.
    pub slots: usize,
    /// Asks for faults besides what reclaim does.
    pub faults: bool,
}

/// Takes the connections of processes with pagers.
#[derive(Debug)]
pub struct Listener(UnixListener);

impl Listener {
    /// Listens at an abstract name.
    ///
    /// # Errors
    /// Somebody does already.
    pub fn bind(name: &str) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&address(name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    /// Takes a connection, and gives its process a ring as wanted, unless `ring` is `None`.
    /// `Ok(None)`: no process is there, or none that may have one.
    ///
    /// # Errors
    /// The caller is gone, or there is no memory for a ring.
    pub fn accept(&self, ring: Option<Ring>) -> io::Result<Option<Caller>> {
        let stream = match self.0.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        let peer = Peer::of(&stream)?;
        let ring = ring.filter(|_| peer.is_trusted());
        let made = ring.map(|Ring { slots, faults }| EventReader::create(slots, faults));
        let Some(Ok((reader, file))) = made else {
            (&stream).write_all(&[REFUSED])?;
            return made.map_or(Ok(None), |failed| failed.map(|_| None));
        };
        pass::send(&stream, RING, &file)?;
        stream.set_nonblocking(true)?;
        Ok(Some(Caller { stream, reader, pid: peer.pid() }))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Tells what a process with a pager does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Runs,
    /// It is about to end, and waits for its events to be in the file.
    Ends,
    /// It has ended, or become another program.
    Gone,
}

/// Holds the connection to a process with a pager, and its ring.
#[derive(Debug)]
pub struct Caller {
    stream: UnixStream,
    reader: EventReader,
    pid: i32,
}

impl Caller {
    /// Returns its number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Looks at what it does. It says once that it ends.
    pub fn state(&self) -> State {
        match (&self.stream).read(&mut [0; 1]) {
            Ok(1) => State::Ends,
            Err(error) if error.kind() == ErrorKind::WouldBlock => State::Runs,
            Err(error) if error.kind() == ErrorKind::Interrupted => State::Runs,
            _ => State::Gone,
        }
    }

    /// Lets it end.
    pub fn release(&self) {
        // It may be gone already.
        let _ = (&self.stream).write_all(&[DONE]);
    }

    /// Counts its pager's events that found no room.
    pub fn lost(&self) -> u64 {
        self.reader.lost()
    }

    /// Returns the number of its policy thread.
    pub fn thread(&self) -> u32 {
        self.reader.thread()
    }

    /// Appends what its pager sent since the last call.
    pub fn read(&mut self, out: &mut Vec<Recorded>) {
        self.reader.read(out);
    }
}

impl AsFd for Caller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru::host::TraceEvent;

    fn name(of: &str) -> String {
        format!("mglru-test/{}/{of}", std::process::id())
    }

    fn accept(listener: &Listener, slots: Option<usize>) -> Option<Caller> {
        let ring = slots.map(|slots| Ring { slots, faults: false });
        let found = || listener.accept(ring).unwrap();
        std::iter::repeat_with(found).take(1_000_000).find(Option::is_some).flatten()
    }

    #[test]
    fn events_arrive_and_the_end_is_waited_for() {
        let listener = Listener::bind(&name("end")).unwrap();
        let program = std::thread::spawn(|| {
            let (call, mut sender) = Call::connect(&name("end")).unwrap();
            sender.send(&TraceEvent::CallEnds { target: None, reclaimed: 5 });
            call.end().unwrap();
        });
        let mut caller = accept(&listener, Some(8)).expect("it calls");
        assert_eq!(caller.pid(), std::process::id() as i32);
        let mut states = std::iter::repeat_with(|| caller.state());
        assert_eq!(states.find(|state| *state != State::Runs), Some(State::Ends));
        let mut events = Vec::new();
        caller.read(&mut events);
        assert_eq!((events.len(), caller.lost()), (1, 0));
        assert!(!program.is_finished(), "it waits");
        caller.release();
        program.join().unwrap();
        assert_eq!(caller.state(), State::Gone);
    }

    #[test]
    fn who_cannot_have_a_ring_learns_it() {
        let missing = Call::connect(&name("nobody")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::ConnectionRefused);
        let listener = Listener::bind(&name("full")).unwrap();
        let program = std::thread::spawn(|| Call::connect(&name("full")).map(drop));
        while !program.is_finished() {
            assert!(listener.accept(None).unwrap().is_none());
        }
        let refused = program.join().unwrap().unwrap_err().to_string();
        assert!(refused.contains("has no more rings"), "{refused}");
    }
}
