//! Decides what is written when: first the dirty pages that reclaim met, then what callers asked to
//! be written, then what nobody asked for in a while.

use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;

use super::writeback::{CLUSTER, Started, Why};
use super::{EXPIRY, Policy};

/// A request to write the dirty pages of a range.
pub(super) struct Flush {
    arena: u32,
    at: u32,
    end: u32,
    /// Once the range was gone through: the newest write to wait for.
    waits_for: Option<u64>,
    reply: Option<SyncSender<()>>,
}

/// Where a flush stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Goes on at once.
    Moving,
    /// Waits for a write to end.
    Waiting,
    /// Has written everything.
    Over,
}

impl Flush {
    pub(super) fn is_of(&self, arena: u32) -> bool {
        self.arena == arena
    }
}

impl Policy {
    /// Asks for the dirty pages of a range to be written; `reply` is sent to when they are.
    pub(crate) fn request_flush(
        &mut self,
        arena: u32,
        first: u32,
        nr_pages: u32,
        reply: Option<SyncSender<()>>,
    ) {
        let end = first.saturating_add(nr_pages);
        self.flushes.push(Flush { arena, at: first, end, waits_for: None, reply });
    }

    /// Starts writes. True when there is more to do at once.
    pub(super) fn flush(&mut self) -> bool {
        let reclaim = self.write_met_dirty();
        let asked = self.advance_flushes();
        self.sweep();
        reclaim || asked
    }

    /// Reclaim turns dirty pages back; written, they are first in line.
    fn write_met_dirty(&mut self) -> bool {
        let mut started = false;
        while let Some(&(arena, first)) = self.world.met_dirty.first() {
            let n = run_length(&self.world.met_dirty).min(CLUSTER);
            let wrote = match self.world.write_run(arena, first, n, Why::Reclaim, &mut self.lru) {
                Started::Pages(wrote) => wrote,
                Started::Full => break,
                // Clean, gone or being written: reclaim will see what it is now.
                Started::Again | Started::Underway | Started::Failed => 1,
            };
            started = true;
            (first..first + wrote).for_each(|page| _ = self.world.met_dirty.remove(&(arena, page)));
        }
        started
    }

    fn advance_flushes(&mut self) -> bool {
        let mut flushes = std::mem::take(&mut self.flushes);
        let mut moved = false;
        flushes.retain_mut(|flush| match self.advance(flush) {
            Progress::Over => false,
            progress => {
                moved |= progress == Progress::Moving;
                true
            }
        });
        flushes.append(&mut self.flushes);
        self.flushes = flushes;
        moved
    }

    /// Takes a flush further.
    fn advance(&mut self, flush: &mut Flush) -> Progress {
        let attached = self.world.arenas[flush.arena as usize].as_ref();
        let Some(arena) = attached.map(|a| a.arena.clone()) else { return Progress::Over };
        let why = if flush.reply.is_some() { Why::Flush } else { Why::Expired };
        while let Some(page) = arena.dirty(flush.at..flush.end).next() {
            flush.at = page;
            let most = flush.end - page;
            match self.world.write_run(flush.arena, page, most, why, &mut self.lru) {
                Started::Pages(n) => flush.at += n,
                Started::Failed => flush.at += 1,
                Started::Full | Started::Underway => return Progress::Waiting,
                Started::Again => return Progress::Moving,
            }
        }
        flush.at = flush.end;
        let newest = *flush.waits_for.get_or_insert(self.world.writer.newest());
        if self.world.writer.is_writing(flush.arena, newest) {
            return Progress::Waiting;
        }
        if let Some(reply) = &flush.reply {
            // Nobody waits any more: then nobody needs a message.
            let _ = reply.send(());
        }
        Progress::Over
    }

    /// Writes everything dirty, so that nothing is dirty for longer.
    fn sweep(&mut self) {
        let now = self.world.clock.now();
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + EXPIRY.as_nanos() as u64;
        let stores = self.world.live().filter(|attached| !attached.arena.is_anon());
        let ranges: Vec<_> = stores.map(|a| (a.arena.id(), a.arena.pages().len())).collect();
        for (arena, nr_pages) in ranges {
            self.request_flush(arena, 0, nr_pages, None);
        }
    }
}

/// Neighbours from the first on.
fn run_length(met: &BTreeSet<(u32, u32)>) -> u32 {
    let follows = |&(&(arena, page), &next): &(&(u32, u32), &(u32, u32))| (arena, page + 1) == next;
    met.iter().zip(met.iter().skip(1)).take_while(follows).count() as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_a_hole_or_another_arena() {
        assert_eq!(run_length(&[(0, 1)].into()), 1);
        assert_eq!(run_length(&[(0, 1), (0, 2), (0, 4)].into()), 2);
        assert_eq!(run_length(&[(0, 1), (1, 2)].into()), 1);
    }
}
