//! The seam below the policy: everything reclaim may ask of the machine beneath it.
//!
//! Calls go down, data comes back: the host fills in plain values or a batch the core lends it, and
//! never holds a handle to the policy. Folio flags live in the slab, which the core lends out.
//! Add a question only when an algorithm of the specification needs it.

mod event;
mod list_event;
mod zone;

use alloc::vec::Vec;

pub use event::{Isolated, ListName, ShrunkActive, ShrunkInactive, TraceEvent};
pub use list_event::{ListChange, ListEvent, ListId};
pub use zone::{OrderView, ZoneView};

use crate::folio::{Folio, Folios};
use crate::shadow::Shadow;
use crate::types::{FolioId, Gen, LruType, LruvecId, MemcgId, MmId, Nanos, NodeId, Zone};

/// Holds what the host knows about a memory cgroup. Sizes are pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemcgView {
    /// Counts pages charged, descendants included.
    pub usage: u64,
    /// Holds `memory.min`, pages.
    pub min: u64,
    /// Holds `memory.low`, pages.
    pub low: u64,
    /// Holds `memory.max`, pages; `u64::MAX` is none.
    pub max: u64,
    /// Holds `memory.swappiness`, 0 to 200.
    pub swappiness: u8,
    /// Counts swap pages that this group may still take.
    pub swap_left: u64,
}

/// Gives a position in an address space, in bytes. Positions only have an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Va(pub u64);

/// Names the memory that backs a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Maps private anonymous memory.
    Anon,
    /// Maps shared swap-backed memory.
    Shmem,
    /// Maps a real file.
    File,
}

/// Describes one page table (the entries under one PMD) of one mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmdView {
    /// Holds the address where the table starts; names it to [`Host::harvest_pmd`].
    pub at: Va,
    /// Holds the address where the next table may start.
    pub next: Va,
    /// Holds the address where the mapping ends.
    pub mapping_end: Va,
    /// Names the kind of memory behind the mapping.
    pub backing: Backing,
    /// Says that accesses through this mapping predict reuse (no SEQ/RAND advice, no NOREUSE).
    pub recency: bool,
    /// Excludes the mapping from walks: mlocked, hugetlb, inaccessible, special.
    pub special: bool,
    /// Holds the accessed bit of the PMD itself.
    pub young: bool,
}

/// Describes a young entry found in a page table; its accessed bit is now clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YoungPte {
    /// Names the folio that the entry maps.
    pub folio: FolioId,
    /// Says that the entry was dirty.
    pub dirty: bool,
}

/// Receives the entries of one page table. The core clears the buffer before each call.
#[derive(Clone, Debug, Default)]
pub struct Harvest {
    /// Counts the present entries that were read.
    pub entries: u32,
    /// Says that the table could not be locked; nothing was harvested.
    pub contended: bool,
    /// Lists young entries of the lruvec asked for; neighbours that map one folio are one entry.
    pub young: Vec<YoungPte>,
    /// Counts young entries beyond those in `young`: the others of each run that maps one large
    /// folio.
    pub repeats: u32,
}

impl Harvest {
    pub(crate) fn clear(&mut self) {
        self.entries = 0;
        self.contended = false;
        self.young.clear();
        self.repeats = 0;
    }

    /// Counts the young entries, each of a run by itself.
    pub fn young_entries(&self) -> u32 {
        self.young.len() as u32 + self.repeats
    }
}

/// Describes a page table met while looking around a young entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Names the address space.
    pub mm: MmId,
    /// Names the table.
    pub at: Va,
    /// Counts present entries in the window.
    pub entries: u32,
    /// Counts young entries in the window, the starting one included.
    pub young: u32,
}

/// Selects the entries around a young one that are read with it (spec §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Counts the entries, centred on the young one; 1: it alone.
    pub entries: u32,
    /// Anonymous neighbours are left alone, their accessed bits kept.
    pub file_only: bool,
    /// Names the generations, of anonymous memory and files, to which young neighbours go: a host
    /// to which clearing accessed bits is expensive may leave alone those that are there already.
    pub youngest: Option<[Gen; 2]>,
}

impl Window {
    /// Looks at no neighbours.
    pub const ONE: Self = Self { entries: 1, file_only: false, youngest: None };

    /// Says whether the folio is in the generation to which it would go.
    #[must_use]
    pub fn is_there(self, folio: &Folio) -> bool {
        let youngest = self.youngest.map(|youngest| youngest[folio.lru_type().index()]);
        folio.flags.generation() == youngest
    }

    /// Says whether a young entry that maps a folio of `lru_type` is to be harvested.
    #[must_use]
    pub fn includes(self, lru_type: LruType) -> bool {
        !self.file_only || lru_type == LruType::File
    }
}

/// Receives the reverse map of one folio. The core keeps and clears it like [`Harvest`].
#[derive(Clone, Debug, Default)]
pub struct RmapHarvest {
    /// Counts mappings found young; the accessed bits of their entries are now clear.
    pub referenced: u32,
    /// Says that some mapping is mlocked.
    pub locked: bool,
    /// Says that some mapping is executable.
    pub exec: bool,
    /// Says that a lock was contended or the owner is exiting: nothing can be concluded.
    pub contended: bool,
    /// Lists page tables around young entries, for the Bloom filter.
    pub around: Vec<Around>,
    /// Lists neighbours found young.
    pub neighbours: Vec<YoungPte>,
}

impl RmapHarvest {
    pub(crate) fn clear(&mut self) {
        self.referenced = 0;
        self.locked = false;
        self.exec = false;
        self.contended = false;
        self.around.clear();
        self.neighbours.clear();
    }
}

/// Says how the eviction of a folio ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Awaits the host's attempt.
    Pending,
    /// Says that the folio is unmapped, clean (or its write is complete) and unreferenced: ready to
    /// be freed.
    Ready {
        /// A write had to be made for it.
        wrote: bool,
    },
    /// Says that the folio is anonymous and no swap slot is to be had.
    NoSwapSlot,
    /// Says that the folio is still mapped after unmapping.
    StillMapped,
    /// Says that another holder has a reference.
    Pinned,
    /// Says that the folio is being written now and becomes clean later.
    WriteQueued,
    /// Names a dirty file folio that reclaim may not write.
    Dirty,
    /// Says that the folio's data cannot be written now, or was dirtied again.
    Busy,
}

/// Describes the eviction of one folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// Names the folio.
    pub folio: FolioId,
    /// Allows the host to write the folio if it is dirty.
    pub may_write: bool,
    /// Holds the result of the host's attempt.
    pub outcome: Outcome,
}

/// Describes the demotion of one folio to slower memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demotion {
    /// Names the folio.
    pub folio: FolioId,
    /// Names the zone that the folio is in now. `None`: it could not be moved and is where it was.
    pub moved: Option<Zone>,
}

/// Counts the yield of shrinking the slab caches of one (memcg, node). Pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlabWork {
    /// Counts objects looked at.
    pub scanned: u64,
    /// Counts pages freed.
    pub freed: u64,
}

/// Names the content of one frame of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    /// Holds nothing.
    Free,
    /// Holds this folio.
    Folio(FolioId),
    /// Holds something that reclaim cannot take.
    Other,
}

/// Answers everything that reclaim may ask of the machine beneath it.
///
/// All calls take `&mut self`, so that a tape can log or answer any of them.
pub trait Host {
    /// The time.
    fn now(&mut self) -> Nanos;

    /// A random number below `n`.
    fn random_below(&mut self, n: u32) -> u32;

    /// The state of a memory cgroup.
    fn memcg(&mut self, memcg: MemcgId) -> MemcgView;

    /// The group is about to be reclaimed from although it is below `memory.low`: its event `low`
    /// (spec §7.2).
    fn breached_low(&mut self, memcg: MemcgId) {
        let _ = memcg;
    }

    /// The state of a zone.
    fn zone(&mut self, node: NodeId, zone: Zone) -> ZoneView;

    /// The state of a zone for a block of `2^order` pages. A host without physical memory knows
    /// numbers of pages only.
    fn order_view(&mut self, node: NodeId, zone: Zone, order: u8) -> OrderView {
        let _ = order;
        OrderView::of_pages(&self.zone(node, zone))
    }

    /// Lists the content of the aligned block of `2^order` pages around a folio, by frame, the
    /// folio itself included, up to the end of the zone. Nothing for a host without frames.
    fn neighbours(&mut self, folio: FolioId, order: u8, out: &mut Vec<Neighbour>) {
        let _ = (folio, order, out);
    }

    /// The first page table of `mm` at or after `from`; `None`: the walk of this mm is over.
    fn next_pmd(&mut self, mm: MmId, from: Va) -> Option<PmdView>;

    /// Tests and clears the accessed bits under one PMD, and the PMD's own, and reports the young
    /// entries; those of folios that are not [`Folios::is_harvested`] stay as they are.
    fn harvest_pmd(
        &mut self,
        mm: MmId,
        at: Va,
        lruvec: LruvecId,
        folios: &Folios,
        out: &mut Harvest,
    );

    /// The core is about to judge these folios, to ask for their entries and to evict many of them:
    /// a host with large tables may load what it will need, while loads still overlap.
    fn bring_near(&mut self, batch: &[FolioId], folios: &Folios) {
        let _ = (batch, folios);
    }

    /// Tests and clears the accessed bits of every entry that maps `folio`. With a `window` of more
    /// than one a young entry also makes the host look at the entries around it inside the same
    /// PMD and mapping, and harvest young
    /// neighbours that the window includes as [`harvest_pmd`](Self::harvest_pmd) does.
    fn harvest_rmap(
        &mut self,
        folio: FolioId,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    );

    /// Brings each folio to where it can be freed, in this order: gives swap-backed folios a swap
    /// slot ([`Bit::SWAPCACHE`](crate::folio::Bit::SWAPCACHE)), unmaps (dirty entries make the
    /// folio dirty), writes swap-backed folios that are dirty (all are until they were written
    /// once) if they may be. The folios are isolated. Each `outcome` is filled in; for
    /// [`Outcome::Ready`] [`Host::free`] follows, for [`Outcome::WriteQueued`] the core starts
    /// writeback and the host ends it. A dirty file folio answers [`Outcome::Dirty`] unless
    /// `may_write`.
    fn evict(&mut self, folios: &mut Folios, batch: &mut [Eviction]);

    /// A folio with a swap slot was activated, or is mlocked: its copy in swap may go, if it is
    /// mapped, not being written, and swap is more than half full (spec §5.6).
    fn drop_swap_copy(&mut self, folios: &mut Folios, folio: FolioId) {
        let _ = (folios, folio);
    }

    /// Takes the folio out of its mapping (leaving `shadow` in its place, where the place lasts)
    /// and uncharges it. The core frees the slab slot afterwards.
    fn free(&mut self, folios: &mut Folios, folio: FolioId, shadow: Shadow);

    /// The node of slower memory that folios of `node` may be demoted to.
    fn demotion_target(&mut self, node: NodeId) -> Option<NodeId> {
        let _ = node;
        None
    }

    /// Moves each isolated folio, with everything that maps it, to free memory of node `to`;
    /// nothing is reclaimed there to make room. Each `moved` is filled in.
    fn demote(&mut self, folios: &mut Folios, to: NodeId, batch: &mut [Demotion]) {
        let _ = (folios, to, batch);
    }

    /// Wakes the threads that write dirty pages back.
    fn wake_flusher(&mut self, node: NodeId);

    /// Shrinks the slab caches of one group on one node at `priority`.
    fn shrink_slab(&mut self, memcg: MemcgId, node: NodeId, priority: u8) -> SlabWork;

    /// Has a policy of the host name folios of a list to evict, about `pages` pages of them, after
    /// it has heard what changed on all lists since it was asked last. Called under
    /// [`Algorithm::Custom`](crate::config::Algorithm::Custom) alone. Names that are not on the
    /// list do not count; without any that is, the list's tail goes.
    fn victims(
        &mut self,
        list: ListId,
        pages: u64,
        events: &mut Vec<ListEvent>,
        folios: &Folios,
        out: &mut Vec<FolioId>,
    ) {
        let _ = (list, pages, events, folios, out);
    }

    /// Reclaim tells what it has just done. Decides nothing.
    #[inline]
    fn trace(&mut self, event: TraceEvent) {
        let _ = event;
    }
}
