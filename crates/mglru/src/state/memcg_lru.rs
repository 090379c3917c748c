//! The memcg LRU of a node: root reclaim finds a memcg to shrink without a walk over all of them,
//! and comes to each about as often as to any other (spec §7.1, §7.3). Invariants I21, I22.
//!
//! Memcgs stand in two live generations, old and young; each has eight bins and each bin is a list.
//! A third slot is kept free, so that a walker that still uses the last generation never takes it
//! for the young one. A walk goes once around the bins of the old generation, from a random bin on;
//! what it has aged goes to the young one. When the old generation is empty the young one becomes
//! old. Concurrent walkers and arrivals are spread by drawing the bin of every move.
//!
//! A list ends at its own head, which names its slot and bin: a walker that was carried into
//! another list along with the memcg it stood at notices there, and starts its bin again.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::host::Host;
use crate::types::MemcgId;

/// Slots of memcg generations; two are live (spec §2.4, `MEMCG_NR_GENS`).
pub(crate) const MEMCG_NR_GENS: usize = 3;
/// Bins of a memcg generation (`MEMCG_NR_BINS`).
pub(crate) const MEMCG_NR_BINS: usize = 8;
/// List heads come first in the table of links, then memcgs by their ids.
const NR_HEADS: usize = MEMCG_NR_GENS * MEMCG_NR_BINS;

/// A move inside the memcg LRU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// Puts a new group at the tail of a bin of the old generation.
    Online,
    /// Puts a group over its soft limit at the head of a bin of its generation.
    Head,
    /// Puts a group that is to be visited once more, later, at the tail of a bin of its generation.
    Tail,
    /// Puts an offline group at the head of a bin of the old generation.
    Old,
    /// Puts a group that is done for this generation at the tail of a bin of the young one.
    Young,
}

/// Where in its generation a memcg was put on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Default,
    Head,
    Tail,
}

/// Neighbours of a memcg, or of a list head; indices into the table of links.
#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
    /// The slot of its generation; `None`: in no bin.
    slot: Option<u8>,
    segment: Segment,
}

/// The memcg LRU of one node.
#[derive(Clone, Debug)]
pub(crate) struct MemcgLru {
    /// The old generation; only grows.
    seq: u64,
    /// Memcgs of each slot.
    count: [u32; MEMCG_NR_GENS],
    links: Vec<Link>,
    /// Moves that came when nobody could draw a bin; they are made before anybody looks.
    due: Vec<(MemcgId, Rotation)>,
}

/// A walk over the old generation as it was when the walk began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BinWalk {
    slot: u8,
    first_bin: u8,
    bin: u8,
    at: u32,
    /// Says where the memcg just left goes, once the next one is known.
    pub(crate) rotation: Option<(MemcgId, Rotation)>,
}

fn head(slot: u8, bin: u8) -> u32 {
    u32::from(slot) * MEMCG_NR_BINS as u32 + u32::from(bin)
}

fn index(memcg: MemcgId) -> usize {
    NR_HEADS + memcg.index()
}

/// Where the numbers of bins come from.
pub(crate) fn bins(host: &mut impl Host) -> impl FnMut() -> u8 {
    move || host.random_below(MEMCG_NR_BINS as u32) as u8
}

impl Default for MemcgLru {
    fn default() -> Self {
        let head = |at: usize| Link {
            prev: at as u32,
            next: at as u32,
            slot: Some((at / MEMCG_NR_BINS) as u8),
            segment: Segment::Default,
        };
        Self {
            seq: 0,
            count: [0; MEMCG_NR_GENS],
            links: (0..NR_HEADS).map(head).collect(),
            due: Vec::new(),
        }
    }
}

impl MemcgLru {
    /// A memcg came into being.
    pub(crate) fn add(&mut self, memcg: MemcgId) {
        let at = index(memcg);
        let nowhere = Link { prev: 0, next: 0, slot: None, segment: Segment::Default };
        self.links.resize(self.links.len().max(at + 1), nowhere);
        self.due.push((memcg, Rotation::Online));
    }

    /// A memcg was removed; it goes when nothing of it is left.
    pub(crate) fn offline(&mut self, memcg: MemcgId) {
        self.due.push((memcg, Rotation::Old));
    }

    /// A memcg exceeds its soft limit.
    pub(crate) fn exceed(&mut self, memcg: MemcgId) {
        self.due.push((memcg, Rotation::Head));
    }

    /// Nothing is left of a memcg.
    pub(crate) fn release(&mut self, memcg: MemcgId) {
        self.due.retain(|&(other, _)| other != memcg);
        if self.links[index(memcg)].slot.is_some() {
            let slot = self.unlink(memcg);
            self.advance(slot);
        }
    }

    /// Where in its generation the memcg was put on purpose.
    pub(crate) fn segment(&self, memcg: MemcgId) -> Segment {
        self.links[index(memcg)].segment
    }

    /// Moves a memcg.
    pub(crate) fn rotate(
        &mut self,
        memcg: MemcgId,
        rotation: Rotation,
        draw: &mut impl FnMut() -> u8,
    ) {
        self.settle(draw);
        self.make(memcg, rotation, draw);
    }

    /// Starts a walk at a random bin.
    pub(crate) fn walk(&mut self, draw: &mut impl FnMut() -> u8) -> BinWalk {
        self.settle(draw);
        let (slot, bin) = (self.old(), draw());
        BinWalk { slot, first_bin: bin, bin, at: head(slot, bin), rotation: None }
    }

    /// The next memcg of this bin that is still in the generation the walk began with.
    pub(crate) fn next(&self, walk: &mut BinWalk) -> Option<MemcgId> {
        loop {
            walk.at = self.links[walk.at as usize].next;
            let id = walk.at.checked_sub(NR_HEADS as u32)?;
            if self.links[walk.at as usize].slot == Some(walk.slot) {
                return Some(MemcgId(id));
            }
        }
    }

    /// A list has ended: to the next bin, or to the start of this one if the list was another's.
    /// False: all bins were visited.
    pub(crate) fn next_bin(&self, walk: &mut BinWalk) -> bool {
        let was_carried_away = walk.at != head(walk.slot, walk.bin);
        if !was_carried_away {
            walk.bin = (walk.bin + 1) % MEMCG_NR_BINS as u8;
        }
        walk.at = head(walk.slot, walk.bin);
        was_carried_away || walk.bin != walk.first_bin
    }

    /// Makes the moves that are due.
    fn settle(&mut self, draw: &mut impl FnMut() -> u8) {
        for (memcg, rotation) in core::mem::take(&mut self.due) {
            let was_put_there = self.segment(memcg) == Segment::Head;
            if rotation != Rotation::Head || !was_put_there {
                self.make(memcg, rotation, draw);
            }
        }
    }

    fn make(&mut self, memcg: MemcgId, rotation: Rotation, draw: &mut impl FnMut() -> u8) {
        let from = self.links[index(memcg)].slot.map(|_| self.unlink(memcg));
        let slot = match rotation {
            Rotation::Online | Rotation::Old => self.old(),
            Rotation::Young => self.young(),
            Rotation::Head | Rotation::Tail => from.expect("it stands in a bin"),
        };
        let at_head = matches!(rotation, Rotation::Head | Rotation::Old);
        let segment = match rotation {
            Rotation::Head => Segment::Head,
            Rotation::Tail => Segment::Tail,
            _ => Segment::Default,
        };
        self.link(memcg, slot, draw(), at_head);
        self.links[index(memcg)].segment = segment;
        from.into_iter().for_each(|from| self.advance(from));
    }

    fn link(&mut self, memcg: MemcgId, slot: u8, bin: u8, at_head: bool) {
        let (at, end) = (index(memcg) as u32, head(slot, bin));
        let (prev, next) = match at_head {
            true => (end, self.links[end as usize].next),
            false => (self.links[end as usize].prev, end),
        };
        let link = &mut self.links[at as usize];
        (link.prev, link.next, link.slot) = (prev, next, Some(slot));
        self.links[prev as usize].next = at;
        self.links[next as usize].prev = at;
        self.count[usize::from(slot)] += 1;
    }

    /// Takes a memcg out of its bin. It keeps its `next` for walkers that stand at it.
    fn unlink(&mut self, memcg: MemcgId) -> u8 {
        let link = &mut self.links[index(memcg)];
        let (prev, next) = (link.prev, link.next);
        let slot = link.slot.take().expect("it stands in a bin");
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
        self.count[usize::from(slot)] -= 1;
        slot
    }

    /// The young generation becomes the old one when that has lost its last memcg.
    fn advance(&mut self, left: u8) {
        if left == self.old() && self.count[usize::from(left)] == 0 {
            self.seq += 1;
        }
    }

    fn old(&self) -> u8 {
        (self.seq % MEMCG_NR_GENS as u64) as u8
    }

    fn young(&self) -> u8 {
        ((self.seq + 1) % MEMCG_NR_GENS as u64) as u8
    }

    /// I21: each of `nr` memcgs is in exactly one bin of a live generation, or about to be.
    ///
    /// # Errors
    /// Names the first that is not.
    pub(crate) fn check(&self, exists: impl Fn(MemcgId) -> bool) -> Result<(), String> {
        let mut seen = vec![false; self.links.len() - NR_HEADS];
        for slot in 0..MEMCG_NR_GENS as u8 {
            let mut members = 0;
            for bin in 0..MEMCG_NR_BINS as u8 {
                members += self.check_bin(slot, bin, &mut seen)?;
            }
            let count = self.count[usize::from(slot)] as usize;
            ensure_eq!(members, count, "memcg generation {slot}: I21: count");
            let live = slot == self.old() || slot == self.young();
            ensure!(live || count == 0, "memcg generation {slot}: I21: {count} in a dead slot");
        }
        for (id, seen) in seen.into_iter().enumerate() {
            let memcg = MemcgId(id as u32);
            let coming = self.due.contains(&(memcg, Rotation::Online));
            let places = usize::from(seen) + usize::from(coming);
            ensure_eq!(places, usize::from(exists(memcg)), "{memcg:?}: I21: bins it is in");
        }
        let [old, young] = [self.old(), self.young()].map(|slot| self.count[usize::from(slot)]);
        ensure!(old > 0 || young == 0, "I21: the old memcg generation is empty, {young} are young");
        Ok(())
    }

    fn check_bin(&self, slot: u8, bin: u8, seen: &mut [bool]) -> Result<usize, String> {
        let end = head(slot, bin);
        let mut members = 0;
        let mut at = self.links[end as usize].next;
        while at != end {
            let id = at as usize - NR_HEADS;
            ensure!(!seen[id], "memcg {id}: I21: in two bins");
            seen[id] = true;
            let link = self.links[at as usize];
            ensure_eq!(link.slot, Some(slot), "memcg {id}: I21: generation");
            ensure_eq!(self.links[link.next as usize].prev, at, "memcg {id}: links");
            members += 1;
            at = link.next;
        }
        Ok(members)
    }
}

#[cfg(test)]
#[path = "memcg_lru/tests.rs"]
mod tests;
