//! The process that writes the trace events of a launched program, and of those below it that have
//! a pager. It ends when they all have.

mod merge;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mglru_error::Error;
use mglru_lab::trace_events::TraceFile;
use mglru_live::steer::background::{self, Lifetime};
use mglru_pager::events::{Caller, Listener, Ring, State};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use self::merge::Merge;
use super::events::socket;
use crate::Answer;

/// Sets how long the writer sleeps between two rounds. A ring holds the events of half a second, so
/// that a late round loses none.
const EVERY: Duration = Duration::from_millis(20);
/// Processes that are traced at a time, at most.
const MOST: usize = 256;

/// Arguments of `mglru trace-writer`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Trace this process, which becomes the program
    #[arg(long)]
    launched: u32,
    /// Set how many events a process's ring holds
    #[arg(long)]
    slots: usize,
    /// Ask for faults, too
    #[arg(long)]
    faults: bool,
    /// Go on in the background
    #[arg(long)]
    background: bool,
    /// Say so on stdout once it listens
    #[arg(long)]
    announce: bool,
    /// Take this name for the file, which is standard input
    file: PathBuf,
}

/// Starts the writer, or is it.
pub(crate) fn run(args: &Args) -> Answer {
    if args.background {
        let [launched, slots] = [args.launched.to_string(), args.slots.to_string()];
        let file = args.file.display().to_string();
        let command = ["trace-writer", "--launched", &launched, "--slots", &slots, "--announce"];
        let faults = args.faults.then_some("--faults");
        let command = command.into_iter().chain(faults).chain(["--", &file]);
        let command: Vec<_> = command.map(str::to_string).collect();
        return background::start_with(&command, Stdio::inherit()).map(|()| (String::new(), 0));
    }
    let writer = Writer::new(args)?;
    if args.announce {
        background::announce();
    }
    // The pager's own processes are known by the names of their threads: this one's memory is not
    // the program's.
    let thread = std::thread::Builder::new().name("mglru-events".into());
    let failed = |error| Error::Request(format!("a thread that writes trace events: {error}"));
    thread.spawn(|| writer.run()).map_err(failed)?.join().expect("it does not panic");
    Ok((String::new(), 0))
}

/// A process with a pager.
struct Traced {
    caller: Caller,
    /// It waits for its events to be in the file, or did.
    ends: bool,
}

struct Writer {
    /// The program, until it has ended.
    launched: Option<Lifetime>,
    pid: u32,
    listener: Listener,
    ring: Ring,
    traced: Vec<Traced>,
    merge: Merge,
    /// The last connection could not be taken: it waits, and would wake each sleep at once.
    stuck: bool,
}

impl Writer {
    fn new(args: &Args) -> Result<Self, Error> {
        let name = socket(args.launched);
        let failed = |error| Error::Request(format!("@{name}: {error}"));
        let listener = Listener::bind(&name).map_err(failed)?;
        let file = io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(failed)?;
        ignore_signals().map_err(failed)?;
        raise_descriptors();
        Ok(Self {
            launched: Some(Lifetime::of(args.launched)?),
            pid: args.launched,
            listener,
            ring: Ring { slots: args.slots, faults: args.faults },
            traced: Vec::new(),
            merge: Merge::new(TraceFile::resume(file, &args.file), args.file.clone()),
            stuck: false,
        })
    }

    fn run(mut self) {
        while self.launched.is_some() || !self.traced.is_empty() {
            self.wait();
            self.accept();
            self.merge.round(self.traced.iter_mut().map(|traced| &mut traced.caller));
            self.drop_ended();
            if self.is_over() {
                break;
            }
            self.release();
        }
        for traced in &mut self.traced {
            // Reclaim goes on until the process has ended.
            self.merge.read_last(&mut traced.caller);
        }
        let said = self.merge.end();
        // The program may have closed the terminal.
        let _ = writeln!(io::stderr(), "mglru exec: {said}");
        self.traced.iter().for_each(|traced| traced.caller.release());
    }

    /// Sleeps until a process comes or goes, or rings are to be read.
    fn wait(&mut self) {
        let every = Timespec::try_from(EVERY).expect("a short time");
        let listener = (!self.stuck).then(|| PollFd::new(&self.listener, PollFlags::IN));
        let mut fds: Vec<PollFd> = listener.into_iter().collect();
        fds.extend(
            self.traced.iter().map(|t| PollFd::from_borrowed_fd(t.caller.as_fd(), PollFlags::IN)),
        );
        fds.extend(self.launched.iter().map(|launched| PollFd::new(launched, PollFlags::IN)));
        let timeout = (self.stuck || !self.traced.is_empty()).then_some(&every);
        // A signal ends the sleep, and is no reason to do anything.
        let woken = poll(&mut fds, timeout).is_ok();
        let ended = fds.last().is_some_and(|last| last.revents().contains(PollFlags::IN));
        if woken && self.launched.is_some() && ended {
            self.launched = None;
        }
    }

    fn accept(&mut self) {
        let room = (self.traced.len() < MOST).then_some(self.ring);
        let taken = self.listener.accept(room);
        self.stuck = taken.is_err();
        // A process that gets no ring says so itself.
        if let Ok(Some(caller)) = taken {
            self.merge.note_process();
            self.traced.push(Traced { caller, ends: false });
        }
    }

    /// Drops processes that are gone, and notes those that are about to end.
    fn drop_ended(&mut self) {
        let merge = &mut self.merge;
        self.traced.retain_mut(|traced| {
            let state = traced.caller.state();
            match state {
                State::Runs => {}
                // What it wrote before it said so.
                State::Ends => merge.read(&mut traced.caller),
                State::Gone => merge.read_last(&mut traced.caller),
            }
            traced.ends |= state == State::Ends;
            state != State::Gone
        });
    }

    /// Tells whether all that is left waits for the end.
    fn is_over(&self) -> bool {
        let is_launched = |traced: &Traced| traced.caller.pid() as u32 == self.pid;
        let ended = self.launched.is_none() || self.traced.iter().any(is_launched);
        ended && self.traced.iter().all(|traced| traced.ends)
    }

    /// Lets processes end whose events are in the file.
    fn release(&mut self) {
        if self.traced.iter().any(|traced| traced.ends) {
            self.merge.flush();
        }
        let ending = self.traced.iter().filter(|traced| traced.ends);
        ending.for_each(|traced| traced.caller.release());
    }
}

/// Takes as many descriptors as this process may have: each traced process needs one.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    // It goes on with fewer.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// It ends with the program, and a file that may grow no more is an error like others.
fn ignore_signals() -> io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGTERM, SIGXFSZ] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}
