//! Generations by turnover. Pages that are used once go as they come, from the oldest generation,
//! which so is never empty: nothing would ever make a new one, and pages that were used when those
//! were made would stay for good. So one is made whenever as many pages were evicted as a group
//! holds itself, a slice of a walk at a time.

use mglru::{Aging, MemcgId};

use super::{NODE, Policy};

/// Slices between looks at what else there is to do.
const SLICES: usize = 4;
/// Pages that are evicted for a turn at least: a walk is of all that a group has mapped.
const LEAST: u64 = 1024;

/// Turnover: how far each group has come.
#[derive(Default)]
pub(super) struct Turn {
    aging: Option<Aging>,
    /// Pages evicted since the last turn, by memcg.
    evicted: Vec<u64>,
}

impl Turn {
    pub(super) fn note_evicted(&mut self, memcg: MemcgId) {
        if self.evicted.len() <= memcg.index() {
            self.evicted.resize(memcg.index() + 1, 0);
        }
        self.evicted[memcg.index()] += 1;
    }
}

impl Policy {
    /// Takes a walk further, or begins the one that is due. False: there is none.
    pub(super) fn turn(&mut self) -> bool {
        let Some(mut aging) = self.world.turn.aging.take().or_else(|| self.due()) else {
            return false;
        };
        let over = (0..SLICES).any(|_| self.lru.step_age(&mut aging, &mut self.world).is_some());
        self.world.taken.clear();
        if !over {
            self.world.turn.aging = Some(aging);
        }
        true
    }

    /// Ends the turn under way, for a caller that would otherwise end its walk before it has seen
    /// all.
    pub(super) fn end_turn(&mut self) {
        while self.world.turn.aging.is_some() {
            self.turn();
        }
    }

    fn due(&mut self) -> Option<Aging> {
        let evicted = &self.world.turn.evicted;
        let turned = |&memcg: &usize| {
            evicted[memcg] > LEAST && evicted[memcg] > self.held(MemcgId(memcg as u32))
        };
        let memcg = (0..evicted.len()).find(turned).filter(|_| self.lru.config().is_mglru())?;
        self.world.turn.evicted[memcg] = 0;
        let memcg = MemcgId(memcg as u32);
        let swappiness = self.account(memcg).swappiness();
        Some(self.lru.begin_age(self.lru.lruvec_id(memcg, NODE), swappiness, true))
    }

    /// Evictable pages of a group's own.
    fn held(&self, memcg: MemcgId) -> u64 {
        let sizes = self.lru.sizes(memcg, NODE);
        sizes.inactive_anon + sizes.active_anon + sizes.inactive_file + sizes.active_file
    }
}
