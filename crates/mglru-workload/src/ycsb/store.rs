//! YCSB on the simplest store there is: records in one flat file or memory, in order of loading.
//!
//! No cache and no index of its own, so that every request reaches the pages of its record. Scans
//! read the records that follow.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{Layout, Op, TaskId, Workload};
use crate::pages::{Engine, PAGE_BYTES, Pages, add_task};
use crate::string_hash::StringHash;

use super::{Action, Client, Mix, Population};

/// Describes a run of YCSB on the flat store.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreParams {
    /// Chooses the core workload, `a` to `f`.
    pub mix: Mix,
    /// Counts the records loaded.
    pub records: u64,
    /// Counts the operations of all threads together.
    pub operations: u64,
    /// Counts the client threads.
    pub threads: u32,
    /// Sets the size of a record, bytes.
    pub record_bytes: u32,
    /// Chooses how the store reaches its records.
    pub engine: Engine,
    /// Sets the CPU time of an operation, in nanoseconds.
    pub cpu_ns: u64,
    /// Names the group it runs in by its path; empty: the root.
    pub group: String,
}

impl Default for StoreParams {
    fn default() -> Self {
        Self {
            mix: Mix::B,
            records: 1_000_000,
            operations: 1_000_000,
            threads: 8,
            record_bytes: 1024,
            engine: Engine::Pread,
            cpu_ns: 20_000,
            group: "/ycsb".to_owned(),
        }
    }
}

impl StoreParams {
    /// Returns the parameters with records and operations multiplied by `scale`.
    pub fn scaled(&self, scale: f64) -> Self {
        let times = |n: u64| ((n as f64 * scale).round() as u64).max(1);
        Self { records: times(self.records), operations: times(self.operations), ..self.clone() }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("ycsb.records", self.records, 1, 1 << 40)?;
        in_range("ycsb.operations", self.operations, 1, 1 << 40)?;
        in_range("ycsb.threads", self.threads, 1, 65_536)?;
        in_range("ycsb.record_bytes", self.record_bytes, 1, 1 << 24)?;
        in_range("ycsb.records × record_bytes in pages", self.pages(), 1, u64::from(u32::MAX))?;
        Ok(())
    }

    fn population(&self) -> Population {
        let Self { mix, records, operations, threads, .. } = *self;
        Population { mix, records, operations, threads }
    }

    fn pages(&self) -> u64 {
        let bytes = u128::from(self.population().capacity()) * u128::from(self.record_bytes);
        u64::try_from(bytes.div_ceil(u128::from(PAGE_BYTES))).unwrap_or(u64::MAX)
    }
}

/// Holds the state of a run of YCSB on the flat store.
#[derive(Debug)]
pub struct StoreWorkload {
    params: StoreParams,
    clients: Vec<StoreClient>,
    pages: Pages,
    hash: StringHash,
}

#[derive(Debug)]
struct StoreClient {
    client: Client,
    left: u64,
    /// Operations of the current request, last first.
    queue: Vec<Op>,
}

impl StoreWorkload {
    /// Creates clients that have not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &StoreParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let population = params.population();
        let clients = (0..params.threads).map(|thread| StoreClient {
            client: Client::new(&population, seed, thread),
            left: population.share(thread),
            queue: Vec::new(),
        });
        Ok(Self {
            clients: clients.collect(),
            pages: Pages { engine: params.engine, place: 0 },
            hash: StringHash::new(params.threads as usize),
            params: params.clone(),
        })
    }

    /// Queues the operations of the thread's next request; `false` when it has none left.
    fn begin(&mut self, task: TaskId) -> bool {
        let thread = &mut self.clients[task as usize];
        let Some(left) = thread.left.checked_sub(1) else { return false };
        thread.left = left;
        let request = thread.client.request();
        self.hash.add(task, request.record << 3 | u64::from(request.action.class()));
        let size = u64::from(self.params.record_bytes);
        let last = (request.record + request.records).min(self.params.population().capacity());
        let (from, to) = (request.record * size, last * size);
        let queue = &mut thread.queue;
        queue.push(Op::Compute { ns: self.params.cpu_ns });
        match request.action {
            Action::Read | Action::Scan => self.pages.access(from, to, false, queue),
            Action::Insert => self.pages.access(from, to, true, queue),
            // The record is read to be changed, whichever operation asks for it.
            Action::Update | Action::ReadModifyWrite => {
                self.pages.access(from, to, false, queue);
                self.pages.access(from, to, true, queue);
            }
        }
        queue.push(Op::End { class: request.action.class() });
        queue.reverse();
        true
    }
}

impl Workload for StoreWorkload {
    fn layout(&self) -> Layout {
        let loaded = self.params.records * u64::from(self.params.record_bytes);
        let mut layout = Layout {
            classes: Action::ALL.map(|action| action.name().to_owned()).to_vec(),
            ..Layout::default()
        };
        for _ in 0..self.params.threads {
            add_task(&mut layout, 0, &self.params.group);
        }
        let pages = self.params.pages() as u32;
        self.params.engine.declare(&mut layout, 0, "records", pages, loaded);
        layout
    }

    fn next(&mut self, task: TaskId) -> Op {
        loop {
            if let Some(op) = self.clients[task as usize].queue.pop() {
                return op;
            }
            if !self.begin(task) {
                return Op::Done;
            }
        }
    }

    fn fill(&mut self, task: TaskId, out: &mut Vec<Op>) {
        out.push(self.next(task));
        out.extend(self.clients[task as usize].queue.drain(..).rev());
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

    fn run(params: &StoreParams) -> (Vec<Vec<Op>>, u64) {
        let mut workload = StoreWorkload::new(params, 1).unwrap();
        let tasks = (0..params.threads).map(|task| {
            let mut ops = Vec::new();
            while ops.last() != Some(&Op::Done) {
                workload.fill(task, &mut ops);
            }
            ops
        });
        (tasks.collect(), workload.string_hash())
    }

    #[test]
    fn every_operation_ends_once() {
        let params = StoreParams { operations: 1001, threads: 3, ..StoreParams::default() };
        let (tasks, _) = run(&params);
        let ends = tasks.iter().flatten().filter(|op| matches!(op, Op::End { .. })).count();
        assert_eq!(ends, 1001);
    }

    #[test]
    fn batches_and_single_steps_give_the_same_string() {
        let params = StoreParams { operations: 500, threads: 2, mix: Mix::A, ..Default::default() };
        let (batched, hash) = run(&params);
        let mut single = StoreWorkload::new(&params, 1).unwrap();
        let mut ops = vec![Vec::new(); 2];
        // Alternating, unlike the batched run.
        while ops.iter().any(|ops| ops.last() != Some(&Op::Done)) {
            for (task, ops) in (0..).zip(&mut ops) {
                if ops.last() != Some(&Op::Done) {
                    ops.push(single.next(task));
                }
            }
        }
        assert_eq!((ops, single.string_hash()), (batched, hash));
    }

    #[test]
    fn accesses_stay_inside_the_declared_pages() {
        let engine = Engine::Mmap;
        let mix = Mix::E;
        let params =
            StoreParams { records: 5000, operations: 4000, mix, engine, ..Default::default() };
        let pages = StoreWorkload::new(&params, 1).unwrap().layout().regions[0].pages;
        let (tasks, _) = run(&params);
        let mut touched = tasks.iter().flatten().filter_map(|op| match op {
            Op::Touch { page, .. } => Some(*page),
            _ => None,
        });
        assert!(touched.all(|page| page < pages));
    }

    #[test]
    fn wrong_numbers_name_their_key() {
        let params = StoreParams { threads: 0, ..StoreParams::default() };
        let error = StoreWorkload::new(&params, 1).unwrap_err().to_string();
        assert_eq!(error, "ycsb.threads = 0: must be from 1 to 65536");
    }
}
