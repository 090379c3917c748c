//! Tasks that touch one shared range of pages: the smallest workload that puts pressure on memory.

use std::sync::Arc;

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{Layout, Op, TaskId, Workload};
use crate::pages::{Engine, PAGE_BYTES, Pages, add_task};
use crate::rng::Rng;
use crate::sampler::{Sampler, is_write};
use crate::string_hash::{StringHash, access};
use crate::ycsb::share;
use crate::zipf_table::ZipfTable;

/// Accesses handed out at once.
const BATCH: u64 = 20;
/// Lane of the random numbers that scatter zipf ranks over the pages.
const SCATTER_LANE: u64 = 0x5CA7;

/// Chooses the order in which pages are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Draws pages uniformly at random.
    Uniform,
    /// Goes in order, cyclically; tasks start at equal distances.
    Sequential,
    /// Draws pages by zipf popularity, scattered.
    Zipf,
}

/// Describes the pages that are touched, and how.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TouchParams {
    /// Counts the pages in the range.
    pub pages: u32,
    /// Counts the accesses of all tasks together.
    pub operations: u64,
    /// Counts the tasks.
    pub tasks: u32,
    /// Chooses how pages are reached.
    pub engine: Engine,
    /// Chooses the order of the accesses.
    pub order: Order,
    /// Sets the exponent of `order = "zipf"`; at most 6 decimal places count.
    pub theta: f64,
    /// Sets the writes per thousand accesses.
    pub write_per_mille: u64,
    /// Sets the CPU time of an access, in nanoseconds.
    pub cpu_ns: u64,
    /// Names the group it runs in by its path; empty: the root.
    pub group: String,
}

impl Default for TouchParams {
    fn default() -> Self {
        Self {
            pages: 65_536,
            operations: 1_000_000,
            tasks: 1,
            engine: Engine::Anon,
            order: Order::Zipf,
            theta: 0.99,
            write_per_mille: 0,
            cpu_ns: 0,
            group: "/touch".to_owned(),
        }
    }
}

impl TouchParams {
    /// Returns the parameters with pages and accesses multiplied by `scale`.
    pub fn scaled(&self, scale: f64) -> Self {
        Self {
            pages: ((f64::from(self.pages) * scale).round() as u32).max(1),
            operations: ((self.operations as f64 * scale).round() as u64).max(1),
            ..self.clone()
        }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let most = if self.order == Order::Zipf { (1 << 24) - 1 } else { u32::MAX };
        in_range("touch.pages", self.pages, 1, most)?;
        in_range("touch.operations", self.operations, 1, 1 << 48)?;
        in_range("touch.tasks", self.tasks, 1, 65_536)?;
        in_range("touch.theta", self.theta, 0.0, 10.0)?;
        in_range("touch.write_per_mille", self.write_per_mille, 0, 1000)?;
        Ok(())
    }

    fn sampler(&self, table: Option<&Arc<ZipfTable>>, task: u32) -> Sampler {
        let n = self.pages;
        match (self.order, table) {
            (Order::Zipf, Some(table)) => Sampler::Zipf(Arc::clone(table)),
            (Order::Sequential, _) => {
                let next = u64::from(n) * u64::from(task) / u64::from(self.tasks);
                Sampler::Sequential { n, next: next as u32 }
            }
            _ => Sampler::Uniform { n },
        }
    }
}

/// Holds the state of the tasks that touch a shared range.
#[derive(Debug)]
pub struct TouchWorkload {
    params: TouchParams,
    tasks: Vec<TouchTask>,
    pages: Pages,
    hash: StringHash,
}

#[derive(Debug)]
struct TouchTask {
    rng: Rng,
    sampler: Sampler,
    left: u64,
    /// Operations of accesses already drawn, last first.
    queue: Vec<Op>,
}

impl TouchWorkload {
    /// Creates tasks that have not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &TouchParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let table = match params.order {
            Order::Zipf => zipf_table(params, seed).map(Some)?,
            _ => None,
        };
        let tasks = (0..params.tasks).map(|task| TouchTask {
            rng: Rng::new(seed, u64::from(task)),
            sampler: params.sampler(table.as_ref(), task),
            left: share(params.operations, params.tasks, task),
            queue: Vec::new(),
        });
        Ok(Self {
            tasks: tasks.collect(),
            pages: Pages { engine: params.engine, place: 0 },
            hash: StringHash::new(params.tasks as usize),
            params: params.clone(),
        })
    }

    /// Appends the operations of the task's next access; `false` when it has none left.
    fn access(&mut self, id: TaskId, out: &mut Vec<Op>) -> bool {
        let task = &mut self.tasks[id as usize];
        let Some(left) = task.left.checked_sub(1) else { return false };
        task.left = left;
        let page = u64::from(task.sampler.draw(&mut task.rng));
        let write = is_write(&mut task.rng, self.params.write_per_mille);
        self.hash.add(id, access(0, page, write));
        if self.params.cpu_ns > 0 {
            out.push(Op::Compute { ns: self.params.cpu_ns });
        }
        self.pages.access(page * PAGE_BYTES, (page + 1) * PAGE_BYTES, write, out);
        out.push(Op::End { class: u8::from(write) });
        true
    }
}

fn zipf_table(params: &TouchParams, seed: u64) -> Result<Arc<ZipfTable>, WorkloadError> {
    let theta_micro = (params.theta * 1e6).round() as u64;
    let scatter = Rng::new(seed, SCATTER_LANE).next_u64().max(1);
    let table = ZipfTable::new(params.pages, theta_micro, scatter);
    let reason = || format!("{} pages are too many for a zipf table", params.pages);
    let conflict = || WorkloadError::Conflict { key: "touch.pages", reason: reason() };
    table.map(Arc::new).ok_or_else(conflict)
}

impl Workload for TouchWorkload {
    fn layout(&self) -> Layout {
        let classes = ["read", "write"].map(str::to_owned).to_vec();
        let mut layout = Layout { classes, ..Layout::default() };
        for _ in 0..self.params.tasks {
            add_task(&mut layout, 0, &self.params.group);
        }
        let bytes = u64::from(self.params.pages) * PAGE_BYTES;
        self.params.engine.declare(&mut layout, 0, "pages", self.params.pages, bytes);
        layout
    }

    fn next(&mut self, id: TaskId) -> Op {
        let mut queue = std::mem::take(&mut self.tasks[id as usize].queue);
        if queue.is_empty() {
            self.access(id, &mut queue);
            queue.reverse();
        }
        let op = queue.pop();
        self.tasks[id as usize].queue = queue;
        op.unwrap_or(Op::Done)
    }

    fn fill(&mut self, id: TaskId, out: &mut Vec<Op>) {
        out.extend(self.tasks[id as usize].queue.drain(..).rev());
        for _ in 0..BATCH {
            if !self.access(id, out) {
                out.push(Op::Done);
                return;
            }
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> Option<u64> {
        Some(self.params.operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(params: &TouchParams) -> Vec<Op> {
        let mut workload = TouchWorkload::new(params, 1).unwrap();
        let mut ops = Vec::new();
        while ops.last() != Some(&Op::Done) {
            workload.fill(0, &mut ops);
        }
        ops
    }

    #[test]
    fn batches_and_single_steps_agree() {
        let params = TouchParams { operations: 1000, write_per_mille: 300, ..Default::default() };
        let mut single = TouchWorkload::new(&params, 1).unwrap();
        let stepped: Vec<Op> = std::iter::repeat_with(|| single.next(0))
            .take_while(|op| *op != Op::Done)
            .chain([Op::Done])
            .collect();
        assert_eq!(stepped, run(&params));
    }

    #[test]
    fn sequential_tasks_start_apart() {
        let order = Order::Sequential;
        let params = TouchParams { pages: 100, tasks: 4, order, ..Default::default() };
        let mut workload = TouchWorkload::new(&params, 1).unwrap();
        let touch = |page| Op::Touch { region: 0, page, write: false };
        assert_eq!((workload.next(0), workload.next(3)), (touch(0), touch(75)));
    }

    #[test]
    fn every_operation_ends_once_in_its_class() {
        let params = TouchParams { operations: 777, write_per_mille: 500, ..Default::default() };
        let ops = run(&params);
        let ends = |class| ops.iter().filter(|op| **op == Op::End { class }).count();
        assert_eq!(ends(0) + ends(1), 777);
        assert!(ends(1) > 300);
    }

    #[test]
    fn zipf_tables_that_cannot_be_are_refused() {
        let params = TouchParams { pages: 1 << 24, ..Default::default() };
        let error = TouchWorkload::new(&params, 1).unwrap_err().to_string();
        assert_eq!(error, "touch.pages = 16777216: must be from 1 to 16777215");
    }
}
