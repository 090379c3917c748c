//! What the policy can tell: counters, sizes, generations.

use mglru::{Counters, MemcgId, Sizes};

use super::{NODE, Policy};

/// A group's counters and sizes at one moment.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Event counts, descendants not included.
    pub counters: Counters,
    /// Pages by list.
    pub sizes: Sizes,
    /// Dirty file pages.
    pub file_dirty: u64,
    /// Pages being written.
    pub file_writeback: u64,
}

impl Policy {
    /// What there is to say of a group.
    pub(crate) fn report(&mut self, memcg: MemcgId) -> GroupReport {
        self.learn();
        let (file_dirty, file_writeback) = self.lru.memcg_write(memcg);
        GroupReport {
            counters: self.lru.memcg_counters(memcg).clone(),
            sizes: self.lru.sizes(memcg, NODE),
            file_dirty,
            file_writeback,
        }
    }

    /// The generations of a group in the layout of the kernel's lru_gen file.
    pub(crate) fn lru_gen(&mut self, memcg: MemcgId) -> String {
        self.learn();
        let now = self.world.clock.now();
        self.lru.dump(memcg, &self.account(memcg).path, now)
    }

    /// Makes a new generation of a group, as lru_gen's `+` does.
    pub(crate) fn age(&mut self, memcg: MemcgId) -> bool {
        self.learn();
        let lruvec = self.lru.lruvec_id(memcg, NODE);
        let swappiness = self.account(memcg).swappiness();
        self.lru.debug_age(lruvec, swappiness, true, &mut self.world)
    }

    /// The rules of the core hold.
    pub(crate) fn check(&mut self) {
        self.learn();
        self.lru.check();
    }
}
