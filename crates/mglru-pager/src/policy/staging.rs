//! The way out of a heap: staging. Where nothing shows whether a mapped page is used, it is taken
//! from the program first and waits there, as if it were being written. Used again it is rescued;
//! if not, it leaves when it is the oldest, or when faults wait for room. Where the kernel keeps
//! accessed bits, what comes here was not used, and leaves at once.

use mglru::folio::Bit;
use mglru::host::Outcome;

use super::Policy;
use super::evict::Victim;
use super::world::World;
use crate::account::PAGE_COST;
use crate::arena::{Arena, Backing, Bits};
use crate::pages::Presence;

/// Staged pages are at most this share of what is in memory: a small probation queue (a tenth,
/// as S3-FIFO's) finds what is used again, and a hot page is taken from the program the less
/// often the smaller it is.
const SHARE: u64 = 10;
/// Pages let go at once when there is need.
const BATCH: usize = 64;

impl World {
    /// Takes a run of mapped pages from the program; what became of each is its outcome.
    pub(super) fn stage(&mut self, arena: &Arena, run: &mut [Victim]) {
        let staging = arena.staging().expect("a heap has staging");
        let mut shared = Vec::new();
        let mut at = 0;
        while at < run.len() {
            let span = arena.span(run[at].page, (run.len() - at) as u32);
            let (bytes, end) = staging.take(arena.view(), span);
            let mut taken = (bytes / crate::sys::PAGE as u64) as usize;
            let end = end.or_else(|why| take_unwritable(arena, run[at + taken].page, why));
            // A page of these was not moved with the others, but alone.
            taken += usize::from(end.is_ok() && at + taken < run.len());
            for victim in &mut run[at..at + taken] {
                if arena.bits() == Bits::Kept {
                    victim.presence = Presence::Staged;
                } else {
                    victim.outcome = Outcome::WriteQueued;
                    self.staged.push_back((arena.id(), victim.page));
                }
            }
            at += taken;
            if let Err(error) = end {
                run[at].outcome = refusal(&error);
                if run[at].outcome == Outcome::Busy {
                    shared.push(arena.view().address(run[at].page));
                }
                at += 1;
            }
        }
        if let (Backing::Heap(children), false) = (arena.backing(), shared.is_empty()) {
            children.unshare(shared);
        }
    }

    /// Pages are on their way to where they can be taken.
    pub(super) fn is_unsharing(&self) -> bool {
        self.live().any(|attached| match attached.arena.backing() {
            Backing::Heap(children) => children.is_unsharing(),
            _ => false,
        })
    }
}

/// Takes a page that is refused because it may not be stored to.
fn take_unwritable(arena: &Arena, page: u32, why: std::io::Error) -> std::io::Result<()> {
    match (why.raw_os_error(), arena.staging()) {
        (Some(libc::EINVAL), Some(staging)) => {
            staging.take_unwritable(arena.view(), arena.offset(page))
        }
        _ => Err(why),
    }
}

/// Why a page was not taken. One that is neither here nor staged the program has dropped: it is
/// zeros, which take no room.
fn refusal(error: &std::io::Error) -> Outcome {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Outcome::Ready { wrote: true },
        // Locked in memory.
        Some(libc::EINVAL) => Outcome::Pinned,
        _ => Outcome::Busy,
    }
}

impl Policy {
    /// Lets the oldest staged pages go that are too many.
    pub(super) fn trim_staging(&mut self) {
        let most = (self.world.accounts[0].usage() / PAGE_COST / SHARE) as usize;
        let excess = self.world.staged.len().saturating_sub(most);
        self.let_go(excess);
    }

    /// Faults wait: more go. False when there are none.
    pub(super) fn hasten_staging(&mut self) -> bool {
        self.let_go(BATCH.min(self.world.staged.len()))
    }

    fn let_go(&mut self, n: usize) -> bool {
        for (id, page) in self.world.staged.drain(..n).collect::<Vec<_>>() {
            self.let_one_go(id, page);
        }
        if n > 0 {
            self.jobs.iter_mut().for_each(|job| job.asleep_until = 0);
        }
        n > 0
    }

    /// Reclaim meets the page next, and takes it unless it was rescued.
    fn let_one_go(&mut self, id: u32, page: u32) {
        let Some(attached) = self.world.arenas[id as usize].as_ref() else { return };
        let Some(folio) = attached.entries.folio(page) else { return };
        let presence = attached.arena.pages().presence(page);
        if !self.lru.folios()[folio].flags.has(Bit::WRITEBACK) {
            return;
        }
        if presence != Presence::Staged {
            self.lru.folios_mut()[folio].flags.clear(Bit::RECLAIM);
        }
        self.lru.end_writeback(folio);
    }

    /// The program gave a page up; it may have touched it again since.
    pub(super) fn dropped(&mut self, id: u32, page: u32) {
        let attached = self.world.attached(id);
        if attached.arena.pages().presence(page).is_resident() {
            return;
        }
        if let Some(folio) = attached.entries.folio(page) {
            if self.lru.folios()[folio].flags.has(Bit::WRITEBACK) {
                self.lru.folios_mut()[folio].flags.clear(Bit::RECLAIM);
                self.lru.end_writeback(folio);
            }
        }
        self.drop_folio(id, page);
    }

    /// A heap cannot be swapped faster than its shared pages become its own.
    pub(super) fn waits_for_heaps(&mut self) -> bool {
        self.world.is_unsharing() || self.hasten_staging()
    }
}
