//! A pager seen and steered from outside its process: a Unix socket that answers for the files of
//! its groups, one line a request.
//!
//! ```text
//! get <tab> GROUP <tab> FILE              set <tab> GROUP <tab> FILE <tab> VALUE
//! ls <tab> GROUP                          mkdir <tab> GROUP         rmdir <tab> GROUP
//!
//! ok LENGTH <newline> text                no ERRNO LENGTH <newline> reason
//! ```
//!
//! One thread answers, one request after another. Only root and the user that the program runs as
//! are answered, and clients ask only servers of root's or their own user's: the kernel gives each
//! end whose the other is, so that neither depends on where the socket is.

mod client;
mod request;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::pager::Pager;
use crate::sys::socket::{self, Peer};
use crate::sys::wake::{self, Wake};
use crate::sys::{held, thread};

pub use client::{Client, ControlError};

/// Callers at a time; more are turned away.
const CALLERS: usize = 64;
/// Bytes of a request at most.
const LONGEST: usize = 8 << 10;
/// A caller that does not take its answer in this time is turned away.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers at a socket for a pager, until this is dropped.
pub struct Control {
    path: PathBuf,
    listener: RawFd,
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

struct Ending {
    wake: Wake,
    now: AtomicBool,
}

impl Pager {
    /// Offers a socket at `path`, which only its owner may open; with a leading `@` it is an
    /// abstract name (unix(7)). One that nobody answers any more is replaced.
    ///
    /// # Errors
    /// Somebody answers there, or the path cannot be used.
    pub fn offer(&self, path: &Path) -> io::Result<Control> {
        let listener = bind(path).and_then(held::keep)?;
        listener.set_nonblocking(true)?;
        let ending = Arc::new(Ending { wake: Wake::new()?, now: AtomicBool::new(false) });
        let fd = listener.as_raw_fd();
        let server = Server {
            pager: self.clone(),
            listener,
            callers: Vec::with_capacity(CALLERS),
            ending: ending.clone(),
        };
        let thread = Some(thread::spawn("mglru-control", move || server.run())?);
        Ok(Control { path: path.into(), listener: fd, ending, thread })
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let address = socket::address(path)?;
    if socket::abstract_name(path).is_some() {
        return UnixListener::bind_addr(&address);
    }
    let listener = match UnixListener::bind_addr(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind_addr(&address)
        }
        bound => bound,
    }?;
    socket::close_to_others(path).map(|()| listener)
}

/// Tells whether a socket's owner ended without taking it away. A child may hold it open still.
pub fn is_stale(path: &Path) -> bool {
    let ended = |stream| Peer::of(&stream).is_ok_and(Peer::has_ended);
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    let address = socket::address(path);
    address.and_then(|address| UnixStream::connect_addr(&address)).map_or_else(refused, ended)
}

impl Control {
    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the socket's name away, as the process ends. An abstract one goes by itself.
    pub fn withdraw(&self) {
        if socket::abstract_name(&self.path).is_some() {
            return;
        }
        // It may be gone, or the program may have lost its right to it: then it is found stale.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Closes the socket in the child of a fork, which has the parent's descriptors but no thread
    /// to answer: callers shall learn when the parent ends.
    pub fn abandon(self) {
        // SAFETY: the thread that used it is not in this process, and this handle ends here.
        #[allow(unsafe_code)]
        unsafe {
            crate::sys::close(self.listener);
        }
        std::mem::forget(self);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.ending.now.store(true, Ordering::Release);
        self.ending.wake.ring();
        // A thread that panicked has said so.
        self.thread.take().map(JoinHandle::join);
        self.withdraw();
    }
}

struct Caller {
    stream: UnixStream,
    /// Bytes read that are no whole line yet.
    line: Vec<u8>,
}

struct Server {
    pager: Pager,
    listener: UnixListener,
    callers: Vec<Caller>,
    ending: Arc<Ending>,
}

impl Server {
    fn run(mut self) {
        while !self.ending.now.load(Ordering::Acquire) {
            let callers = self.callers.iter().map(|caller| caller.stream.as_fd());
            let own: [BorrowedFd<'_>; 2] = [self.ending.wake.as_fd(), self.listener.as_fd()];
            wake::sleep_any(own.into_iter().chain(callers), None);
            self.welcome();
            let pager = &self.pager;
            self.callers.retain_mut(|caller| caller.attend(pager).is_ok());
        }
    }

    fn welcome(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let Ok(stream) = held::keep(stream) else { continue };
            let set = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_read_timeout(Some(Duration::from_millis(1))))
                .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
            if set.is_ok() && self.callers.len() < CALLERS && is_welcome(&stream) {
                self.callers.push(Caller { stream, line: Vec::new() });
            }
        }
    }
}

/// Others get the reason of the refusal.
fn is_welcome(mut stream: &UnixStream) -> bool {
    let Ok(peer) = Peer::of(stream) else { return false };
    if !peer.is_trusted() {
        let (own, uid) = (socket::user(), peer.uid);
        let reason = format!("the program is user {own}'s: user {uid} may not steer it");
        // A client that does not listen need not know.
        let _ = stream.write_all(request::refusal(libc::EPERM, &reason).as_bytes());
    }
    peer.is_trusted()
}

impl Caller {
    /// Answers whatever whole lines have come. An error ends the call.
    fn attend(&mut self, pager: &Pager) -> io::Result<()> {
        if !wake::is_ready(self.stream.as_fd()) {
            return Ok(());
        }
        let mut some = [0; 1024];
        match self.stream.read(&mut some)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => self.line.extend_from_slice(&some[..n]),
        }
        while let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]);
            self.stream.write_all(request::answer(pager, &line).as_bytes())?;
        }
        if self.line.len() > LONGEST { Err(io::ErrorKind::InvalidData.into()) } else { Ok(()) }
    }
}
