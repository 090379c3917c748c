//! The smallest machine that can honestly answer what reclaim asks: page tables as ordered maps,
//! swap as a number per group, writes that end when the test says so. Everything the core asked to
//! be done is recorded. [`World`] puts it beside an [`Lru`] and drives both.

#![allow(dead_code)] // Each test binary uses its own part of it.

mod host;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use mglru::host::{Backing, Neighbour, Outcome, SlabWork, Va, ZoneView};
use mglru::{FolioId, LruType, MAX_NR_ZONES, MmId, Nanos, NodeId, Shadow};

pub use world::World;

/// Base page size.
pub const PAGE: u64 = 4096;
/// Entries of one page table.
pub const TABLE: u64 = 512;
/// The zone tests put folios into unless they say otherwise.
pub const NORMAL: mglru::Zone = mglru::Zone(2);
/// The only node of most tests.
pub const NODE: NodeId = NodeId(0);

/// A page-table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pte {
    /// Names the folio that it maps.
    pub folio: FolioId,
    /// Its accessed bit.
    pub young: bool,
    /// Its dirty bit.
    pub dirty: bool,
}

/// A mapping: pages `start..end` of an address space.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// First page.
    pub start: u64,
    /// One past the last page.
    pub end: u64,
    /// Names its backing.
    pub backing: Backing,
    /// No SEQ/RAND advice.
    pub recency: bool,
    /// Never walked.
    pub special: bool,
    /// Executable.
    pub exec: bool,
}

/// An address space.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// In order of address.
    pub mappings: Vec<Mapping>,
    /// By page number.
    pub ptes: BTreeMap<u64, Pte>,
    /// Tables whose own accessed bit is set (number of the table).
    pub young_tables: BTreeSet<u64>,
}

/// A group's settings; `charged` are its own pages.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Its parent's index.
    pub parent: Option<usize>,
    /// Own pages.
    pub charged: u64,
    /// `memory.min`.
    pub min: u64,
    /// `memory.low`.
    pub low: u64,
    /// `memory.max`.
    pub max: u64,
    /// `memory.swappiness`.
    pub swappiness: u8,
    /// Swap pages left.
    pub swap_left: u64,
}

/// A folio that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// Its key.
    pub owner: [u32; 2],
    /// Its type.
    pub lru_type: LruType,
    /// Its pages.
    pub pages: u64,
    /// Holds the shadow that it left.
    pub shadow: Shadow,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Toy {
    /// The time.
    pub now: Nanos,
    /// Groups by [`mglru::MemcgId`].
    pub groups: Vec<Group>,
    /// Address spaces by [`MmId`].
    pub spaces: Vec<Space>,
    /// Group of each lruvec.
    pub lruvec_groups: Vec<usize>,
    /// Zones of the first node.
    pub zones: [ZoneView; MAX_NR_ZONES],
    /// The one block of contiguous pages whose content is known.
    pub block: Vec<Neighbour>,
    /// Evicted folios, in order.
    pub freed: Vec<Freed>,
    /// Batches handed to the host: folios of each.
    pub batches: Vec<usize>,
    /// Groups that were reclaimed from below `memory.low`.
    pub low_events: Vec<usize>,
    /// Times the flusher was woken.
    pub flusher_wakes: u64,
    /// Priorities at which slab caches were shrunk, with the group.
    pub slab_calls: Vec<(usize, u8)>,
    /// Counts what the slab caches give at each call.
    pub slab: SlabWork,
    /// Swap-backed folios whose copy on swap is current.
    pub stored: BTreeSet<FolioId>,
    /// Swap writes complete at once (as to compressed memory).
    pub swap_is_fast: bool,
    /// Scripted failures: what the next eviction of a folio answers.
    pub script: BTreeMap<FolioId, Outcome>,
    /// Tables that cannot be locked.
    pub contended: BTreeSet<(MmId, u64)>,
    /// Tables walked, in order.
    pub walked: Vec<(MmId, Va)>,
    /// Folios whose reverse map was walked, in order.
    pub rmap_walks: Vec<FolioId>,
    /// Folios whose copy in swap might go.
    pub copies_offered: Vec<FolioId>,
    /// Free pages of the second node, slower memory for the first; `None`: there is none.
    pub slow_room: Option<u64>,
    /// State of the random numbers; 0: every answer is 0.
    pub random: u64,
}

impl Default for Toy {
    fn default() -> Self {
        let mut zones = [ZoneView::default(); MAX_NR_ZONES];
        zones[NORMAL.index()] =
            ZoneView { managed: 100_000, free: 50_000, min: 100, low: 125, high: 150, reserve: 0 };
        Self {
            now: 0,
            groups: vec![Group::below(None)],
            spaces: Vec::new(),
            lruvec_groups: vec![0],
            zones,
            block: Vec::new(),
            freed: Vec::new(),
            batches: Vec::new(),
            flusher_wakes: 0,
            low_events: Vec::new(),
            slab_calls: Vec::new(),
            slab: SlabWork::default(),
            stored: BTreeSet::new(),
            swap_is_fast: true,
            script: BTreeMap::new(),
            contended: BTreeSet::new(),
            walked: Vec::new(),
            rmap_walks: Vec::new(),
            copies_offered: Vec::new(),
            slow_room: None,
            random: 0,
        }
    }
}

/// The next random number below `n`; none but 0 come from state 0.
pub fn draw(state: &mut u64, n: u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (((*state >> 32) * u64::from(n)) >> 32) as u32
}

impl Group {
    /// No limits, no protection, plenty of swap.
    pub fn below(parent: Option<usize>) -> Self {
        Self {
            parent,
            charged: 0,
            min: 0,
            low: 0,
            max: u64::MAX,
            swappiness: 60,
            swap_left: 1 << 30,
        }
    }
}

impl Toy {
    /// Pages charged to a group and its descendants.
    pub fn usage(&self, group: usize) -> u64 {
        let below = |mut g: usize| loop {
            if g == group {
                return true;
            }
            match self.groups[g].parent {
                Some(parent) => g = parent,
                None => return false,
            }
        };
        (0..self.groups.len()).filter(|&g| below(g)).map(|g| self.groups[g].charged).sum()
    }

    /// The mapping that holds a page.
    pub fn mapping(&self, mm: MmId, page: u64) -> &Mapping {
        let found = self.spaces[mm.index()].mappings.iter();
        found.into_iter().find(|m| m.start <= page && page < m.end).expect("page is mapped")
    }

    /// Where a folio is mapped.
    pub fn places(&self, folio: FolioId) -> Vec<(MmId, u64)> {
        let mut places = Vec::new();
        for (mm, space) in self.spaces.iter().enumerate() {
            let own = space.ptes.iter().filter(|(_, pte)| pte.folio == folio);
            places.extend(own.map(|(&page, _)| (MmId(mm as u32), page)));
        }
        places
    }
}
