//! Decides what a flusher thread writes next. It is woken for a reason, and a pass for that reason
//! visits files in the order in which they were dirtied, a chunk of each at a time.
//!
//! | reason | which files | until |
//! |---|---|---|
//! | sync | all dirty at the start | all were visited once |
//! | vmscan | all dirty at the start | as many pages as were dirty then |
//! | background | all | dirty pages are below the threshold, or nothing can be written |
//! | periodic | dirty for longer than the expiry | as many pages as were dirty at the start |
//!
//! Sync goes first, periodic last. A chunk that ends inside a file leaves a cursor; the next visit
//! goes on there and comes round to it.

use std::collections::VecDeque;

use mglru::types::{MemcgId, Nanos};
use mglru_workload::op::FileId;

use super::{DirtyFiles, DirtySpec, FileScan};

/// Pages of a file written before the next file has its turn: 4 MiB.
const CHUNK: u64 = 1_024;
const REASONS: [Reason; 4] = [Reason::Sync, Reason::Vmscan, Reason::Background, Reason::Periodic];

/// Names the reason for which the flusher writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Serves a sync: a caller waits for everything.
    Sync,
    /// Serves reclaim, which met dirty pages.
    Vmscan,
    /// Writes in the background: too many pages are dirty.
    Background,
    /// Writes data that has been dirty for long.
    Periodic,
}

/// Describes dirty pages in a row, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Names the file.
    pub file: FileId,
    /// Holds the first page.
    pub page: u64,
    /// Counts the pages.
    pub pages: u64,
    /// Names the reason.
    pub reason: Reason,
}

/// Holds the state of a flusher thread, of one owner's files or of all.
#[derive(Clone, Debug)]
pub struct Flusher {
    owner: Option<MemcgId>,
    request_pages: u64,
    expire: Nanos,
    interval: Nanos,
    next_tick: Nanos,
    /// Woken for, by reason.
    wanted: [bool; REASONS.len()],
    wakeups: [u64; REASONS.len()],
    pass: Option<Pass>,
}

#[derive(Clone, Debug)]
struct Pass {
    reason: Reason,
    dirtied_before: Nanos,
    /// Pages still to be offered.
    budget: u64,
    /// [`DirtyFiles::cleared`] when the budget was set: has anything been written since?
    cleared: u64,
    files: VecDeque<FileId>,
    rounds: u32,
    visit: Option<Visit>,
}

#[derive(Clone, Debug)]
struct Visit {
    scan: FileScan,
    chunk: u64,
}

impl Flusher {
    /// Creates an idle flusher of one owner's files, or of all.
    pub fn new(spec: &DirtySpec, owner: Option<MemcgId>) -> Self {
        let interval = spec.wake_ms * 1_000_000;
        Self {
            owner,
            request_pages: spec.request_pages(),
            expire: spec.expire_ms * 1_000_000,
            interval,
            next_tick: interval,
            wanted: [false; REASONS.len()],
            wakeups: [0; REASONS.len()],
            pass: None,
        }
    }

    /// Returns the owner of the files that it writes; `None`: all files.
    pub fn owner(&self) -> Option<MemcgId> {
        self.owner
    }

    /// Wakes it. A reason it is at work for already is not noted again, except sync, which is for
    /// what is dirty now.
    pub fn wake(&mut self, reason: Reason) {
        if reason == Reason::Sync || !self.is_busy_with(reason) {
            self.wanted[reason as usize] = true;
        }
        self.wakeups[reason as usize] += 1;
    }

    /// Returns the time when [`Flusher::tick`] is due.
    pub fn next_tick(&self) -> Nanos {
        self.next_tick
    }

    /// Handles the periodic wake-up.
    pub fn tick(&mut self, now: Nanos) {
        self.next_tick = now + self.interval;
        self.wake(Reason::Periodic);
        self.wake(Reason::Background);
    }

    /// Counts the times that it was woken for a reason.
    pub fn wakeups(&self, reason: Reason) -> u64 {
        self.wakeups[reason as usize]
    }

    /// Tells whether it has work, or may find some when asked.
    pub fn is_awake(&self) -> bool {
        self.pass.is_some() || self.wanted.contains(&true)
    }

    /// Tells whether it is at work for `reason`, or will be: a caller that waits for a sync waits
    /// while this holds, and then for the writes that were started.
    pub fn is_busy_with(&self, reason: Reason) -> bool {
        let at_work = self.pass.as_ref().is_some_and(|pass| pass.reason == reason);
        at_work || self.wanted[reason as usize]
    }

    /// Picks the file to write next; `None`: back to sleep. The machine starts writeback of those
    /// pages it can and clears them in `files`; the others are passed over until a later visit.
    pub fn next(
        &mut self,
        now: Nanos,
        files: &mut DirtyFiles,
        above_background: bool,
    ) -> Option<Run> {
        loop {
            if self.pass.is_none() {
                self.pass = Some(self.start(now, files)?);
            }
            let (max, owner) = (self.request_pages, self.owner);
            let pass = self.pass.as_mut()?;
            let over = pass.is_over(files, above_background);
            if let Some(run) = (!over).then(|| pass.next(now, files, owner, max)).flatten() {
                return Some(run);
            }
            pass.leave(files);
            self.pass = None;
        }
    }

    fn start(&mut self, now: Nanos, files: &DirtyFiles) -> Option<Pass> {
        let reason = *REASONS.iter().find(|reason| self.wanted[**reason as usize])?;
        self.wanted[reason as usize] = false;
        let dirtied_before = match reason {
            // Nothing is old enough yet.
            Reason::Periodic if now < self.expire => return self.start(now, files),
            Reason::Periodic => now - self.expire,
            _ => now,
        };
        Some(Pass {
            reason,
            dirtied_before,
            budget: files.total(),
            cleared: files.cleared(),
            files: VecDeque::new(),
            rounds: 0,
            visit: None,
        })
    }
}

impl Pass {
    /// Takes the next run off the current file, or off the next one.
    fn next(
        &mut self,
        now: Nanos,
        files: &mut DirtyFiles,
        owner: Option<MemcgId>,
        max: u64,
    ) -> Option<Run> {
        loop {
            if self.visit.is_none() {
                let file = self.next_file(now, files, owner)?;
                self.visit = Some(self.visit_of(file, files));
            }
            let visit = self.visit.as_mut()?;
            let file = visit.scan.file();
            let max = max.min(visit.chunk).min(self.budget);
            if max == 0 {
                self.leave(files);
                self.files.push_back(file);
            } else if let Some((page, pages)) = visit.scan.next(files, max) {
                visit.chunk -= pages;
                self.budget = self.budget.saturating_sub(pages);
                return Some(Run { file, page, pages, reason: self.reason });
            } else {
                self.visit = None;
                files.visited(file, now);
            }
        }
    }

    /// Nothing is left to do; a background pass that still gets pages written goes on.
    fn is_over(&mut self, files: &DirtyFiles, above_background: bool) -> bool {
        if self.reason == Reason::Background {
            if !above_background {
                return true;
            }
            if self.budget == 0 && files.cleared() != self.cleared {
                (self.budget, self.cleared) = (files.total(), files.cleared());
            }
        }
        self.budget == 0
    }

    fn next_file(
        &mut self,
        now: Nanos,
        files: &DirtyFiles,
        owner: Option<MemcgId>,
    ) -> Option<FileId> {
        if self.files.is_empty() && (self.rounds == 0 || self.reason == Reason::Background) {
            let before = if self.reason == Reason::Background { now } else { self.dirtied_before };
            self.files.extend(files.dirtied_by(before, owner));
            self.rounds += 1;
        }
        self.files.pop_front()
    }

    fn visit_of(&self, file: FileId, files: &DirtyFiles) -> Visit {
        match self.reason {
            Reason::Sync => Visit { scan: FileScan::whole(files, file), chunk: u64::MAX },
            _ => {
                let scan = FileScan::from_page(files, file, files.cursor(file));
                Visit { scan, chunk: CHUNK }
            }
        }
    }

    /// Leaves the current file before its end.
    fn leave(&mut self, files: &mut DirtyFiles) {
        if let Some(visit) = self.visit.take() {
            files.set_cursor(visit.scan.file(), visit.scan.at());
        }
    }
}

#[cfg(test)]
mod tests;
