//! Measures how much it costs to start the reclaim of a machine with many groups: processor time of
//! one call, measured on the core itself with a host that does nothing, for each way of finding
//! groups (spec §7.1, §7.5). With the memcg LRU it must not depend on their number.
//!
//! Every group holds 1.9 GiB of clean file pages, most of them in folios of 2^15 pages, so that
//! each priority gives a budget and ten thousand of them fit into memory; what is taken are pages
//! of one each at the tail. Wall-clock figures: they are no part of a record.

use std::time::{Duration, Instant};

use mglru::config::Config;
use mglru::folio::{Bit, Folios};
use mglru::host::{
    Eviction, Harvest, Host, MemcgView, Outcome, PmdView, RmapHarvest, SlabWork, Va, Window,
    ZoneView,
};
use mglru::{
    Entry, FolioId, FolioKind, Lru, LruvecId, MemcgId, MmId, Nanos, NodeId, Reclaim, Shadow, Step,
    Zone,
};
use serde::Serialize;

const NODE: NodeId = NodeId(0);
const ZONE: Zone = Zone(2);
/// Largest order of a folio, and how many of them make 1.9 GiB.
const ORDER: u8 = 15;
const LARGE: usize = 14;
/// Folios of one page at the tail of each group: more than a call for 512 pages takes in all,
/// should it come to the same group each time.
const SMALL: usize = 640;

/// Lists the ways of finding groups: a name, and the keys of the core it stands for.
pub const WALKS: [(&str, &[(&str, &str)]); 3] = [
    ("memcg LRU", &[]),
    ("iterator, 6.1", &[("memcg_walk", "iter"), ("partial_walks", "false")]),
    ("iterator, shared", &[("memcg_walk", "iter")]),
];

/// Knows sizes and frees what reclaim asks for; does nothing else.
#[derive(Debug)]
struct Idle {
    pages: u64,
    random: u64,
    /// Groups of the folios freed, by lruvec.
    freed: Vec<LruvecId>,
}

impl Host for Idle {
    fn now(&mut self) -> Nanos {
        0
    }

    /// Knuth's linear congruential generator, its upper bits.
    fn random_below(&mut self, n: u32) -> u32 {
        const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
        self.random = self.random.wrapping_mul(MULTIPLIER).wrapping_add(1_442_695_040_888_963_407);
        (((self.random >> 32) * u64::from(n)) >> 32) as u32
    }

    fn memcg(&mut self, _memcg: MemcgId) -> MemcgView {
        let (min, low, max) = (0, 0, u64::MAX);
        MemcgView { usage: self.pages, min, low, max, swappiness: 60, swap_left: 0 }
    }

    fn zone(&mut self, _node: NodeId, _zone: Zone) -> ZoneView {
        ZoneView { managed: self.pages, ..ZoneView::default() }
    }

    fn next_pmd(&mut self, _mm: MmId, _from: Va) -> Option<PmdView> {
        None
    }

    fn harvest_pmd(&mut self, _: MmId, _: Va, _: LruvecId, _: &Folios, _: &mut Harvest) {}

    fn harvest_rmap(&mut self, _: FolioId, _: Window, _: &Folios, _: &mut RmapHarvest) {}

    fn evict(&mut self, _folios: &mut Folios, batch: &mut [Eviction]) {
        batch.iter_mut().for_each(|e| e.outcome = Outcome::Ready { wrote: false });
    }

    fn free(&mut self, folios: &mut Folios, folio: FolioId, _shadow: Shadow) {
        self.freed.push(folios[folio].lruvec);
    }

    fn wake_flusher(&mut self, _node: NodeId) {}

    fn shrink_slab(&mut self, _memcg: MemcgId, _node: NodeId, _priority: u8) -> SlabWork {
        SlabWork::default()
    }
}

/// Holds a machine full of equal groups.
#[derive(Debug)]
pub struct Ground {
    lru: Lru,
    host: Idle,
    groups: Vec<MemcgId>,
}

impl Ground {
    /// Creates `nr` groups under one way of finding them.
    ///
    /// # Panics
    /// If the way names keys that the core does not know.
    pub fn new(nr: usize, walk: &[(&str, &str)]) -> Self {
        let mut config = Config::default();
        walk.iter().for_each(|(key, value)| config.set(key, value).expect("a key of the core"));
        let pages = (nr * (SMALL + (LARGE << ORDER))) as u64;
        let mut ground = Self {
            lru: Lru::new(config, 0),
            host: Idle { pages, random: 1, freed: Vec::new() },
            groups: Vec::new(),
        };
        for _ in 0..nr {
            let group = ground.lru.add_memcg(MemcgId::ROOT, 0);
            ground.groups.push(group);
            (0..SMALL).for_each(|_| ground.fill(group, 0));
            (0..LARGE).for_each(|_| ground.fill(group, ORDER));
        }
        ground
    }

    fn fill(&mut self, group: MemcgId, order: u8) {
        let folio = self.lru.new_folio(FolioKind::File, group, NODE, ZONE, order, [0, 0]);
        self.lru.add(folio, Entry::Plain);
        // Small folios belong to the tail, where a folio goes that reclaim waited for.
        if order == 0 {
            self.lru.start_writeback(folio);
            self.lru.folios_mut()[folio].flags.set(Bit::RECLAIM);
            self.lru.end_writeback(folio);
        }
    }

    /// Makes one call for `pages` of the root: returns the time it took and the pages it got. What
    /// was taken is put back, untimed.
    pub fn call(&mut self, pages: u64) -> (Duration, u64) {
        let mut reclaim = Reclaim::proactive(MemcgId::ROOT, pages, None);
        let began = Instant::now();
        let reclaimed = loop {
            match reclaim.step(&mut self.lru, &mut self.host) {
                Step::Done { reclaimed } => break reclaimed,
                Step::Again(_) | Step::Sleep { .. } => {}
            }
        };
        let took = began.elapsed();
        for lruvec in std::mem::take(&mut self.host.freed) {
            // The root is the first lruvec of the only node, its groups follow.
            self.fill(self.groups[lruvec.index() - 1], 0);
        }
        (took, reclaimed)
    }
}

/// Holds one point of the picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Says how groups are found.
    pub walk: &'static str,
    /// Counts the groups.
    pub groups: usize,
    /// Holds the median processor time of a call, µs.
    pub us: f64,
    /// Counts pages asked for.
    pub asked: u64,
    /// Holds the pages got by a call, on average.
    pub got: f64,
}

/// Measures `calls` calls for `pages` each, at every number of groups and for each way.
pub fn measure(groups: &[usize], pages: u64, calls: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for (walk, keys) in WALKS {
        points.extend(
            groups.iter().map(|&nr| point(walk, &mut Ground::new(nr, keys), nr, pages, calls)),
        );
    }
    points
}

fn point(
    walk: &'static str,
    ground: &mut Ground,
    groups: usize,
    asked: u64,
    calls: usize,
) -> Point {
    let mut times = Vec::new();
    let mut got = 0;
    for _ in 0..calls {
        let (took, reclaimed) = ground.call(asked);
        times.push(took);
        got += reclaimed;
    }
    times.sort_unstable();
    let us = times[calls / 2].as_secs_f64() * 1e6;
    Point { walk, groups, us, asked, got: got as f64 / calls as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_gets_what_it_asked_for_and_the_ground_is_refilled() {
        let mut ground = Ground::new(16, WALKS[0].1);
        for _ in 0..50 {
            let (_, got) = ground.call(512);
            assert!((512..=640).contains(&got), "{got}");
        }
        assert_eq!(ground.lru.folios().live(), 16 * (SMALL + LARGE));
        ground.lru.check();
    }

    #[test]
    fn the_walk_of_6_1_takes_from_every_group() {
        let mut ground = Ground::new(64, WALKS[1].1);
        let (_, got) = ground.call(512);
        assert!(got >= 64 * 32, "{got}");
    }
}
