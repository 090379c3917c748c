//! Reports on a group: counters, sizes, generations, distances.

use std::sync::Arc;

use mglru::{Counters, MemcgId, Sizes, TierRates};

use super::distance::{CLASSES, Histogram};
use super::{NODE, Policy};
use crate::account::{Account, Happened};
use crate::faults::{Durations, Kind};
use crate::sys::PAGE;

/// Describes a group and those below it at one moment.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Holds event counts of the core.
    pub counters: Counters,
    /// Counts pages by list.
    pub sizes: Sizes,
    /// Counts dirty file pages.
    pub file_dirty: u64,
    /// Counts pages being written.
    pub file_writeback: u64,
    /// Counts events, by [`Happened`].
    pub events: [u64; Happened::ALL],
    /// Counts faults, by [`Kind`].
    pub faults: [Durations; Kind::ALL.len()],
    /// Holds the distances of pages that came back.
    pub distances: Histogram,
}

impl GroupReport {
    /// Returns how often an event happened.
    pub fn event(&self, what: Happened) -> u64 {
        self.events[what as usize]
    }

    /// Counts faults of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.faults[kind as usize].count()
    }

    /// Counts the bytes that are in memory.
    pub fn resident(&self) -> u64 {
        let Sizes { inactive_anon, active_anon, inactive_file, active_file, unevictable } =
            self.sizes;
        (inactive_anon + active_anon + inactive_file + active_file + unevictable) * PAGE as u64
    }
}

impl Policy {
    /// Reports on a group and those below it.
    pub(crate) fn report(&mut self, memcg: MemcgId) -> GroupReport {
        self.learn();
        let mut report = GroupReport {
            counters: Counters::default(),
            sizes: Sizes::default(),
            file_dirty: 0,
            file_writeback: 0,
            events: [0; Happened::ALL],
            faults: [Durations::default(); Kind::ALL.len()],
            distances: [0; CLASSES],
        };
        let top = self.account(memcg).clone();
        for account in self.world.accounts.clone().iter().filter(|a| a.is_within(&top)) {
            self.add_to(&mut report, account);
        }
        report
    }

    fn add_to(&mut self, report: &mut GroupReport, account: &Arc<Account>) {
        let memcg = account.memcg;
        report.counters.add(self.lru.memcg_counters(memcg));
        let sizes = self.lru.sizes(memcg, NODE);
        report.sizes.inactive_anon += sizes.inactive_anon;
        report.sizes.active_anon += sizes.active_anon;
        report.sizes.inactive_file += sizes.inactive_file;
        report.sizes.active_file += sizes.active_file;
        report.sizes.unevictable += sizes.unevictable;
        let (file_dirty, file_writeback) = self.lru.memcg_write(memcg);
        report.file_dirty += file_dirty;
        report.file_writeback += file_writeback;
        report.events.iter_mut().zip(account.all_events()).for_each(|(sum, n)| *sum += n);
        account.faults.add_to(&mut report.faults);
        let distances = &self.world.distances.of(memcg).histogram;
        report.distances.iter_mut().zip(distances).for_each(|(sum, n)| *sum += n);
    }

    /// The generations of a group in the layout of the kernel's lru_gen file.
    pub(crate) fn lru_gen(&mut self, memcg: MemcgId) -> String {
        self.learn();
        let now = self.world.clock.now();
        self.lru.dump(memcg, &self.account(memcg).path, now)
    }

    /// The controller's input: evicted and refaulted pages of each type and tier.
    pub(crate) fn tier_rates(&mut self, memcg: MemcgId) -> TierRates {
        self.learn();
        self.lru.tier_rates(memcg, NODE)
    }

    /// Makes a new generation of a group, as lru_gen's `+` does.
    pub(crate) fn age(&mut self, memcg: MemcgId) -> bool {
        self.learn();
        self.end_turn();
        let lruvec = self.lru.lruvec_id(memcg, NODE);
        let swappiness = self.account(memcg).swappiness();
        let aged = self.lru.debug_age(lruvec, swappiness, true, &mut self.world);
        self.world.taken.clear();
        aged
    }

    /// The rules of the core hold.
    pub(crate) fn check(&mut self) {
        self.learn();
        self.lru.check();
    }
}
