//! Zones of each node: free pages and the watermarks that say which tasks may take them. Sizes are
//! pages.
//!
//! Watermarks follow the kernel's documented defaults: over all nodes the minimum is
//! `sqrt(16 · memory in KiB)` KiB (between 128 KiB and 256 MiB), shared out by size;
//! `low` and `high` lie one and two steps above, a step being a quarter of the minimum or
//! `watermark_scale` ten-thousandths of the zone, whichever is more. An allocation that could have
//! used a higher zone must leave a reserve in the lower ones.

use mglru::host::ZoneView;
use mglru::types::{MAX_NR_ZONES, NodeId, Zone};
use serde::{Deserialize, Serialize};

use crate::spec::{MachineSpec, PAGE_SIZE, Physical, Size};

/// Names memory that the oldest devices can reach.
pub const DMA: Zone = Zone(0);
/// Names memory that devices with 32-bit addresses can reach.
pub const DMA32: Zone = Zone(1);
/// Names all other memory, which nearly every allocation asks for.
pub const NORMAL: Zone = Zone(2);

/// The DMA zone of a PC: 16 MiB, of which the firmware and the first pages are not managed.
const DMA_SIZE: Size = Size(15 << 20);
/// A machine too small for that has one of this share (one in so many pages) of its first node.
const DMA_SHARE: u64 = 8;
/// A lower zone keeps back this share (one in so many pages) of the higher zones' size.
const RESERVE_RATIO: u64 = 256;
const MIN_FREE_KIB: (u64, u64) = (128, 256 << 10);
const KIB_PER_PAGE: u64 = PAGE_SIZE / 1_024;

/// Describes the zones of each node and their watermarks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ZoneSpec {
    /// Sets the size of the DMA zone, on the first node; 0: there is none. Not given: 15 MiB, or an
    /// eighth of a small node, and none where memory is made of page frames.
    pub dma: Option<Size>,
    /// Sets the size of the DMA32 zone, on the first node; 0: there is none.
    pub dma32: Size,
    /// Makes steps between watermarks at least so many ten-thousandths of the zone.
    pub watermark_scale: u32,
    /// Sets the minimum over all zones (`vm.min_free_kbytes`); `None`: by the size of memory.
    pub min_free: Option<Size>,
}

impl Default for ZoneSpec {
    fn default() -> Self {
        Self { dma: None, dma32: Size(0), watermark_scale: 10, min_free: None }
    }
}

impl ZoneSpec {
    /// Returns the same zones `ratio` times as large.
    pub fn scaled(&self, ratio: f64) -> Self {
        let min_free = self.min_free.map(|size| size.scaled(ratio));
        Self { dma32: self.dma32.scaled(ratio), min_free, ..self.clone() }
    }

    /// Size of the DMA zone of a first node of this size.
    pub(crate) fn dma_of(&self, node: Size, physical: Physical) -> Size {
        let usual = match physical {
            Physical::Simple => DMA_SIZE.min(Size(node.0 / DMA_SHARE / PAGE_SIZE * PAGE_SIZE)),
            Physical::Buddy => Size(0),
        };
        self.dma.unwrap_or(usual)
    }
}

/// Selects how deep an allocation may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Allows the last page: serves a reclaimer's needs.
    None,
    /// Allows allocation down to `min`: after waking kswapd.
    Min,
    /// Allows allocation down to `low`: an ordinary allocation's first try.
    Low,
    /// Allows allocation down to `high`.
    High,
}

#[derive(Clone, Copy, Debug, Default)]
struct ZoneState {
    view: ZoneView,
    /// Pages that an allocation for the highest zone `i` must leave here besides its mark.
    reserve: [u64; MAX_NR_ZONES],
}

/// Holds the free memory of the machine.
#[derive(Clone, Debug)]
pub struct Zones {
    nodes: Vec<[ZoneState; MAX_NR_ZONES]>,
    /// Nodes of fast memory, the first ones.
    fast: usize,
}

impl Zones {
    /// Creates the zones with all memory free.
    pub fn new(spec: &MachineSpec) -> Self {
        let fast = (spec.nodes - spec.slow_nodes) as usize;
        let mut zones = Self { nodes: Vec::new(), fast };
        let (nodes, total) = (u64::from(spec.nodes), spec.pages());
        for node in 0..nodes {
            let pages = total / nodes + u64::from(node < total % nodes);
            let [dma, dma32] = if node == 0 { spec.low_zones() } else { [0, 0] };
            let normal = pages - dma - dma32;
            zones.nodes.push(sized(&[(DMA, dma), (DMA32, dma32), (NORMAL, normal)]));
        }
        zones.set_watermarks(&spec.zones, total);
        zones
    }

    /// Counts the nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Describes a zone as the policy core sees it. A zone that does not exist has no pages.
    pub fn view(&self, node: NodeId, zone: Zone) -> ZoneView {
        let zone = &self.nodes[node.index()][zone.index()];
        ZoneView { reserve: zone.reserve[NORMAL.index()], ..zone.view }
    }

    /// Returns the node of slower memory that is next to `node`.
    pub fn slower_than(&self, node: NodeId) -> Option<NodeId> {
        let slow = self.nodes.len() - self.fast;
        let is_fast = node.index() < self.fast;
        (is_fast && slow > 0).then(|| NodeId((self.fast + node.index() % slow) as u8))
    }

    /// Takes over the counts of a machine that has page frames, all in the first node's normal
    /// zone. `marks`: min, low, high.
    pub(crate) fn mirror(&mut self, free: u64, [min, low, high]: [u64; 3]) {
        let view = &mut self.nodes[0][NORMAL.index()].view;
        *view = ZoneView { free, min, low, high, ..*view };
    }

    /// Takes `pages` for an allocation that may use zones up to `highest`: on the task's own node
    /// first, highest zone first, then on the other nodes in order, slower ones last. `None`:
    /// every zone would fall to its mark or below.
    pub fn alloc(
        &mut self,
        node: NodeId,
        highest: Zone,
        pages: u64,
        mark: Mark,
    ) -> Option<(NodeId, Zone)> {
        for step in 0..self.nodes.len() {
            let near = match step < self.fast {
                true => NodeId(((node.index() + step) % self.fast) as u8),
                false => NodeId(step as u8),
            };
            if let Some(zone) = self.alloc_on(near, highest, pages, mark) {
                return Some((near, zone));
            }
        }
        None
    }

    /// Takes `pages` on one node alone.
    #[inline]
    pub fn alloc_on(
        &mut self,
        node: NodeId,
        highest: Zone,
        pages: u64,
        mark: Mark,
    ) -> Option<Zone> {
        for zone in (0..=highest.index()).rev() {
            let state = &mut self.nodes[node.index()][zone];
            if state.allows(highest, pages, mark) {
                state.view.free -= pages;
                return Some(Zone(zone as u8));
            }
        }
        None
    }

    /// Gives `pages` back.
    ///
    /// # Panics
    /// When the zone would have more free pages than pages.
    pub fn free(&mut self, node: NodeId, zone: Zone, pages: u64) {
        let view = &mut self.nodes[node.index()][zone.index()].view;
        view.free += pages;
        assert!(view.free <= view.managed, "more pages freed than {node:?} {zone:?} has");
    }

    /// Tells whether `pages` could be taken on this node.
    pub fn allows(&self, node: NodeId, highest: Zone, pages: u64, mark: Mark) -> bool {
        let zones = &self.nodes[node.index()];
        zones[..=highest.index()].iter().any(|zone| zone.allows(highest, pages, mark))
    }

    /// Tells whether no zone of the node is above `low`: kswapd is to run.
    pub fn wants_kswapd(&self, node: NodeId, highest: Zone) -> bool {
        !self.allows(node, highest, 0, Mark::Low)
    }

    /// Tells whether some zone of the node is above `high`: kswapd may sleep.
    pub fn is_balanced(&self, node: NodeId, highest: Zone) -> bool {
        self.allows(node, highest, 0, Mark::High)
    }

    /// Counts the free pages of a node.
    pub fn free_on(&self, node: NodeId) -> u64 {
        self.nodes[node.index()].iter().map(|zone| zone.view.free).sum()
    }

    /// Counts the free pages of the machine.
    pub fn free_pages(&self) -> u64 {
        self.each().map(|zone| zone.view.free).sum()
    }

    /// Counts the pages of the machine.
    pub fn managed_pages(&self) -> u64 {
        self.each().map(|zone| zone.view.managed).sum()
    }

    /// Counts pages kept back from use by high watermarks and reserves: not counted as available to
    /// dirty pages.
    pub fn kept_back(&self) -> u64 {
        self.each().map(ZoneState::kept_back).sum()
    }

    fn each(&self) -> impl Iterator<Item = &ZoneState> {
        self.nodes.iter().flatten()
    }

    fn set_watermarks(&mut self, spec: &ZoneSpec, total: u64) {
        let kib = total * KIB_PER_PAGE;
        let by_size = || (16 * kib).isqrt().clamp(MIN_FREE_KIB.0, MIN_FREE_KIB.1) / KIB_PER_PAGE;
        let min_free = spec.min_free.map_or_else(by_size, Size::pages);
        for zone in self.nodes.iter_mut().flatten() {
            let view = &mut zone.view;
            view.min = share(min_free, view.managed, total);
            let step = share(view.managed, u64::from(spec.watermark_scale), 10_000);
            let step = step.max(view.min / 4);
            view.low = view.min + step;
            view.high = view.low + step;
        }
    }
}

impl ZoneState {
    fn kept_back(&self) -> u64 {
        let reserve = self.reserve.iter().max().copied().unwrap_or(0);
        self.view.managed.min(self.view.high + reserve)
    }

    #[inline]
    fn allows(&self, highest: Zone, pages: u64, mark: Mark) -> bool {
        let view = &self.view;
        let keep = match mark {
            Mark::None => return view.free >= pages && view.managed > 0,
            Mark::Min => view.min,
            Mark::Low => view.low,
            Mark::High => view.high,
        };
        view.free > keep + self.reserve[highest.index()] + pages
    }
}

fn sized(sizes: &[(Zone, u64)]) -> [ZoneState; MAX_NR_ZONES] {
    let mut zones = [ZoneState::default(); MAX_NR_ZONES];
    for &(zone, pages) in sizes {
        zones[zone.index()].view = ZoneView { managed: pages, free: pages, ..ZoneView::default() };
    }
    for zone in 0..MAX_NR_ZONES {
        for highest in zone + 1..MAX_NR_ZONES {
            let higher = zones[zone + 1..=highest].iter().map(|zone| zone.view.managed);
            zones[zone].reserve[highest] = higher.sum::<u64>() / RESERVE_RATIO;
        }
    }
    zones
}

fn share(of: u64, part: u64, whole: u64) -> u64 {
    (u128::from(of) * u128::from(part) / u128::from(whole.max(1))) as u64
}

#[cfg(test)]
mod tests;
