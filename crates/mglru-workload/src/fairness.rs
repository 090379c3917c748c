//! Equal groups, each used at random at a steady rate, and an administrator who asks for memory
//! back: `memory.reclaim` of the root or of the groups' parent, again and again.
//!
//! Whom the memory is taken from (fairness) and how much of it (precision) is what is measured.
//! The groups' tasks are background: the run is over when the last request was made.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{Control, GroupSpec, Layout, Op, RegionSpec, TaskId, TaskSpec, Workload};
use crate::pages::{Engine, PAGE_BYTES, Pages};
use crate::permutation::Permutation;
use crate::rng::Rng;
use crate::sampler::is_write;
use crate::string_hash::{StringHash, access};

/// Name of the groups' parent.
const PARENT: &str = "/fair";
const CLASSES: [&str; 2] = ["request", "setup"];
const REQUEST: u8 = 0;
/// Class of what is not measured: accesses and the time between requests.
const SETUP: u8 = 1;
/// Passes that the string's hash covers: how far a group comes in all depends on how long requests
/// take.
const HASHED_PASSES: u64 = 2;
const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: f64 = 1e9;

/// Says whose `memory.reclaim` is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Writes to the root's.
    Root,
    /// Writes to that of the parent of all groups.
    Parent,
}

/// Describes the groups and the requests.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FairnessParams {
    /// Counts the groups, a task each.
    pub groups: u32,
    /// Counts the pages of each group.
    pub pages: u32,
    /// Chooses how pages are reached.
    pub engine: Engine,
    /// Sets the accesses of a group per second.
    pub rate: f64,
    /// Counts the accesses between two pauses.
    pub burst: u32,
    /// Accesses every page once per pass, in a new random order each pass.
    pub random_map: bool,
    /// Sets the writes per thousand accesses.
    pub write_per_mille: u64,
    /// Sets the time before the first request, in milliseconds.
    pub warm_ms: u64,
    /// Counts the requests.
    pub requests: u32,
    /// Sets the time between requests, in milliseconds.
    pub interval_ms: u64,
    /// Sets how many bytes a request asks for.
    pub request_bytes: u64,
    /// Chooses whose memory is asked for.
    pub target: Target,
}

impl Default for FairnessParams {
    /// The test of the memcg LRU series: 128 fio jobs, 600 requests of 256 MiB.
    fn default() -> Self {
        Self {
            groups: 128,
            pages: 491_520,
            engine: Engine::Shmem,
            rate: 32_768.0,
            burst: 8,
            random_map: true,
            write_per_mille: 500,
            warm_ms: 60_000,
            requests: 600,
            interval_ms: 6_000,
            request_bytes: 256 << 20,
            target: Target::Root,
        }
    }
}

impl FairnessParams {
    /// Returns the parameters with pages, request sizes and times multiplied: a look at a page
    /// takes as long at any scale, so the time between uses must shrink with the number of pages.
    pub fn scaled(&self, scale: f64) -> Self {
        let times = |n: u64| ((n as f64 * scale).round() as u64).max(1);
        Self {
            pages: times(u64::from(self.pages)) as u32,
            warm_ms: times(self.warm_ms),
            interval_ms: times(self.interval_ms),
            request_bytes: times(self.request_bytes),
            ..self.clone()
        }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("fairness.groups", self.groups, 1, 65_535)?;
        in_range("fairness.pages", self.pages, 1, u32::MAX)?;
        in_range("fairness.rate", self.rate, 0.001, 1e9)?;
        in_range("fairness.burst", self.burst, 1, 65_536)?;
        in_range("fairness.write_per_mille", self.write_per_mille, 0, 1000)?;
        in_range("fairness.requests", self.requests, 1, 1_000_000)?;
        in_range("fairness.request_bytes", self.request_bytes, PAGE_BYTES, 1 << 50)?;
        Ok(())
    }

    fn pause_ns(&self) -> u64 {
        (f64::from(self.burst) * NS_PER_S / self.rate).round() as u64
    }

    fn control(&self) -> Control {
        let group = (self.target == Target::Parent).then_some(0);
        Control::Reclaim { group, bytes: self.request_bytes, swappiness: None }
    }
}

/// Holds the groups' tasks and the administrator, who is the last task.
#[derive(Debug)]
pub struct FairnessWorkload {
    params: FairnessParams,
    workers: Vec<Worker>,
    admin: Admin,
    hash: StringHash,
}

#[derive(Debug)]
struct Worker {
    rng: Rng,
    /// Key of the first pass's order.
    key: u64,
    done: u64,
    /// Operations of accesses already drawn, last first.
    queue: Vec<Op>,
}

#[derive(Debug, Default)]
struct Admin {
    step: u64,
}

impl FairnessWorkload {
    /// Creates groups and requests that have not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &FairnessParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let worker = |task: u32| {
            let mut rng = Rng::new(seed, u64::from(task));
            Worker { key: rng.next_u64(), rng, done: 0, queue: Vec::new() }
        };
        Ok(Self {
            workers: (0..params.groups).map(worker).collect(),
            admin: Admin::default(),
            hash: StringHash::new(params.groups as usize),
            params: params.clone(),
        })
    }

    /// The next burst of a group: all pages in order at first, so that they are there.
    fn burst(&mut self, id: TaskId, out: &mut Vec<Op>) {
        let params = &self.params;
        let worker = &mut self.workers[id as usize];
        let pages = u64::from(params.pages);
        let is_filling = worker.done < pages;
        for _ in 0..params.burst {
            let (pass, nth) = (worker.done / pages, worker.done % pages);
            let page = match pass {
                0 => nth,
                _ if params.random_map => {
                    Permutation::new(pages, worker.key.wrapping_add(pass)).at(nth)
                }
                _ => worker.rng.below(pages),
            };
            let write = pass == 0 || is_write(&mut worker.rng, params.write_per_mille);
            let write = write && (pass > 0 || params.engine.is_memory());
            worker.done += 1;
            if pass < HASHED_PASSES {
                self.hash.add(id, access(id, page, write));
            }
            let at = page * PAGE_BYTES;
            Pages { engine: params.engine, place: id }.access(at, at + PAGE_BYTES, write, out);
        }
        out.push(Op::End { class: SETUP });
        if !is_filling {
            out.push(Op::Think { ns: params.pause_ns() });
        }
    }

    /// Waits, marks the start, then: a request, its end, a pause, its end.
    fn next_command(&mut self) -> Op {
        let step = self.admin.step;
        self.admin.step += 1;
        match step {
            0 => return Op::Think { ns: self.params.warm_ms * NS_PER_MS },
            1 => return Op::End { class: SETUP },
            2 => return Op::Mark { phase: 0 },
            _ if (step - 3) / 4 >= u64::from(self.params.requests) => return Op::Done,
            _ => {}
        }
        match (step - 3) % 4 {
            0 => Op::Control(self.params.control()),
            1 => Op::End { class: REQUEST },
            2 => Op::Think { ns: self.params.interval_ms * NS_PER_MS },
            _ => Op::End { class: SETUP },
        }
    }
}

impl Workload for FairnessWorkload {
    fn layout(&self) -> Layout {
        let params = &self.params;
        let classes = CLASSES.map(str::to_owned).to_vec();
        let mut layout = Layout { classes, phases: vec!["run".to_owned()], ..Layout::default() };
        layout.groups.push(GroupSpec { name: PARENT.to_owned(), parent: None });
        for n in 0..params.groups {
            layout.groups.push(GroupSpec { name: format!("{PARENT}/{n}"), parent: Some(0) });
            let bytes = u64::from(params.pages) * PAGE_BYTES;
            params.engine.declare(&mut layout, n, &format!("{n}"), params.pages, bytes);
            let (group, node) = (Some(n + 1), None);
            layout.tasks.push(TaskSpec { mm: n, group, node, background: true });
        }
        let mm = params.groups;
        layout.tasks.push(TaskSpec { mm, group: None, node: None, background: false });
        layout.regions.push(RegionSpec::plain(mm, crate::op::RegionKind::Anon, 1));
        layout
    }

    fn next(&mut self, id: TaskId) -> Op {
        if id == self.params.groups {
            return self.next_command();
        }
        let mut queue = std::mem::take(&mut self.workers[id as usize].queue);
        if queue.is_empty() {
            self.burst(id, &mut queue);
            queue.reverse();
        }
        let op = queue.pop().expect("a burst has operations");
        self.workers[id as usize].queue = queue;
        op
    }

    fn fill(&mut self, id: TaskId, out: &mut Vec<Op>) {
        if id == self.params.groups {
            out.push(self.next_command());
            return;
        }
        out.extend(self.workers[id as usize].queue.drain(..).rev());
        self.burst(id, out);
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let pages = self.params.request_bytes / PAGE_BYTES;
        vec![("requested_pages".to_owned(), (pages * u64::from(self.params.requests)) as f64)]
    }

    fn total_ops(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> FairnessParams {
        FairnessParams { groups: 2, pages: 16, requests: 3, ..FairnessParams::default() }
    }

    fn pages(workload: &mut FairnessWorkload, task: TaskId, accesses: usize) -> Vec<u32> {
        let ops = std::iter::repeat_with(|| workload.next(task));
        let touched = ops.filter_map(|op| match op {
            Op::Touch { page, .. } => Some(page),
            _ => None,
        });
        touched.take(accesses).collect()
    }

    #[test]
    fn pages_are_filled_in_order_and_then_each_pass_is_a_permutation() {
        let mut workload = FairnessWorkload::new(&small(), 1).unwrap();
        let touched = pages(&mut workload, 0, 48);
        assert_eq!(touched[..16], (0..16).collect::<Vec<u32>>());
        for pass in touched[16..].chunks(16) {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..16).collect::<Vec<u32>>());
        }
        assert_ne!(touched[16..32], touched[32..], "a new order each pass");
    }

    #[test]
    fn the_administrator_makes_every_request_after_warming_up() {
        let mut workload = FairnessWorkload::new(&small(), 1).unwrap();
        let ops: Vec<Op> =
            std::iter::repeat_with(|| workload.next(2)).take_while(|op| *op != Op::Done).collect();
        let requests = ops.iter().filter(|op| matches!(op, Op::Control(_))).count();
        assert_eq!((requests, ops[2]), (3, Op::Mark { phase: 0 }));
        assert_eq!(workload.figures()[0].1, 3.0 * 65_536.0);
    }

    #[test]
    fn a_scaled_group_is_touched_as_often_between_requests() {
        let full = FairnessParams::default();
        let small = full.scaled(1.0 / 120.0);
        assert_eq!((small.pages, small.interval_ms), (4096, 50));
        let passes = |p: &FairnessParams| p.rate * p.interval_ms as f64 / 1e3 / f64::from(p.pages);
        assert!((passes(&full) - passes(&small)).abs() < 1e-9);
        assert!((passes(&full) - 0.4).abs() < 1e-9, "every page once in 2.5 requests");
    }

    #[test]
    fn batches_and_single_steps_agree() {
        let mut single = FairnessWorkload::new(&small(), 1).unwrap();
        let mut filled = FairnessWorkload::new(&small(), 1).unwrap();
        let mut ops = Vec::new();
        while ops.len() < 60 {
            filled.fill(1, &mut ops);
        }
        let stepped: Vec<Op> = (0..ops.len()).map(|_| single.next(1)).collect();
        assert_eq!(stepped, ops);
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let params = FairnessParams { rate: 0.0, ..small() };
        let error = FairnessWorkload::new(&params, 1).unwrap_err().to_string();
        assert_eq!(error, "fairness.rate = 0: must be from 0.001 to 1000000000");
    }
}
