//! Everything beneath the policy: address spaces, files, swap, memory, groups, devices and the
//! clock. Reclaim asks it through [`Host`](mglru::host::Host); tasks act on it directly.
//!
//! Processor time is spent by moving the clock: while a task runs, [`World::now`] is its own
//! time, and whatever the machine does on its behalf is charged by [`World::spend`].

mod blocks;
mod disks;
mod evict;
mod frames;
mod harvest;
mod host;
mod inodes;
mod kernel_memory;
mod memory;
mod peek;
mod shadow_nodes;

use mglru::types::{FolioId, LruvecId, MemcgId, Nanos, NodeId};
use mglru_workload::rng::Rng;
use mglru_workload::{FileId, Layout, RegionId};

use crate::address_space::{AddressSpaces, Vma};
use crate::agenda::{Event, Waiters};
use crate::costs::Costs;
use crate::custom::Lists;
use crate::device::Device;
use crate::disk::{Disk, Purpose};
use crate::event::Queue;
use crate::journal::Journal;
use crate::memcg::{Limits, Memcgs};
use crate::page_cache::PageCache;
use crate::page_stack::PageStack;
use crate::page_table::Maps;
use crate::readahead::{CachedPages, FileState};
use crate::shadows::Shadows;
use crate::spec::{MachineSpec, PAGE_SIZE};
use crate::stall::Stalls;
use crate::swap::{Swap, SwapKind};
use crate::tracing::Tracer;
use crate::writeback::Writeback;
use crate::zones::Zones;

pub use self::frames::Frames;
use self::kernel_memory::KernelMemory;
pub use self::memory::Held;
use self::shadow_nodes::ShadowNodes;

/// Streams of random numbers that are the machine's own; workloads use small numbers.
const RNG_LANE: u64 = 1 << 40;

/// Holds a file and what is open of it.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Counts its bytes.
    pub bytes: u64,
    /// Says where it starts on the device, in pages.
    pub lba: u64,
    /// Holds its cached pages.
    pub cache: PageCache,
    /// Holds the one open descriptor, shared by all that read it.
    pub descriptor: FileState,
    /// Bounds the size of its folios, as a power of two of pages.
    pub largest: u8,
    /// Names the group that first cached a page of it: its nodes are charged there.
    pub owner: Option<MemcgId>,
    /// Nodes of the page cache that are charged.
    nodes: u64,
}

impl File {
    /// Returns the length in pages, a broken one included.
    pub fn pages(&self) -> u64 {
        self.bytes.div_ceil(PAGE_SIZE)
    }
}

impl CachedPages for PageCache {
    fn cached_before(&self, index: u64, most: u64) -> u64 {
        PageCache::cached_before(self, index, most)
    }

    fn next_hole(&self, from: u64) -> u64 {
        PageCache::next_hole(self, from)
    }
}

/// Counts events that no other part counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Counts page faults.
    pub pgfault: u64,
    /// Counts page faults that had to read.
    pub pgmajfault: u64,
    /// Counts pages brought in by readahead beyond those asked for.
    pub readahead_pages: u64,
    /// Counts pages allocated.
    pub pgalloc: u64,
    /// Counts pages given back.
    pub pgfree: u64,
}

/// Holds everything beneath the policy.
#[derive(Debug)]
pub struct World {
    /// Holds the clock of the task that runs, ns.
    pub now: Nanos,
    /// Sums the processor time spent in the kernel so far, ns.
    pub system_ns: Nanos,
    /// Holds the processor time of each step.
    pub costs: Costs,
    /// Records the folios that are mapped, and where.
    pub spaces: AddressSpaces,
    /// Lists files, by number.
    pub files: Vec<File>,
    /// Holds the swap space.
    pub swap: Swap,
    /// The shadows that evicted pages left, in files and in swap.
    pub(crate) shadows: Shadows,
    /// Holds the groups: charges, limits, events.
    pub memcgs: Memcgs,
    /// Holds the free memory.
    pub zones: Zones,
    /// Holds dirty pages and the limits on them.
    pub writeback: Writeback,
    /// Changes of the file system that are not committed.
    pub(crate) journal: Journal,
    /// Records the time lost to memory pressure.
    pub stalls: Stalls,
    /// Queues the events to come.
    pub agenda: Queue<Event>,
    /// Lists tasks that wait for a folio.
    pub waiters: Waiters,
    /// Counts events.
    pub events: Events,
    /// Holds page frames, where the machine has them.
    pub frames: Option<Box<Frames>>,
    /// Says that groups keep nodes of shadows for their slab pages alone (7.1 and 7.2).
    pub blind_shadow_limit: bool,
    /// Counts nodes of shadows that reclaim freed.
    pub nodes_dropped: u64,
    /// Folios of files may be large.
    pub(crate) large: bool,
    /// A write to swap was queued.
    pub(crate) swap_queued: bool,
    nr_nodes: u32,
    held: Vec<Held>,
    kernel: KernelMemory,
    shadow_nodes: Vec<ShadowNodes>,
    pool: PageStack,
    files_disk: Disk,
    swap_disk: Option<Disk>,
    finished: Vec<Purpose>,
    rng: Rng,
    flusher_armed: bool,
    kswapd_armed: Vec<bool>,
    /// The policies from outside, where they choose.
    pub(crate) custom: Option<Box<Lists>>,
    /// The sink that takes events.
    pub(crate) tracer: Option<Box<Tracer>>,
}

impl World {
    /// Creates a machine that has not run. Groups and address spaces are added by the caller.
    pub fn new(spec: &MachineSpec, layout: &Layout, seed: u64) -> Self {
        let lane = |n| Rng::new(seed, RNG_LANE + n);
        let swap_device = spec.swap.device.clone().unwrap_or_else(|| spec.device.clone());
        let files = place_files(layout);
        let log = files.last().map_or(0, |file| file.lba + 2 * file.pages() + 1024);
        let on_device = spec.swap.kind == SwapKind::Device;
        Self {
            now: 0,
            system_ns: 0,
            costs: spec.costs.clone(),
            spaces: AddressSpaces::default(),
            files,
            swap: Swap::new(spec.swap.clone(), &spec.costs),
            shadows: Shadows::default(),
            memcgs: Memcgs::new(spec.swappiness),
            zones: Zones::new(spec),
            writeback: Writeback::new(spec.dirty.clone(), layout.files.len()),
            journal: Journal::new(layout.blocks, log),
            stalls: Stalls::new(),
            agenda: Queue::new(),
            waiters: Waiters::default(),
            events: Events::default(),
            frames: None,
            blind_shadow_limit: false,
            nodes_dropped: 0,
            large: false,
            swap_queued: false,
            nr_nodes: spec.nodes,
            held: Vec::new(),
            kernel: KernelMemory::new(spec),
            shadow_nodes: Vec::new(),
            pool: PageStack::default(),
            files_disk: Disk::new(Device::new(spec.device.clone(), lane(0))),
            swap_disk: on_device.then(|| Disk::new(Device::new(swap_device, lane(1)))),
            finished: Vec::new(),
            rng: lane(2),
            flusher_armed: false,
            kswapd_armed: vec![!spec.kswapd; spec.nodes as usize],
            custom: None,
            tracer: None,
        }
    }

    /// Adds the root group.
    pub fn add_root(&mut self) {
        self.writeback.add_group(MemcgId::ROOT);
        self.held.push(Held::default());
    }

    /// Adds a group below `parent`, with the number the policy gave it.
    pub fn add_group(&mut self, parent: MemcgId, limits: Limits, id: MemcgId) {
        let same = self.memcgs.add(parent, limits);
        debug_assert_eq!(same, id);
        self.stalls.add(parent);
        self.writeback.add_group(id);
        self.held.push(Held::default());
    }

    /// Counts the pages that a group holds, descendants not included.
    pub fn held(&self, memcg: MemcgId) -> Held {
        self.held[memcg.index()]
    }

    /// Counts the pages of files that are cached.
    pub fn cached_pages(&self) -> u64 {
        self.held.iter().map(|held| held.file).sum()
    }

    /// The folio that a mapped page is in.
    #[inline]
    pub(crate) fn folio_at(&self, vma: &Vma, page: u32) -> Option<FolioId> {
        if !vma.table.get(page).has_folio() {
            return None;
        }
        match vma.file_page(page) {
            Some((file, at)) => self.files[file as usize].cache.folio(at),
            None => Some(FolioId(vma.table.peek_target(page))),
        }
    }

    /// Reads an entry of a mapped region.
    pub(crate) fn maps(&self, region: RegionId, page: u32) -> Maps {
        let vma = self.spaces.vma(region);
        match vma.file_page(page) {
            None => vma.table.maps(page),
            Some(_) => self.folio_at(vma, page).map_or(Maps::None, Maps::Folio),
        }
    }

    /// Uses the processor for the kernel's work.
    #[inline]
    pub fn spend(&mut self, ns: Nanos) {
        self.now += ns;
        self.system_ns += ns;
    }

    /// Returns the group that an lruvec's folios are charged to.
    pub fn memcg_of(&self, lruvec: LruvecId) -> MemcgId {
        MemcgId(lruvec.0 / self.nr_nodes)
    }

    /// Returns the node of an lruvec.
    pub fn node_of(&self, lruvec: LruvecId) -> NodeId {
        NodeId((lruvec.0 % self.nr_nodes) as u8)
    }

    /// Lets folios of files be as large as this power of two of pages; those of the file system's
    /// own blocks, which a journal covers, stay single pages.
    pub(crate) fn allow_orders(&mut self, largest: u8) {
        self.large = largest > 0;
        for (id, file) in self.files.iter_mut().enumerate() {
            file.largest = if self.journal.covers(id as FileId) { 0 } else { largest };
        }
    }

    /// Returns the place on the device of a page of a file.
    pub fn lba(&self, file: FileId, page: u64) -> u64 {
        self.files[file as usize].lba + page
    }

    /// Has the flusher look for work now, once.
    pub fn wake_flusher_now(&mut self) {
        if !self.flusher_armed {
            self.flusher_armed = true;
            self.agenda.push(self.now, Event::Flusher);
        }
    }

    /// Records that the flusher looks.
    pub fn flusher_woken(&mut self) {
        self.flusher_armed = false;
    }

    /// Has the node's kswapd look for work now, once.
    pub fn wake_kswapd(&mut self, node: NodeId) {
        if !std::mem::replace(&mut self.kswapd_armed[node.index()], true) {
            self.trace_wakeup(node);
            self.agenda.push(self.now, Event::Kswapd(node));
        }
    }

    /// Records that the node's kswapd has gone to sleep.
    pub fn kswapd_slept(&mut self, node: NodeId) {
        self.kswapd_armed[node.index()] = false;
    }
}

/// Files lie one after the other, with room for each to double.
fn place_files(layout: &Layout) -> Vec<File> {
    let mut lba = 0;
    let place = |spec: &mglru_workload::FileSpec| {
        let mut file = File { bytes: spec.bytes, lba, ..File::default() };
        file.cache.reserve(file.pages());
        lba += 2 * file.pages() + 1024;
        file
    };
    layout.files.iter().map(place).collect()
}
