//! Records which pages a program touches: it runs under QEMU's translator of programs, whose
//! plugin sees each load, store and system call. No root, no change of the program or kernel. Or
//! the running kernel says what it sees of a program (`ftrace`), which root alone may ask for; or
//! the pager, of a program under a budget (`pager`).
//!
//! Data moves one way: the plugin (`mglru_qemu::PROGRAM`) sends messages, `listen` receives them,
//! `message` reads them, `timeline` turns them into events, and the trace is written.

pub mod ftrace;
mod launch;
mod listen;
mod message;
pub mod pager;
mod regions;
pub mod signals;
mod timeline;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, ExitStatus};

use mglru_error::Error;
use mglru_traces::tools::{Made, Output, Sink};
use mglru_workload::trace::{Head, TimeUnit};

use listen::Listener;
use message::Message;
use signals::Signals;
use timeline::Timeline;

pub use timeline::Counts;

/// Log2 of a page's bytes.
const PAGE_SHIFT: u8 = 12;

/// Describes a recording.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Holds the program and its arguments.
    pub command: &'a [OsString],
    /// Holds log2 of the instructions of a window: each page is kept once a window, and once more
    /// for its first store.
    pub window: u32,
    /// Names the compact trace to write.
    pub out: &'a Path,
}

/// Holds what a recording made.
#[derive(Debug)]
pub struct Recorded {
    /// Describes the trace.
    pub made: Made,
    /// Counts what was met on the way.
    pub counts: Counts,
    /// Says how the program ended.
    pub status: ExitStatus,
}

/// Runs a program and writes its trace. It returns when the program has ended, by a signal to this
/// process too; processes that it left behind run on unrecorded.
///
/// # Errors
/// The translator or the program is missing, or the trace cannot be written; the program is then
/// ended.
pub fn record(request: &Request) -> Result<Recorded, Error> {
    let output = Output::new(request.out)?;
    let signals = Signals::heed()?;
    let folder = tempfile::tempdir().map_err(|e| Error::io(&std::env::temp_dir(), e))?;
    let socket_failed = |e| Error::Request(format!("socket of the recording: {e}"));
    let name = folder.path().display().to_string();
    let listener = Listener::open(name).map_err(socket_failed)?;
    let mut child = launch::start(request.command, folder.path(), &listener.name, request.window)?;
    let mut timeline = Timeline::new(request.window);
    let mut status = None;
    let head = Head { page_shift: PAGE_SHIFT, time: TimeUnit::Instruction, spaces: true };
    let made = output.compact(head, |sink| {
        status = Some(receive(&listener, (&mut child, &signals), &mut timeline, sink)?);
        Ok(())
    });
    if made.is_err() {
        let _ = child.kill().and_then(|()| child.wait());
    }
    let status = status.ok_or_else(|| Error::Request("the program did not end".to_string()));
    Ok(Recorded { made: made?, counts: timeline.counts(), status: status? })
}

/// Writes events until the program has ended and no message waits.
fn receive(
    listener: &Listener,
    (child, signals): (&mut Child, &Signals),
    timeline: &mut Timeline,
    sink: &mut Sink,
) -> Result<ExitStatus, Error> {
    let failed = |e| Error::Request(format!("recording: {e}"));
    let mut status = None;
    loop {
        if status.is_none() {
            signals.pass_on(child);
        }
        match listener.next().map_err(failed)? {
            Some(bytes) => write(&bytes, timeline, sink)?,
            None => match status {
                Some(status) => return Ok(status),
                None => status = child.try_wait().map_err(failed)?,
            },
        }
    }
}

fn write(bytes: &[u8], timeline: &mut Timeline, sink: &mut Sink) -> Result<(), Error> {
    let Some(message) = Message::read(bytes) else { return Ok(()) };
    let events = timeline.take(&message).map_err(Error::Request)?;
    sink.names(timeline.names())?;
    events.iter().try_for_each(|event| sink.event(event))
}
