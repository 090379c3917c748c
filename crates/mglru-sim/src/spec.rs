//! The machine as data: everything a plan may say about it, under one name each, with defaults.
//!
//! [`MachineSpec::check`] turns what was written into what can be simulated, or says in one line
//! which key is at fault; nothing after it validates values again.

mod check;
mod filesystem;
mod groups;
mod ratio;
mod size;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::costs::Costs;
use crate::device::DeviceSpec;
use crate::dirty::DirtySpec;
use crate::swap::SwapSpec;
use crate::zones::ZoneSpec;

pub use self::check::SpecError;
pub(crate) use self::check::{contradiction, in_range};
pub use self::filesystem::FileSystem;
pub use self::groups::GroupSpec;
pub use self::ratio::Ratio;
pub use self::size::Size;

/// Gives the size of a page in bytes.
pub const PAGE_SIZE: u64 = 4096;

/// Says how memory is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Physical {
    /// A zone is a number of free pages.
    Simple,
    /// A zone is page frames under a buddy allocator: it fragments, and can be compacted.
    Buddy,
}

/// Describes a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineSpec {
    /// Sets the memory of all nodes together.
    pub memory: Size,
    /// Counts the processors.
    pub cpus: u32,
    /// Counts the NUMA nodes; memory and processors are spread evenly.
    pub nodes: u32,
    /// Makes the last so many nodes slower memory without processors: what reclaim would take from
    /// the others is demoted to them.
    pub slow_nodes: u32,
    /// Describes the zones of each node and their watermarks.
    pub zones: ZoneSpec,
    /// Says how memory is made up.
    pub physical: Physical,
    /// Describes the device that files are on: a preset by name, or a table with `preset` (`nvme`
    /// unless given) and the keys that differ from it.
    pub device: DeviceSpec,
    /// Names the file system of the device: how large the folios of its files may be. `order0`:
    /// single pages; `ext4`: large ones in kernels later than 6.12, and buffers that are charged
    /// with `charge_kernel`; `xfs`: large ones in every kernel.
    #[serde(skip_serializing_if = "FileSystem::is_order0")]
    pub filesystem: FileSystem,
    /// Describes the swap space.
    pub swap: SwapSpec,
    /// Sets the processor time of each step.
    pub costs: Costs,
    /// Sets the dirty limits and the flusher's times.
    pub dirty: DirtySpec,
    /// Bounds readahead, KiB; 0: none.
    pub readahead_kb: u32,
    /// Makes the mark of a readahead window the bit by which reclaim waits for writeback, as in
    /// Linux. Otherwise it is a bit of its own.
    pub shared_readahead_bit: bool,
    /// Sets the window of pages mapped around a file fault, KiB; 4: the faulting page only.
    pub fault_around_kb: u32,
    /// Bounds swap readahead from a device: 2 to this power pages at most, 0: none. There is none
    /// from zram.
    pub page_cluster: u32,
    /// Bounds the time a task runs on before others get their turn, ns.
    pub quantum_ns: u64,
    /// Runs a background reclaim thread on each node.
    pub kswapd: bool,
    /// Sets how many pages are charged to a group at a time and kept per processor; 0: each page by
    /// itself.
    pub charge_batch: u32,
    /// Sets how often the statistics of groups are summed up over the processors, ms. Heuristics of
    /// the classic LRU see the last sum. 0: they see sizes and refaults as they are. A run begins
    /// in the middle of a period; the start of a phase sums up too, because whoever reads
    /// `memory.stat` then does.
    pub stat_flush_ms: u32,
    /// Charges page tables and shadow entries to their group.
    pub charge_kernel: bool,
    /// Sets the swappiness of groups that have none of their own, 0 to 200.
    pub swappiness: u8,
    /// Sets the limits of groups, by path (`/mongo`).
    pub groups: BTreeMap<String, GroupSpec>,
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self {
            memory: Size(16 << 30),
            cpus: 8,
            nodes: 1,
            slow_nodes: 0,
            zones: ZoneSpec::default(),
            physical: Physical::Simple,
            device: DeviceSpec::default(),
            filesystem: FileSystem::Order0,
            swap: SwapSpec::default(),
            costs: Costs::default(),
            dirty: DirtySpec::default(),
            readahead_kb: 128,
            shared_readahead_bit: true,
            fault_around_kb: 64,
            page_cluster: 3,
            quantum_ns: 20_000,
            kswapd: true,
            charge_batch: 0,
            stat_flush_ms: 2000,
            charge_kernel: false,
            swappiness: 60,
            groups: BTreeMap::new(),
        }
    }
}

impl MachineSpec {
    /// Returns the same machine with memory, swap, zones and limits `ratio` times as large, each to
    /// the nearest page. Times, processors and readahead stay. To be checked again: it may have
    /// become too small.
    pub fn scaled(&self, ratio: f64) -> Self {
        let mut spec = self.clone();
        spec.memory = spec.memory.scaled(ratio);
        spec.swap.size = spec.swap.size.map(|size| size.scaled(ratio));
        spec.zones = spec.zones.scaled(ratio);
        spec.zones.dma = Some(self.dma().scaled(ratio));
        for group in spec.groups.values_mut() {
            *group = group.scaled(ratio);
        }
        spec
    }

    /// Memory of the first node.
    fn node(&self) -> Size {
        Size(self.memory.0 / u64::from(self.nodes.max(1)))
    }

    /// Size of the DMA zone: a small one stays in proportion when the machine is scaled.
    fn dma(&self) -> Size {
        self.zones.dma_of(self.node(), self.physical)
    }

    /// Pages of the first node's zones below the normal one: DMA and DMA32.
    pub(crate) fn low_zones(&self) -> [u64; 2] {
        [self.dma().pages(), self.zones.dma32.pages()]
    }

    /// Returns the memory of all nodes, pages.
    pub fn pages(&self) -> u64 {
        self.memory.pages()
    }

    /// Returns the length of the longest readahead, pages.
    pub fn readahead_pages(&self) -> u32 {
        self.readahead_kb / 4
    }

    /// Returns the window of fault-around, pages; at least 1.
    pub fn fault_around_pages(&self) -> u32 {
        (self.fault_around_kb / 4).max(1)
    }

    /// Returns the limits of a group; none, where the plan gives none.
    pub fn group(&self, name: &str) -> GroupSpec {
        self.groups.get(name).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
