//! The memcg LRU as lists of lists, and root reclaim through it (spec §7.1 to §7.3). There are two
//! memcgs: the root, which is empty, and the group.

use std::collections::BTreeMap;

use mglru::config::Floor;

use super::{Control, Naive};

/// The group's number; the root is 0.
const GROUP: usize = 1;

/// Says what is done with a memcg that was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Tail,
    Young,
}

/// Memcgs by memcg generation and bin; the last of a list is its tail.
#[derive(Clone, Debug, Default)]
pub struct Bins {
    seq: u64,
    lists: BTreeMap<u64, [Vec<usize>; 8]>,
    /// The memcg was put at a tail for one more try.
    retried: [bool; 2],
    started: bool,
    /// The root's oldest generations were given up.
    root_is_short: bool,
    /// The machine's random numbers.
    pub random: u64,
}

impl Bins {
    fn draw(&mut self) -> usize {
        crate::toy::draw(&mut self.random, 8) as usize
    }

    /// The memcgs came into being before anybody looked: tail of the old generation.
    fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        for memcg in [0, GROUP] {
            let bin = self.draw();
            self.lists.entry(0).or_default()[bin].push(memcg);
        }
    }

    fn apply(&mut self, memcg: usize, op: Op) {
        self.start();
        let holds = |lists: &[Vec<usize>; 8]| lists.iter().any(|list| list.contains(&memcg));
        let own = *self.lists.iter().find(|(_, lists)| holds(lists)).expect("in a bin").0;
        for list in self.lists.get_mut(&own).unwrap() {
            list.retain(|&other| other != memcg);
        }
        let to = if op == Op::Young { self.seq + 1 } else { own };
        let bin = self.draw();
        self.lists.entry(to).or_default()[bin].push(memcg);
        self.retried[memcg] = op == Op::Tail;
        if self.lists[&self.seq].iter().all(Vec::is_empty) {
            self.seq += 1;
        }
    }

    fn after(&self, seq: u64, bin: usize, memcg: Option<usize>) -> Option<usize> {
        let list = &self.lists.get(&seq)?[bin];
        let next = match memcg {
            None => 0,
            Some(memcg) => list.iter().position(|&other| other == memcg)? + 1,
        };
        list.get(next).copied()
    }
}

impl Naive {
    /// A walk over the old memcg generation.
    pub fn walk_bins(&mut self, sc: &mut Control) {
        self.bins.start();
        let (seq, first) = (self.bins.seq, self.bins.draw());
        for bin in (0..8).map(|i| (first + i) % 8) {
            let mut at = self.bins.after(seq, bin, None);
            while let Some(memcg) = at {
                let (op, enough) = self.visit_memcg(sc, memcg);
                at = self.bins.after(seq, bin, Some(memcg));
                op.into_iter().for_each(|op| self.bins.apply(memcg, op));
                if enough {
                    return;
                }
            }
        }
    }

    fn visit_memcg(&mut self, sc: &mut Control, memcg: usize) -> (Option<Op>, bool) {
        let retry = if self.bins.retried[memcg] { Op::Young } else { Op::Tail };
        if memcg != GROUP {
            return (Some(self.visit_root(retry)), self.enough(sc));
        }
        let low = self.protected(sc);
        if low > 0 && self.usage() <= low && retry == Op::Tail {
            return (Some(Op::Tail), false);
        }
        let rotate = self.shrink(sc);
        let sizable = self.evictable_size(sc.swappiness) >> sc.priority != 0;
        let op = match (rotate, sizable) {
            (true, _) => Some(Op::Young),
            (false, true) => None,
            (false, false) => Some(retry),
        };
        (op, self.enough(sc))
    }

    /// The root has nothing to give; where it goes depends on the floor (spec §10.1).
    fn visit_root(&mut self, retry: Op) -> Op {
        let rotates = match self.config.floor {
            Floor::None | Floor::V7 => false,
            Floor::V4 | Floor::V5 => true,
            // 32 pages are wanted: the first visit gives all but two generations up, each later one
            // must make a new one.
            Floor::V2 => std::mem::replace(&mut self.bins.root_is_short, true),
        };
        if rotates { Op::Young } else { retry }
    }

    /// Reclaim of the group itself: what was aged is young in the memcg LRU too (spec §7.5).
    pub fn note_rotation(&mut self, rotate: bool) {
        if rotate && self.config.uses_memcg_lru() {
            self.bins.apply(GROUP, Op::Young);
        }
    }
}
