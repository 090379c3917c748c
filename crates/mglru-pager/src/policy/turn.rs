//! Generations by turnover. Pages that are used once go as they come, from the oldest generation,
//! which so is never empty: nothing would ever make a new one, and pages that were used when those
//! were made would stay for good. So one is made when as many pages as a group holds were
//! evicted since, a slice of a walk at a time.

use mglru::{Aging, MemcgId};

use super::{NODE, Policy};
use crate::account::PAGE_COST;

/// Slices between looks at what else there is to do.
const SLICES: usize = 4;

/// What is turning, and how far each group has come.
#[derive(Default)]
pub(super) struct Turn {
    aging: Option<Aging>,
    /// Pages evicted since the last turn, by memcg.
    pub(super) evicted: Vec<u64>,
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

    fn due(&mut self) -> Option<Aging> {
        let accounts = &self.world.accounts;
        let held = |memcg: usize| accounts[memcg].usage() / PAGE_COST;
        let memcg = self.world.turn.evicted.iter().enumerate().position(|(m, &n)| n > held(m))?;
        self.world.turn.evicted[memcg] = 0;
        let memcg = MemcgId(memcg as u32);
        let (lruvec, swappiness) =
            (self.lru.lruvec_id(memcg, NODE), self.account(memcg).swappiness());
        Some(self.lru.begin_age(lruvec, swappiness, true))
    }
}
