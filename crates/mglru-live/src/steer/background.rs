//! A process that serves a pager from outside: started by another that goes on only when it
//! serves, in a process group of its own, ending with the program that the pager is in.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use mglru_error::Error;

/// Line printed on stdout once the process serves.
const READY: &str = "ready";

/// Runs this program with `args` in the background, and returns when it serves.
///
/// # Errors
/// It does not: it has said why.
pub fn start(args: &[String]) -> Result<(), Error> {
    start_with(args, Stdio::null())
}

/// Runs this program in the background as [`start`] does, with a standard input.
///
/// # Errors
/// It does not serve: it has said why.
pub fn start_with(args: &[String], stdin: Stdio) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Request(format!("a process to serve it: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(args).process_group(0).stdin(stdin).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut said = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut said).map_err(failed)?;
    match said.trim() == READY {
        true => Ok(()),
        false => Err(Error::Request(format!("`mglru {}` does not serve", args.join(" ")))),
    }
}

/// Tells the process that started this one that it serves.
pub fn announce() {
    // The client that asked may be gone.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{READY}").and_then(|()| out.flush());
}

/// Refers to a process that something depends on.
pub struct Lifetime(OwnedFd);

impl Lifetime {
    /// Belongs to a process.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(pid: u32) -> Result<Self, Error> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let opened = number.ok_or(rustix::io::Errno::SRCH);
        let opened = opened.and_then(|number| pidfd_open(number, PidfdFlags::empty()));
        opened.map(Self).map_err(|error| Error::Request(format!("process {pid}: {error}")))
    }

    /// Returns when it has ended.
    pub fn wait(&self) {
        let mut ended = [PollFd::new(&self.0, PollFlags::IN)];
        while poll(&mut ended, None) == Err(rustix::io::Errno::INTR) {}
    }

    /// Calls `then` once it has ended, or this process is asked to end.
    ///
    /// # Errors
    /// Signals cannot be caught.
    pub fn on_end(self, then: impl FnMut() + Clone + Send + 'static) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::Request(format!("signals: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
        let (mut at_end, mut at_signal) = (then.clone(), then);
        std::thread::spawn(move || {
            self.wait();
            at_end();
        });
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                at_signal();
            }
        });
        Ok(())
    }
}

impl AsFd for Lifetime {
    /// Can be read once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let lifetime = Lifetime::of(child.id()).unwrap();
        drop(child.stdin.take());
        lifetime.wait();
        child.wait().unwrap();
        let gone = Lifetime::of(child.id()).map(drop).unwrap_err().to_string();
        assert!(gone.starts_with(&format!("process {}: ", child.id())), "{gone}");
        assert!(Lifetime::of(0).is_err() && Lifetime::of(u32::MAX).is_err());
    }
}
