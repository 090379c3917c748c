//! What is written when: first the dirty pages that reclaim met, then what callers asked to be
//! written, then what nobody asked for in a while.

use std::sync::mpsc::SyncSender;

use super::writeback::{CLUSTER, Started};
use super::{Policy, SWEEP};

/// Sweeps after which a dirty page is written: as Linux's 30 seconds.
const SWEEPS_OF_EXPIRY: u64 = 6;

/// A request to write the dirty pages of a range.
pub(super) struct Flush {
    arena: u32,
    at: u32,
    end: u32,
    /// Once the range was gone through: the newest write to wait for.
    waits_for: Option<u64>,
    reply: Option<SyncSender<()>>,
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
        if self.world.met_dirty.is_empty() {
            return false;
        }
        let mut met = std::mem::take(&mut self.world.met_dirty);
        met.sort_unstable();
        met.dedup();
        let mut at = 0;
        let mut started = 0;
        while at < met.len() {
            let (arena, first) = met[at];
            let n = run_length(&met[at..]).min(CLUSTER);
            match self.world.write_run(arena, first, n, &mut self.lru) {
                Started::Pages(written) => {
                    at += written as usize;
                    started += written;
                }
                // Clean, gone or being written: reclaim will see what it is now.
                Started::NotNow => at += 1,
                Started::Full => break,
            }
        }
        met.drain(..at);
        self.world.met_dirty = met;
        started > 0
    }

    fn advance_flushes(&mut self) -> bool {
        let mut moved = false;
        let mut flushes = std::mem::take(&mut self.flushes);
        flushes.retain_mut(|flush| {
            let before = (flush.at, flush.waits_for);
            let over = self.advance(flush);
            moved |= over || before != (flush.at, flush.waits_for);
            !over
        });
        flushes.append(&mut self.flushes);
        self.flushes = flushes;
        moved
    }

    /// Takes a flush further. True when it is over.
    fn advance(&mut self, flush: &mut Flush) -> bool {
        let Some(attached) = self.world.arenas[flush.arena as usize].as_ref() else { return true };
        let arena = attached.arena.clone();
        if flush.waits_for.is_none() {
            loop {
                let Some(page) = arena.pages.dirty(flush.at, flush.end).next() else { break };
                flush.at = page;
                match self.world.write_run(flush.arena, page, flush.end - page, &mut self.lru) {
                    Started::Pages(n) => flush.at += n,
                    Started::Full => return false,
                    Started::NotNow if self.is_underway(flush.arena, page) => return false,
                    // It failed, which the caller will be told, or was cleaned meanwhile.
                    Started::NotNow => flush.at += 1,
                }
            }
            flush.at = flush.end;
            flush.waits_for = Some(self.world.writer.newest());
        }
        let over = !self.world.writer.is_writing(flush.arena, flush.waits_for.unwrap_or(0));
        if let (true, Some(reply)) = (over, &flush.reply) {
            // Nobody waits any more: then nobody needs to be told.
            let _ = reply.send(());
        }
        over
    }

    /// A dirty page that cannot be written now will be soon: a fault is being served on it, its
    /// event is on its way, or an older snapshot of it is being written.
    fn is_underway(&self, arena: u32, page: u32) -> bool {
        let attached = self.world.attached(arena);
        let Some(folio) = attached.entries.folio(page) else { return true };
        let flags = self.lru.folios()[folio].flags;
        match attached.arena.pages.try_lock(page) {
            None => true,
            Some(presence) => {
                super::evict::unlock(&attached.arena, page, presence);
                flags.has(mglru::Bit::WRITEBACK)
            }
        }
    }

    /// Every half a minute everything dirty is written.
    fn sweep(&mut self) {
        let now = self.world.clock.now();
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP.as_nanos() as u64 * SWEEPS_OF_EXPIRY;
        let stores = self.world.live().filter(|attached| !attached.arena.is_anon());
        let ranges: Vec<_> = stores.map(|a| (a.arena.id, a.arena.pages.len())).collect();
        for (arena, nr_pages) in ranges {
            self.request_flush(arena, 0, nr_pages, None);
        }
    }
}

/// Neighbours at the head of a sorted list.
fn run_length(met: &[(u32, u32)]) -> u32 {
    let follows = |w: &&[(u32, u32)]| w[0].0 == w[1].0 && w[0].1 + 1 == w[1].1;
    met.windows(2).take_while(follows).count() as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_a_hole_or_another_arena() {
        assert_eq!(run_length(&[(0, 1)]), 1);
        assert_eq!(run_length(&[(0, 1), (0, 2), (0, 4)]), 2);
        assert_eq!(run_length(&[(0, 1), (1, 2)]), 1);
    }
}
