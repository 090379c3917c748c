//! `mglru exec --strict`: memory outside of the budget ends the program and all processes below
//! it. A process below that has a pager of its own reports to the one that was launched.
//!
//! The watcher finds; a second thread ends, because it has the program's descriptors: to write
//! stores back to files, and the line.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::OnceLock;
use std::time::Duration;

use mglru_pager::{launch, threads};

use super::children::Pids;
use super::figures::Figures;
use super::line::{self, Line};
use super::watcher::Signal;
use crate::heap;
use crate::table::table;

/// Status that the program ends with.
const STATUS: i32 = 2;

/// The process that was launched, if memory outside of the budget is to end it.
fn launched() -> Option<u32> {
    static LAUNCHED: OnceLock<Option<u32>> = OnceLock::new();
    *LAUNCHED.get_or_init(|| std::env::var(launch::ENV_STRICT).ok()?.parse().ok())
}

/// Tells whether memory outside of the budget is to end the program.
pub fn is_asked_for() -> bool {
    launched().is_some()
}

/// The place where the launched process hears of others.
fn place(pid: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("mglru-exec/{pid}/strict"))
}

fn is_launched() -> bool {
    launched() == Some(std::process::id())
}

/// Rung with figures, or without any if another process said the line.
static END: Signal<Option<Figures>> = Signal::new();

/// Starts the thread that ends the program.
pub fn start() {
    let _ = threads::spawn("mglru-strict", || end(END.wait()));
}

fn end(found: Option<Figures>) {
    let mut line = Line::new();
    if let Some(found) = &found {
        // It has room for every reason.
        let _ = line::strict(&mut line, found);
        line::say(&line);
    }
    heap::finish();
    table().write_back();
    if let (false, Some(launched)) = (is_launched(), launched()) {
        let sent = place(launched).and_then(|to| UnixDatagram::unbound()?.send_to_addr(b"!", &to));
        if sent.is_ok() {
            // It ends this process with all others.
            std::thread::sleep(Duration::from_secs(2));
        }
    }
    // SAFETY: ends the process.
    unsafe { libc::syscall(libc::SYS_exit_group, STATUS) };
}

/// Holds the watcher's state for `--strict`.
pub struct Watch {
    others: Option<UnixDatagram>,
    ended: bool,
}

impl Watch {
    /// Listens for others, in the process that was launched.
    pub fn new() -> Self {
        let listen = || {
            let socket = UnixDatagram::bind_addr(&place(std::process::id())?)?;
            socket.set_nonblocking(true).map(|()| socket)
        };
        let others = Some(listen).filter(|_| is_launched()).and_then(|listen| listen().ok());
        Self { others, ended: false }
    }

    /// Ends the program if more than `least` bytes are unmanaged here or in another process.
    pub fn judge(&mut self, now: &Figures, least: u64, pids: &mut Pids) {
        let notified = self.others.as_ref().is_some_and(|others| others.recv(&mut [0; 1]).is_ok());
        let found = now.total() > least;
        if self.ended || !notified && !found {
            return;
        }
        self.ended = true;
        if is_launched() {
            kill_below(pids);
        }
        END.ring(Some(*now).filter(|_| !notified));
    }
}

/// Kills all processes below this one, also those that are started meanwhile.
fn kill_below(pids: &mut Pids) {
    const ROUNDS: usize = 100;
    for _ in 0..ROUNDS {
        let below = pids.below(std::process::id(), |_| false);
        let alive = below.iter().filter(|&&pid| !super::children::is_dead(pid));
        let killed = alive.map(|&pid| {
            // SAFETY: a process of the program's.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) }
        });
        if killed.count() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
