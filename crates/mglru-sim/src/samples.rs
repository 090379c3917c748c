//! Looks at the machine again and again in virtual time, for curves and pictures. A look changes
//! nothing: a run is the same with and without.

use mglru::types::{MemcgId, Nanos, NodeId};
use mglru::{Counter, Counters, GenerationSize};

use crate::machine::Machine;
use crate::spec::PAGE_SIZE;

/// So many looks are kept; then every other one is dropped and the time between them doubles.
const MOST: usize = 512;

/// Time between the first looks, ns.
const FIRST: Nanos = 1_000_000;

/// Counts the groups that are looked at: the root and the first ones of the plan.
pub const GROUPS: usize = 17;

/// Names the counters of the machine that a look keeps.
pub const COUNTERS: [&str; 21] = [
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgmajfault",
    "workingset_refault_anon",
    "workingset_refault_file",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "nr_free_pages",
    "nr_dirty",
    "nr_writeback",
    "flusher_wakeups",
    "throttle_writeback",
    "throttle_isolated",
    "throttle_noprogress",
    "throttle_congested",
    "dirty_paused_us",
    "oom_kill",
];

/// Names what a look keeps of a group, descendants counted: six sizes in bytes, then counters.
pub const COLUMNS: [&str; 10] = [
    "current",
    "anon",
    "file",
    "dirty",
    "writeback",
    "swap",
    "pgscan",
    "pgsteal",
    "workingset_refault_anon",
    "workingset_refault_file",
];

/// Tells what a machine held and had done at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Holds the moment, ns.
    pub at: Nanos,
    /// Counts operations ended before.
    pub ops: u64,
    /// Holds values of [`COUNTERS`]; 0 for one that this machine lacks.
    pub counters: [u64; COUNTERS.len()],
    /// Describes the groups, the root first.
    pub groups: Vec<GroupSample>,
}

/// Tells what a group held at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSample {
    /// Holds values of [`COLUMNS`].
    pub columns: [u64; COLUMNS.len()],
    /// Lists the group's generations on the first node, oldest first; none under the classic LRU.
    pub generations: Vec<GenerationSize>,
    /// Counts refaulted pages by type and tier, as the group's controller knows them on the first
    /// node.
    pub refaulted: [[u64; 4]; 2],
    /// Counts the same for pages that left or were spared.
    pub judged: [[u64; 4]; 2],
    /// Holds the highest tier of each type that is evicted now.
    pub limits: [u8; 2],
}

/// Keeps looks at a run, evenly spread over it.
#[derive(Clone, Debug)]
pub struct Samples<T = Sample> {
    every: Nanos,
    next: Nanos,
    rows: Vec<T>,
}

impl<T> Default for Samples<T> {
    fn default() -> Self {
        Self::every(FIRST)
    }
}

impl<T> Samples<T> {
    /// Keeps looks with so much time, ns, between the first ones.
    pub fn every(every: Nanos) -> Self {
        Self { every, next: 0, rows: Vec::new() }
    }

    /// Returns the looks in order.
    pub fn rows(&self) -> &[T] {
        &self.rows
    }

    /// Returns the looks in order.
    pub fn into_rows(self) -> Vec<T> {
        self.rows
    }

    /// Returns the time of the next look, ns.
    #[inline]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Tells whether the next look is due.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// Goes on without the look that was due.
    pub fn skip(&mut self, at: Nanos) {
        self.next = (at / self.every + 1) * self.every;
    }

    /// Keeps the look of a moment.
    pub fn push(&mut self, at: Nanos, look: T) {
        self.skip(at);
        self.rows.push(look);
        if self.rows.len() == MOST {
            let mut at = 0;
            self.rows.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
    }
}

impl Machine {
    #[inline]
    pub(crate) fn look_if_due(&mut self) {
        if self.samples.as_ref().is_some_and(|samples| samples.is_due(self.world.now)) {
            let sample = self.sample();
            self.samples.as_mut().expect("just seen").push(sample.at, sample);
        }
    }

    /// Returns the looks that were kept, and one at the end.
    pub(crate) fn end_samples(&mut self) -> Vec<Sample> {
        let last = self.sample();
        let mut rows = self.samples.take().unwrap_or_default().into_rows();
        rows.extend(Some(last).filter(|last| rows.last().is_none_or(|row| row.at < last.at)));
        rows
    }

    /// Looks at the machine as it is now.
    pub(crate) fn sample(&self) -> Sample {
        let known = self.machine_counters();
        let value = |name: &&str| known.iter().find(|(n, _)| n == name).map_or(0, |(_, v)| *v);
        let groups = (0..self.world.memcgs.len().min(GROUPS) as u32).map(MemcgId);
        Sample {
            at: self.world.now,
            ops: self.recorder.ops,
            counters: COUNTERS.each_ref().map(value),
            groups: groups.map(|memcg| self.group_sample(memcg)).collect(),
        }
    }

    fn group_sample(&self, memcg: MemcgId) -> GroupSample {
        let node = NodeId(0);
        let rates = self.lru.tier_rates(memcg, node);
        GroupSample {
            columns: self.columns(memcg),
            generations: self.lru.generations(memcg, node),
            refaulted: rates.map(|tiers| tiers.map(|tier| tier.refaulted)),
            judged: rates.map(|tiers| tiers.map(|tier| tier.total)),
            limits: self.lru.tier_limits(memcg, node).map(|tier| tier.0),
        }
    }

    fn columns(&self, memcg: MemcgId) -> [u64; COLUMNS.len()] {
        let (mut held, mut written, mut sum) = ([0; 2], [0; 2], Counters::default());
        let all = (0..self.world.memcgs.len() as u32).map(MemcgId);
        for below in all.filter(|&m| self.world.memcgs.is_under(m, memcg)) {
            let pages = self.world.held(below);
            held = [held[0] + pages.anon, held[1] + pages.file + pages.shmem];
            let (dirty, writeback) = self.lru.memcg_write(below);
            written = [written[0] + dirty, written[1] + writeback];
            sum.add(self.lru.memcg_counters(below));
        }
        let usage = self.world.memcgs.usage(memcg);
        let sizes = [usage.current, held[0], held[1], written[0], written[1], usage.swap];
        let [current, anon, file, dirty, writeback, swap] = sizes.map(|pages| pages * PAGE_SIZE);
        let scanned = sum[Counter::PgscanAnon] + sum[Counter::PgscanFile];
        let stolen = sum[Counter::PgstealAnon] + sum[Counter::PgstealFile];
        let [refault_anon, refault_file] =
            [sum[Counter::WorkingsetRefaultAnon], sum[Counter::WorkingsetRefaultFile]];
        let sizes = [current, anon, file, dirty, writeback, swap];
        let counts = [scanned, stolen, refault_anon, refault_file];
        std::array::from_fn(|i| if i < 6 { sizes[i] } else { counts[i - 6] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: Nanos) -> Sample {
        Sample { at: ns, ops: 0, counters: [0; COUNTERS.len()], groups: Vec::new() }
    }

    #[test]
    fn looks_stay_few_and_evenly_spread() {
        let mut samples = Samples::default();
        for ns in (0..5_000).map(|ms| ms * 1_000_000) {
            if samples.is_due(ns) {
                samples.push(ns, at(ns));
            }
        }
        let rows = samples.into_rows();
        assert!((MOST / 2..MOST).contains(&rows.len()), "{}", rows.len());
        let steps: Vec<Nanos> = rows.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        assert!(steps.iter().all(|&step| step == 16_000_000), "{steps:?}");
    }
}
