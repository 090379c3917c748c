//! Collects the results of a run: counters under their kernel names, per group `memory.stat` and
//! events, latencies per class of operation, and the same at the start of each phase.

use hdrhistogram::Histogram;
use mglru::types::{MemcgId, Nanos, NodeId};
use mglru::{Counter, Counters};
use mglru_workload::Layout;

use crate::machine::Machine;
use crate::memcg::EventCounts;
use crate::spec::PAGE_SIZE;
use crate::stall::Stalled;

/// Significant digits of latencies.
const LATENCY_DIGITS: u8 = 3;

/// Longer latencies count as this: an hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// Names what a group has charged, in `memory.stat`.
const USAGE: [&str; 5] =
    ["memory.current", "memory.peak", "memory.swap.current", "memory.swap.peak", "kernel"];

/// Names sizes of a group's memory by kind and list, in `memory.stat`.
const SIZES: [&str; 10] = [
    "anon",
    "shmem",
    "file",
    "file_dirty",
    "file_writeback",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
];

/// Lists the names of all figures of `memory.stat`.
pub fn stat_names() -> impl Iterator<Item = &'static str> {
    USAGE.into_iter().chain(SIZES).chain(Counter::ALL.iter().map(|counter| counter.name()))
}

/// Lists named figures, in a fixed order.
pub type Figures = Vec<(&'static str, u64)>;

/// Holds the results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Counts application operations ended (`Op::End`).
    pub ops: u64,
    /// Counts page accesses, reads and writes.
    pub accesses: u64,
    /// Holds the length of the run in virtual time, ns.
    pub virtual_ns: Nanos,
    /// Holds the latency per class of operation, ns.
    pub latency: Vec<(String, Histogram<u64>)>,
    /// Counts the operations ended, per task.
    pub task_ops: Vec<u64>,
    /// Holds the machine's counters at the end.
    pub counters: Figures,
    /// Describes the groups at the end, the root first.
    pub groups: Vec<GroupOutcome>,
    /// Holds the same figures at the beginning of each phase.
    pub phases: Vec<Phase>,
    /// Holds figures that the workload itself measured.
    pub figures: Vec<(String, f64)>,
    /// Counts attempts at blocks of contiguous pages, per class: made and successful.
    pub blocks: Vec<(String, [u64; 2])>,
    /// Holds the hash of the reference strings: equal for all variants of a run.
    pub string_hash: u64,
}

/// Describes a group at some time. Everything counts descendants too.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupOutcome {
    /// Holds the path of the group; the root is `/`.
    pub name: String,
    /// Holds `memory.stat`: sizes in bytes, counters as they are, and usage and swap besides.
    pub stat: Figures,
    /// Holds `memory.events`.
    pub events: EventCounts,
    /// Holds the time lost to memory pressure.
    pub pressure: Stalled,
    /// Lists the group's generations, in the layout of the kernel's lru_gen.
    pub lru_gen: String,
}

/// Holds the counters at the time when a phase began.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Names the phase.
    pub name: String,
    /// Numbers the sequence that the phase belongs to: it ends where the next phase of that begins.
    pub sequence: u32,
    /// Holds the time of its beginning, ns.
    pub at: Nanos,
    /// Counts operations ended before it.
    pub ops: u64,
    /// Counts accesses before it.
    pub accesses: u64,
    /// Holds counters and groups at its beginning.
    pub snapshot: Snapshot,
}

/// Holds the counters at some time.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Holds the machine's counters.
    pub counters: Figures,
    /// Holds figures of each group.
    pub groups: Vec<GroupOutcome>,
    /// Counts the cached pages of each file.
    pub resident: Vec<u64>,
}

impl Outcome {
    /// Returns a counter by name, where the machine has it.
    pub fn counter(&self, name: &str) -> Option<u64> {
        find(&self.counters, name)
    }

    /// Returns operations per second of virtual time.
    pub fn ops_per_s(&self) -> f64 {
        self.ops as f64 * 1e9 / self.virtual_ns.max(1) as f64
    }

    /// Returns a figure of a group's `memory.stat`.
    pub fn stat(&self, group: &str, name: &str) -> Option<u64> {
        let group = self.groups.iter().find(|g| g.name == group)?;
        find(&group.stat, name)
    }
}

fn find(figures: &Figures, name: &str) -> Option<u64> {
    figures.iter().find(|(n, _)| *n == name).map(|&(_, value)| value)
}

/// Collects results while the machine runs.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Counts operations ended.
    pub ops: u64,
    /// Counts page accesses, reads and writes begun.
    pub accesses: u64,
    latency: Vec<(String, Histogram<u64>)>,
    task_ops: Vec<u64>,
    blocks: Vec<[u64; 2]>,
    phase_names: Vec<String>,
    sequences: Vec<u32>,
    group_names: Vec<String>,
    phases: Vec<Phase>,
}

impl Recorder {
    /// Creates a recorder with nothing recorded yet.
    pub fn new(layout: &Layout) -> Self {
        let histogram = || {
            Histogram::new_with_max(LATENCY_MAX_NS, LATENCY_DIGITS).expect("bounds are in range")
        };
        let root = std::iter::once("/".to_owned());
        Self {
            ops: 0,
            accesses: 0,
            latency: layout.classes.iter().map(|name| (name.clone(), histogram())).collect(),
            task_ops: vec![0; layout.tasks.len()],
            blocks: vec![[0; 2]; layout.classes.len()],
            phase_names: layout.phases.clone(),
            sequences: layout.sequences.clone(),
            group_names: root.chain(layout.groups.iter().map(|g| g.name.clone())).collect(),
            phases: Vec::new(),
        }
    }

    /// Records that an operation of a class took so long.
    pub fn end_op(&mut self, t: usize, class: u8, took: Nanos) {
        self.ops += 1;
        self.task_ops[t] += 1;
        if let Some((_, histogram)) = self.latency.get_mut(usize::from(class)) {
            histogram.saturating_record(took);
        }
    }

    /// Records that an attempt at a block has ended.
    pub fn end_block(&mut self, class: u8, got: bool) {
        let [made, successful] = &mut self.blocks[usize::from(class)];
        *made += 1;
        *successful += u64::from(got);
    }

    fn take_blocks(&mut self) -> Vec<(String, [u64; 2])> {
        let names = self.latency.iter().map(|(name, _)| name.clone());
        names.zip(self.blocks.drain(..)).filter(|(_, [made, _])| *made > 0).collect()
    }

    /// Lists the paths of groups, the root first.
    pub(crate) fn group_names(&self) -> &[String] {
        &self.group_names
    }

    /// Returns the path of a group.
    pub(crate) fn group_name(&self, memcg: MemcgId) -> &str {
        &self.group_names[memcg.index()]
    }

    /// Records that a phase begins.
    pub fn mark(&mut self, phase: u32, at: Nanos, snapshot: Snapshot) {
        let name = self.phase_names.get(phase as usize).cloned();
        let name = name.unwrap_or_else(|| phase.to_string());
        let sequence = self.sequences.get(phase as usize).copied().unwrap_or(0);
        let (ops, accesses) = (self.ops, self.accesses);
        self.phases.push(Phase { name, sequence, at, ops, accesses, snapshot });
    }
}

impl Machine {
    /// Returns the results of the run, at its end.
    pub fn outcome(&mut self) -> Outcome {
        let Snapshot { counters, groups, .. } = self.snapshot();
        let recorder = &mut self.recorder;
        Outcome {
            ops: recorder.ops,
            accesses: recorder.accesses,
            virtual_ns: self.world.now,
            blocks: recorder.take_blocks(),
            latency: std::mem::take(&mut recorder.latency),
            task_ops: std::mem::take(&mut recorder.task_ops),
            counters,
            groups,
            phases: std::mem::take(&mut recorder.phases),
            figures: self.workload.figures(),
            string_hash: self.workload.string_hash(),
        }
    }

    /// Counters as they are now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let groups = (0..self.world.memcgs.len() as u32).map(|m| self.group_outcome(MemcgId(m)));
        let resident = self.world.files.iter().map(|file| file.cache.cached()).collect();
        Snapshot { counters: self.machine_counters(), groups: groups.collect(), resident }
    }

    fn group_outcome(&self, memcg: MemcgId) -> GroupOutcome {
        GroupOutcome {
            name: self.recorder.group_names[memcg.index()].clone(),
            stat: self.memory_stat(memcg),
            events: self.world.memcgs.events(memcg).hierarchical,
            pressure: self.world.stalls.total(memcg, self.world.now),
            lru_gen: self.lru.dump(
                memcg,
                &self.recorder.group_names[memcg.index()],
                self.world.now,
            ),
        }
    }

    pub(crate) fn memory_stat(&self, memcg: MemcgId) -> Figures {
        let ids = (0..self.world.memcgs.len() as u32).map(MemcgId);
        let subtree: Vec<MemcgId> = ids.filter(|&m| self.world.memcgs.is_under(m, memcg)).collect();
        let usage = self.world.memcgs.usage(memcg);
        let pages = [usage.current, usage.peak, usage.swap, usage.swap_peak, usage.kernel];
        let bytes = pages.map(|pages| pages * PAGE_SIZE);
        let mut stat: Figures = USAGE.into_iter().zip(bytes).collect();
        stat.extend(self.sizes_of(&subtree).map(|(name, pages)| (name, pages * PAGE_SIZE)));
        stat.extend(counters_of(&subtree, self));
        stat
    }

    fn sizes_of(&self, subtree: &[MemcgId]) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let mut sizes = SIZES.map(|name| (name, 0));
        for &memcg in subtree {
            let held = self.world.held(memcg);
            let (dirty, writeback) = self.lru.memcg_write(memcg);
            let mut add = |at: usize, pages: u64| sizes[at].1 += pages;
            add(0, held.anon);
            add(1, held.shmem);
            // Shared memory lives in the page cache, and counts there too.
            add(2, held.file + held.shmem);
            add(3, dirty);
            add(4, writeback);
            for node in 0..self.world.zones.nodes() as u8 {
                let s = self.lru.sizes(memcg, NodeId(node));
                let lists =
                    [s.inactive_anon, s.active_anon, s.inactive_file, s.active_file, s.unevictable];
                lists.into_iter().enumerate().for_each(|(i, pages)| add(5 + i, pages));
            }
        }
        sizes.into_iter()
    }
}

/// Sums the policy's counters of groups up, under the kernel's names.
fn counters_of(subtree: &[MemcgId], machine: &Machine) -> Figures {
    let mut sum = Counters::default();
    subtree.iter().for_each(|&memcg| sum.add(machine.lru.memcg_counters(memcg)));
    Counter::ALL.iter().map(|&c| (c.name(), sum[c])).collect()
}
