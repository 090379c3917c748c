//! Turns what processes did into events of a trace.

use std::collections::BTreeMap;

use mglru_workload::trace::{Event, Operation};

use crate::message::{Deed, Entry, File, Message};
use crate::regions::{Met, Regions, pages};

/// Most pages of one event.
const MOST_PAGES: u64 = 1 << 24;

/// Counts what a recording met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counts processes that were recorded.
    pub processes: u64,
    /// Counts their instructions. Those of several threads are counted low.
    pub instructions: u64,
    /// Names programs that ran and could not be recorded: their paths, each once.
    pub outside: Vec<String>,
    /// Counts processes whose end was not seen: they were killed, or still run. Their last events
    /// are missing.
    pub open: u64,
    /// Counts messages that did not arrive.
    pub lost: u64,
}

/// Follows all processes.
#[derive(Default)]
pub(crate) struct Timeline {
    /// Log2 of the instructions that a time is rounded down to.
    window: u32,
    processes: BTreeMap<u64, Process>,
    /// Spaces of files.
    files: BTreeMap<File, u32>,
    /// Holds names of spaces that were not reported yet.
    names: Vec<(u32, String)>,
    spaces: u32,
    counts: Counts,
}

/// Holds what is known of a process.
#[derive(Default)]
struct Process {
    /// Its number in the trace, from 1.
    number: u64,
    space: u32,
    regions: Regions,
    /// The regions when it last forked: its child has these.
    at_fork: Regions,
    /// Its first entry: a child's clock goes on from its parent's.
    began: Option<u64>,
    time: u64,
    /// Number of the message that comes next.
    next: u64,
    ended: bool,
}

impl Timeline {
    /// Begins; times of events are those at which their windows begin.
    pub(crate) fn new(window: u32) -> Self {
        Timeline { window, ..Timeline::default() }
    }

    /// Takes a message. Returns its events, in order.
    ///
    /// # Errors
    /// An entry cannot be read.
    pub(crate) fn take(&mut self, message: &Message) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        self.arrive(message, &mut events);
        for entry in message.entries() {
            let entry = entry.ok_or("an entry of the recording cannot be read")?;
            self.entry(message.process, entry, &mut events);
        }
        Ok(events)
    }

    /// Takes the names of spaces that are new.
    pub(crate) fn names(&mut self) -> Vec<(u32, String)> {
        std::mem::take(&mut self.names)
    }

    /// Tells what the recording met.
    pub(crate) fn counts(self) -> Counts {
        let open = self.processes.values().filter(|process| !process.ended).count() as u64;
        let ran: u64 = self.processes.values().map(Process::ran).sum();
        let instructions = self.counts.instructions + ran;
        Counts { open, instructions, ..self.counts }
    }

    fn space(&mut self, name: String) -> u32 {
        let space = self.spaces;
        self.spaces += 1;
        self.names.push((space, name));
        space
    }

    fn file(&mut self, file: File) -> u32 {
        if let Some(&space) = self.files.get(&file) {
            return space;
        }
        let space = self.space(format!("file {}:{}", file.0, file.1));
        self.files.insert(file, space);
        space
    }

    /// Knows the sender, and sees messages that are missing.
    fn arrive(&mut self, message: &Message, events: &mut Vec<Event>) {
        let known = self.processes.get(&message.process);
        // A process number that comes again is that of another process.
        if known.is_none_or(|process| process.ended && message.number == 0) {
            self.begin(message, events);
        }
        let process = self.processes.get_mut(&message.process).expect("it is known now");
        process.ended = false;
        if message.number != 0 {
            self.counts.lost += message.number.saturating_sub(process.next);
        }
        process.next = message.number + 1;
    }

    fn begin(&mut self, message: &Message, events: &mut Vec<Event>) {
        self.counts.processes += 1;
        let number = self.counts.processes;
        let space = self.space(format!("process {number}"));
        let before = self.processes.remove(&message.process);
        self.counts.instructions += before.map_or(0, |process| process.ran());
        let mut process = Process { number, space, ..Process::default() };
        if let Some(parent) = self.processes.get(&message.parent) {
            process.regions = parent.at_fork.clone();
            let (time, space) = (parent.time >> self.window << self.window, parent.space);
            events.push(Event { time, operation: Operation::Fork, space, page: number, nr: 1 });
        }
        self.processes.insert(message.process, process);
    }

    fn entry(&mut self, id: u64, Entry { time, deed }: Entry, events: &mut Vec<Event>) {
        match &deed {
            Deed::Name { file, name } => return self.name(*file, name),
            Deed::Outside { path } if !self.counts.outside.contains(path) => {
                self.counts.outside.push(path.clone());
            }
            _ => {}
        }
        let file = match deed {
            Deed::Map { file, .. } | Deed::Transfer { file, .. } if file != (0, 0) => {
                Some(self.file(file))
            }
            _ => None,
        };
        let process = self.processes.get_mut(&id).expect("it arrived");
        process.time = process.time.max(time);
        process.began.get_or_insert(time);
        if let Deed::Exec { path } = &deed {
            let (number, space) = (process.number, process.space);
            self.names.push((space, format!("process {number}: {path}")));
        }
        process.act(time >> self.window << self.window, deed, file, events);
    }

    fn name(&mut self, file: File, name: &str) {
        if !self.files.contains_key(&file) {
            let space = self.space(name.to_string());
            self.files.insert(file, space);
        }
    }
}

impl Process {
    fn ran(&self) -> u64 {
        self.time - self.began.unwrap_or(self.time)
    }

    fn act(&mut self, time: u64, deed: Deed, file: Option<u32>, events: &mut Vec<Event>) {
        let own = self.space;
        let mut put = |operation, space, page, nr| {
            events.push(Event { time, operation, space, page, nr });
        };
        match deed {
            Deed::Access { page, store } => {
                let operation = if store { Operation::Store } else { Operation::Load };
                match self.regions.access(page, store) {
                    Met::Own => put(operation, own, page, 1),
                    Met::File(space, at) => put(operation, space, at, 1),
                    // The kernel reads the file's page and copies it.
                    Met::Copied(space, at) => {
                        put(Operation::Load, space, at, 1);
                        put(Operation::Store, own, page, 1);
                    }
                }
            }
            Deed::Map { start, bytes, offset, private, .. } => {
                let mapped = pages(start, bytes);
                runs(mapped.clone(), |page, nr| put(Operation::Map, own, page, nr));
                self.regions.map(mapped, file.map(|file| (file, offset >> 12)), private);
            }
            Deed::Unmap { start, bytes } => {
                runs(pages(start, bytes), |page, nr| put(Operation::Unmap, own, page, nr));
                self.regions.unmap(pages(start, bytes));
            }
            Deed::Move { start, bytes, to, to_bytes } => {
                runs(pages(start, bytes), |page, nr| put(Operation::Unmap, own, page, nr));
                runs(pages(to, to_bytes), |page, nr| put(Operation::Map, own, page, nr));
                self.regions.shift(pages(start, bytes), pages(to, to_bytes));
            }
            Deed::Transfer { write, offset, bytes, .. } => {
                let operation = if write { Operation::Write } else { Operation::Read };
                let Some(file) = file else { return };
                runs(pages(offset, bytes), |page, nr| put(operation, file, page, nr));
            }
            Deed::Fork => self.at_fork = self.regions.clone(),
            Deed::Exec { .. } => (self.regions, self.next) = (Regions::default(), 0),
            Deed::Outside { .. } | Deed::Exit => self.ended = true,
            Deed::Name { .. } | Deed::Born => {}
        }
    }
}

/// Cuts a range into runs that one event can hold.
fn runs(pages: std::ops::Range<u64>, mut put: impl FnMut(u64, u64)) {
    let mut at = pages.start;
    while at < pages.end {
        let nr = (pages.end - at).min(MOST_PAGES);
        put(at, nr);
        at += nr;
    }
}

#[cfg(test)]
mod tests;
