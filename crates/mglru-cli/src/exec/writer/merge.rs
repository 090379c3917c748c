//! Events of several rings, put in order and written.
//!
//! A ring is in order by itself. What one round found waits for the next: by then nothing earlier
//! can come from another ring.

use std::path::PathBuf;

use mglru_lab::trace_events::{Owned, TraceFile};
use mglru_pager::events::{self, Caller, Event, Recorded, THREAD};
use mglru_sim::tracing::{FLAGS, Sink, tracepoint};

/// Returns the name and the fields of an event, as the kernel's tracepoints have them.
fn named(event: &Event) -> (&'static str, String) {
    match event {
        Event::Reclaim(event) => tracepoint(event),
        Event::Fault { address, write } => {
            // A fault of a program (4) on a page that was not there, by a store (2) or a load. The
            // pager does not learn which instruction it was.
            let code = if *write { 6 } else { 4 };
            ("page_fault_user", format!("address=0x{address:x} ip=0x0 error_code=0x{code:x}"))
        }
    }
}

/// Puts events in order and writes them.
pub(super) struct Merge {
    file: TraceFile,
    name: PathBuf,
    /// The file can be written no more: why.
    failed: Option<String>,
    pending: Vec<Owned>,
    recorded: Vec<Recorded>,
    /// Nothing earlier is to come.
    settled: u64,
    written: u64,
    lost: u64,
    processes: u64,
}

impl Merge {
    pub(super) fn new(file: TraceFile, name: PathBuf) -> Self {
        let (failed, pending, recorded) = Default::default();
        let (settled, written, lost, processes) = Default::default();
        Self { file, name, failed, pending, recorded, settled, written, lost, processes }
    }

    pub(super) fn note_process(&mut self) {
        self.processes += 1;
    }

    /// Reads all rings, and writes what the last round found.
    pub(super) fn round<'a>(&mut self, callers: impl Iterator<Item = &'a mut Caller>) {
        let began = events::now();
        callers.for_each(|caller| self.read(caller));
        self.write_until(self.settled);
        self.settled = began;
    }

    /// Reads a ring.
    pub(super) fn read(&mut self, caller: &mut Caller) {
        caller.read(&mut self.recorded);
        let pid = caller.thread();
        let owned = |Recorded { at, cpu, event }: Recorded| {
            let (name, fields) = named(&event);
            let [flags, comm, name] = [FLAGS, THREAD, name].map(str::to_string);
            Owned { at, flags, cpu, comm, pid, name, fields }
        };
        self.pending.extend(self.recorded.drain(..).map(owned));
    }

    /// Reads a ring for the last time, and counts what it lost.
    pub(super) fn read_last(&mut self, caller: &mut Caller) {
        self.read(caller);
        // A program that writes wild may have written this count.
        self.lost = self.lost.saturating_add(caller.lost());
    }

    fn write_until(&mut self, until: u64) {
        self.pending.sort_by_key(|event| event.at);
        let n = self.pending.partition_point(|event| event.at <= until);
        for event in self.pending.drain(..n) {
            if self.failed.is_none() {
                self.failed = self.file.event(&event.event()).err();
                self.written += 1;
            }
        }
    }

    /// Has all that was read in the file.
    pub(super) fn flush(&mut self) {
        self.write_until(u64::MAX);
        if self.failed.is_none() {
            self.failed = self.file.finish().err();
        }
    }

    /// Ends the file, and says what is in it.
    pub(super) fn end(&mut self) -> String {
        self.write_until(u64::MAX);
        if self.failed.is_none() {
            self.failed = self.file.close(self.written, self.lost).err();
        }
        self.failed.take().unwrap_or_else(|| self.summary())
    }

    fn summary(&self) -> String {
        let (file, written) = (self.name.display(), self.written);
        let of = match self.processes {
            0 | 1 => String::new(),
            n => format!(" of {n} processes"),
        };
        let lost = match self.lost {
            0 => String::new(),
            n => format!(", {n} lost: their buffer was full"),
        };
        format!("trace events: {file}: {written} events{of}{lost}")
    }
}
