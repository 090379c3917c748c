//! Carrying an eviction out, in the order that loses no store:
//!
//! 1. lock the page, look at its state again;
//! 2. if it is dirty, protect it in all views: a store from now on is a fault that waits for 1;
//! 3. read it, compress it or start to write it;
//! 4. give the memory back: entries go, markers stay;
//! 5. absent, unlocked: a waiting fault loads what 3 kept.
//!
//! Step 3 saves a store before step 2. A later store faults, waits, and is made to the page that is
//! reloaded after step 5.
//!
//! A heap's pages are moved to staging instead of 2. Where the kernel does not say which of them
//! are used they are done with for now; 3 to 5 come when reclaim meets them again (`staging`).

use std::os::fd::AsFd;

use mglru::folio::{Bit, Folios};
use mglru::host::{Eviction, Outcome};

use super::world::World;
use crate::account::{Happened, PAGE_COST};
use crate::arena::Arena;
use crate::pages::{Presence, Slot};
use crate::swap::Stored;
use crate::sys::raw;

/// Pages packed before any of them is freed. Each may open a chunk of the pool: what that adds
/// for a moment is what faults leave free (`account`).
const TOGETHER: usize = 16;

/// The owner of a folio, and its place in the batch.
type Order = ([u32; 2], usize);

/// A page that is locked on its way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    arena: u32,
    pub(super) page: u32,
    pub(super) presence: Presence,
    /// Its place in the batch.
    nth: usize,
    pub(super) outcome: Outcome,
}

impl World {
    /// Evicts what can be; neighbours go together.
    pub(super) fn evict_batch(&mut self, folios: &mut Folios, batch: &mut [Eviction]) {
        let owner = |nth: usize| folios[batch[nth].folio].owner;
        let mut order: Vec<_> = (0..batch.len()).map(|nth| (owner(nth), nth)).collect();
        order.sort_unstable();
        let follow = |&([a, page], _): &Order, &([b, next], _): &Order| a == b && page + 1 == next;
        let mut victims = std::mem::take(&mut self.victims);
        // A fault on a locked page waits: no more are locked than is of use.
        for some in order.chunk_by(follow).flat_map(|run| run.chunks(TOGETHER)) {
            self.lock_victims(folios, batch, some, &mut victims);
            self.stage_mapped(&mut victims);
            self.protect_dirty(&victims);
            victims.iter_mut().for_each(|victim| self.save(victim));
            self.release_runs(&victims);
            for victim in victims.drain(..) {
                let eviction = &mut batch[victim.nth];
                eviction.outcome = self.finish(&victim, &mut folios[eviction.folio]);
            }
            self.settle_slack();
        }
        self.victims = victims;
    }

    fn lock_victims(
        &mut self,
        folios: &Folios,
        batch: &mut [Eviction],
        some: &[Order],
        victims: &mut Vec<Victim>,
    ) {
        for &([arena, page], nth) in some {
            let Eviction { folio, may_write, .. } = batch[nth];
            let swaps = folios[folio].flags.has(Bit::SWAPBACKED);
            match self.lock_victim(arena, page, may_write, swaps) {
                Ok(presence) => {
                    let wrote = presence == Presence::Dirty;
                    let outcome = Outcome::Ready { wrote };
                    victims.push(Victim { arena, page, presence, nth, outcome });
                }
                Err(outcome) => batch[nth].outcome = outcome,
            }
        }
    }

    fn lock_victim(
        &mut self,
        id: u32,
        page: u32,
        may_write: bool,
        swaps: bool,
    ) -> Result<Presence, Outcome> {
        let arena = self.attached(id).arena.clone();
        let Some(presence) = arena.pages().try_lock(page) else { return Err(Outcome::Busy) };
        let unsaved = presence == Presence::Dirty || arena.is_unsaved(page, presence);
        let dirty_file = presence == Presence::Dirty && !arena.is_anon();
        let refused = if arena.pages().is_pinned(page) {
            Outcome::Pinned
        } else if self.second_chance && self.take_accessed(id, page) {
            Outcome::Busy
        } else if dirty_file {
            self.met_dirty.insert((id, page));
            Outcome::Dirty
        } else if unsaved && !(may_write && swaps) || !presence.is_resident() {
            // A private copy's first-store event may still be queued.
            Outcome::Busy
        } else if !unsaved && self.swap.is_being_written(arena.pages().slot(page)) {
            // A heap page staged twice: the write of the first time may end only now.
            Outcome::Busy
        } else {
            return Ok(presence);
        };
        unlock(&arena, page, presence);
        Err(refused)
    }

    /// Step 2, a run at a time: they were zapped when they were judged, so this rarely costs a
    /// TLB flush.
    fn protect_dirty(&self, victims: &[Victim]) {
        let dirty = |v: &&Victim| v.presence == Presence::Dirty && !self.is_heap(v);
        for run in runs(victims.iter().filter(dirty)) {
            let arena = &self.attached(run.arena).arena;
            arena.uffd().protect(arena.view().pages(run.first, run.n)).expect("an arena's pages");
        }
    }

    fn is_heap(&self, victim: &Victim) -> bool {
        self.attached(victim.arena).arena.is_heap()
    }

    /// Moves mapped pages of heaps to staging.
    fn stage_mapped(&mut self, victims: &mut [Victim]) {
        let runs: Vec<Run> =
            runs(victims.iter().filter(|v| v.presence.is_mapped() && self.is_heap(v))).collect();
        for run in runs {
            let arena = self.attached(run.arena).arena.clone();
            let first = victims.iter().position(|v| (v.arena, v.page) == (run.arena, run.first));
            let first = first.expect("the run is of these victims");
            self.stage(&arena, &mut victims[first..][..run.n as usize]);
        }
    }

    /// Step 3. Only anonymous pages come here dirty.
    fn save(&mut self, victim: &mut Victim) {
        let arena = self.attached(victim.arena).arena.clone();
        let staged = arena.is_unsaved(victim.page, victim.presence);
        let dirty = victim.presence == Presence::Dirty && !arena.is_heap();
        if !(staged || dirty) {
            return;
        }
        let offset = arena.offset(victim.page);
        if arena.memory().read(offset, &mut self.page).is_err() {
            victim.outcome = Outcome::Busy;
            return;
        }
        victim.outcome = self.swap_out(&arena, victim.page);
    }

    /// Finds the page in the buffer a place in swap.
    fn swap_out(&mut self, arena: &Arena, page: u32) -> Outcome {
        if !arena.account().try_charge_swap() {
            arena.account().note(Happened::SwapFail);
            return Outcome::NoSwapSlot;
        }
        let payer = arena.account().memcg;
        let stored = match arena.is_copy() {
            // Without a slot it would be what its store holds.
            true => self.swap.keep(&self.page, payer, &mut self.scratch),
            false => self.swap.store(&self.page, payer, &mut self.scratch),
        };
        match stored {
            Stored::Zeros => {
                arena.account().note(Happened::SwpoutZero);
                arena.account().uncharge_swap();
                Outcome::Ready { wrote: true }
            }
            Stored::Pooled(slot, bytes) => {
                arena.account().note(Happened::Zswpout);
                arena.account().charge_anyway(bytes);
                arena.pages().set_slot(page, slot);
                Outcome::Ready { wrote: true }
            }
            Stored::ToWrite(slot) => self.write_to_swap(arena, page, slot),
            Stored::Full => {
                arena.account().uncharge_swap();
                arena.account().note(Happened::SwapFail);
                Outcome::NoSwapSlot
            }
        }
    }

    fn write_to_swap(&mut self, arena: &Arena, page: u32, slot: Slot) -> Outcome {
        let offset = self.swap.offset(slot).expect("the slot is in the file");
        let file = self.swap.file().expect("there is a file");
        if self.writer.is_late() {
            return self.write_by_hand(arena, page, slot);
        }
        if self.writer.write_swap(file, (arena.id(), page, slot), offset, &self.page) {
            arena.account().note(Happened::Pswpout);
            arena.pages().set_slot(page, slot);
            return Outcome::WriteQueued;
        }
        self.swap.written(slot);
        self.swap.free(slot);
        arena.account().uncharge_swap();
        Outcome::Busy
    }

    /// Writes the page in the buffer and waits for it: it may go at once.
    fn write_by_hand(&mut self, arena: &Arena, page: u32, slot: Slot) -> Outcome {
        let offset = self.swap.offset(slot).expect("the slot is in the file");
        let file = self.swap.file().expect("there is a file").as_fd();
        let wrote = self.writer.by_hand.make(|| raw::write_all(file, &self.page, offset));
        self.swap.written(slot);
        if let Err(error) = wrote {
            self.swap.note_error(&error);
            self.attached(arena.id()).arena.note_error(&error);
            self.swap.free(slot);
            arena.account().uncharge_swap();
            return Outcome::Busy;
        }
        arena.account().note(Happened::Pswpout);
        arena.pages().set_slot(page, slot);
        Outcome::Ready { wrote: true }
    }

    /// Step 4.
    fn release_runs(&self, victims: &[Victim]) {
        let ready = |v: &&Victim| matches!(v.outcome, Outcome::Ready { .. });
        for run in runs(victims.iter().filter(ready)) {
            let arena = &self.attached(run.arena).arena;
            arena.memory().release(arena.span(run.first, run.n)).expect("an arena's pages");
        }
    }

    /// Step 5, or back to where it was. A page being written is clean from now on: a store to it
    /// is a fault that makes it dirty again.
    fn finish(&self, victim: &Victim, folio: &mut mglru::folio::Folio) -> Outcome {
        let arena = &self.attached(victim.arena).arena;
        let after = match victim.outcome {
            Outcome::Ready { .. } => {
                arena.account().uncharge(PAGE_COST);
                folio.set_mapcount(0);
                Presence::Absent
            }
            Outcome::WriteQueued if arena.is_heap() => Presence::Staged,
            Outcome::WriteQueued => Presence::Clean,
            _ => victim.presence,
        };
        unlock(arena, victim.page, after);
        match victim.outcome {
            // The event of its last store may still be on its way.
            Outcome::Ready { wrote } => {
                Outcome::Ready { wrote: wrote || folio.flags.has(Bit::DIRTY) }
            }
            other => other,
        }
    }
}

/// Unlocks a page and lets a fault that waits for it go on.
pub(super) fn unlock(arena: &Arena, page: u32, presence: Presence) {
    if arena.pages().unlock(page, presence) {
        arena.ring_handlers();
    }
}

/// Neighbouring pages of one arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    arena: u32,
    first: u32,
    n: u32,
}

/// The runs of sorted victims.
fn runs<'a>(victims: impl Iterator<Item = &'a Victim>) -> impl Iterator<Item = Run> {
    let mut victims = victims.map(|v| (v.arena, v.page)).peekable();
    std::iter::from_fn(move || {
        let (arena, first) = victims.next()?;
        let mut n = 1;
        while victims.next_if_eq(&(arena, first + n)).is_some() {
            n += 1;
        }
        Some(Run { arena, first, n })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_make_a_run() {
        let victim = |arena, page| Victim {
            arena,
            page,
            presence: Presence::Clean,
            nth: 0,
            outcome: Outcome::Pending,
        };
        let victims = [(0, 3), (0, 4), (0, 6), (1, 7), (1, 8)].map(|(a, p)| victim(a, p));
        let found: Vec<_> = runs(victims.iter()).map(|r| (r.arena, r.first, r.n)).collect();
        assert_eq!(found, [(0, 3, 2), (0, 6, 1), (1, 7, 2)]);
    }
}
