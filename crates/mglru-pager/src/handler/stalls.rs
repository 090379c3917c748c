//! Which faults make their threads stall, and how long each fault took.

use super::waiting::Why;
use super::{Handler, Touch};
use crate::faults::Kind;
use crate::sys::clock;

/// A stall that begins and ends while one fault is served.
#[must_use]
pub(super) struct Stall(bool);

impl Handler {
    /// Faults that wait, here or for a read.
    pub(super) fn under_way(&self) -> usize {
        self.installer.waiting.len() + self.reading.iter().flatten().count()
    }

    /// A fault is over.
    pub(super) fn served(&self, kind: Kind, touch: Touch) {
        let took = clock::monotonic().saturating_sub(touch.since);
        self.arena.account().faults.note(kind, took);
    }

    /// Begins a stall for a page that is brought back now, if its absence is one.
    pub(super) fn stall_here(&self, page: u32) -> Stall {
        let missed = self.arena.is_missed(page);
        if missed {
            self.arena.account().shift_stalls(1);
        }
        Stall(missed)
    }

    /// Ends it.
    pub(super) fn end_stall(&self, stall: Stall) {
        if stall.0 {
            self.arena.account().shift_stalls(-1);
        }
    }

    /// Threads stall whose faults wait for room, or for a page that was evicted too early.
    pub(super) fn note_stalls(&mut self) {
        let reading = self.reading.iter().flatten().filter(|reading| reading.is_stall()).count();
        let waiting = self.installer.waiting.count(Why::Room);
        self.set_stalled((reading + waiting) as u32);
    }

    pub(super) fn set_stalled(&mut self, stalled: u32) {
        if stalled != self.stalled {
            self.arena.account().shift_stalls(stalled as i32 - self.stalled as i32);
            self.stalled = stalled;
        }
    }
}
