//! MongoDB's storage engine under YCSB: a database with a cache of its own above the page cache.
//!
//! The collection lies in load order, [`DOCUMENTS_PER_BLOCK`] documents in a leaf block of
//! [`BLOCK_PAGES`] pages. Client threads look a key up in the `_id` index, then use the block: from
//! the engine's cache (anonymous memory, touched) or by a buffered read of 28 KiB. Updates make the
//! block dirty and append to the journal. Dirty blocks leave copy-on-write, by eviction or at a
//! checkpoint, through the page cache.
//!
//! Tasks: clients (counted), eviction workers, the checkpointer and the journal flusher (all in the
//! background). The workers evict from the targets on, so that clients rarely have to: they do only
//! from the triggers on, as in the engine. All share one `Engine`; an operation's effect on it
//! happens when its first `Op` is handed out, so that two clients that miss the same block read it
//! once, as they do in the engine; but a block leaves the cache only when it has been written, so
//! that it is never read from where it is not yet. What a client asks for depends on its own random
//! numbers alone, never on the others; checkpoints come by operations, not by time.
//!
//! Simplified: internal pages of the trees are counted as heap, the checkpoint's own blocks (a few
//! pages) are not written, and every key of the index is as long as every other.

mod checkpoint;
mod client;
mod engine;
mod extents;
mod index_cache;
mod journal;
mod layout;
mod leaf_cache;
mod params;

use crate::error::WorkloadError;
use crate::op::{Layout, Op, TaskId, Workload};
use crate::string_hash::StringHash;
use crate::ycsb::Client as Requests;

use checkpoint::Checkpoint;
use client::Client;
use engine::Engine;
use leaf_cache::Writing;

pub use params::WiredTigerParams;

/// Gives the pages of a leaf block.
pub const BLOCK_PAGES: u32 = 7;
/// Gives the documents in a leaf block.
pub const DOCUMENTS_PER_BLOCK: u64 = 24;
/// Gives the pages of memory that a cached index leaf takes.
pub const INDEX_FRAME_PAGES: u32 = 4;

/// Clean blocks that a worker evicts before it looks at dirty ones.
const CLEAN_BATCH: u64 = 16;
/// The gate that clients pass once memory is populated.
const POPULATED: u32 = 0;

/// Names the kind of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client(usize),
    Evictor,
    Checkpointer,
    JournalFlusher,
}

/// Holds a task's decision, and how much of it is done.
#[derive(Clone, Debug, Default)]
struct Queue {
    ops: Vec<Op>,
    done: usize,
}

impl Queue {
    fn pop(&mut self) -> Option<Op> {
        let op = self.ops.get(self.done).copied();
        self.done += 1;
        op
    }
}

/// Holds the engine with its clients.
#[derive(Debug)]
pub struct WiredTigerWorkload {
    params: WiredTigerParams,
    engine: Engine,
    clients: Vec<Client>,
    checkpoint: Checkpoint,
    /// Operations already decided, by task.
    queues: Vec<Queue>,
    /// Blocks whose write ends each task's queue.
    writing: Vec<Option<Writing>>,
    hash: StringHash,
}

impl WiredTigerWorkload {
    /// Creates a cold engine: nothing cached, the table as loaded.
    ///
    /// # Errors
    /// Parameters out of range or in conflict.
    pub fn new(params: &WiredTigerParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let population = params.population();
        let clients = (0..params.threads).map(|thread| {
            let requests = Requests::new(&population, seed, thread);
            Client::new(params, thread, requests, population.share(thread), seed)
        });
        let mut workload = Self {
            engine: Engine::new(params, seed),
            clients: clients.collect(),
            checkpoint: Checkpoint::default(),
            queues: vec![Queue::default(); layout::tasks(params) as usize],
            writing: vec![None; layout::tasks(params) as usize],
            hash: StringHash::new(params.threads as usize),
            params: params.clone(),
        };
        workload.populate();
        Ok(workload)
    }

    /// The clients touch the engine's memory and wait for each other. The background tasks need
    /// no gate: there is nothing for them to do before.
    fn populate(&mut self) {
        self.queues[0].ops.push(Op::Mark { phase: layout::POPULATE });
        for (client, Queue { ops: queue, .. }) in self.clients.iter().zip(&mut self.queues) {
            client.populate(queue);
            queue.push(Op::Barrier { id: POPULATED });
            // The wait is no part of the first operation's latency.
            queue.push(Op::End { class: layout::SETUP_CLASS });
        }
    }

    fn role(&self, task: TaskId) -> Role {
        let (clients, workers) = (self.params.threads, self.params.eviction_workers);
        match task {
            _ if task < clients => Role::Client(task as usize),
            _ if task < clients + workers => Role::Evictor,
            _ if task == clients + workers => Role::Checkpointer,
            _ => Role::JournalFlusher,
        }
    }

    /// Queues what a task does next: at least one operation. Whatever it queued before is done.
    fn decide(&mut self, task: TaskId, queue: &mut Vec<Op>) {
        if let Some(writing) = self.writing[task as usize].take() {
            self.engine.leaves.end_write(writing);
        }
        self.writing[task as usize] = match self.role(task) {
            Role::Client(client) => self.serve(task, client, queue),
            Role::Evictor => self.evict(queue),
            Role::Checkpointer => self.checkpoint.step(&mut self.engine, &self.params, queue),
            Role::JournalFlusher => self.flush_journal(queue),
        };
    }

    fn serve(&mut self, task: TaskId, client: usize, queue: &mut Vec<Op>) -> Option<Writing> {
        let Self { params, engine, clients, .. } = self;
        let client = &mut clients[client];
        if client.is_idle() {
            let Some(request) = client.next_request() else {
                queue.push(Op::Done);
                return None;
            };
            self.hash.add(task, request.record << 3 | u64::from(request.action.class()));
            queue.extend(layout::phase_at(params, engine.started()));
            engine.begin_operation(params);
            let writing = client.begin(engine, params, queue);
            if writing.is_some() {
                return writing;
            }
        }
        client.serve(engine, params, queue)
    }

    /// Clean blocks cost no writing: a few of them first, then one dirty block.
    fn evict(&mut self, queue: &mut Vec<Op>) -> Option<Writing> {
        let clean = self.engine.evict_clean_blocks(CLEAN_BATCH);
        if clean > 0 {
            queue.push(Op::Compute { ns: clean * self.params.evict_clean_ns });
        }
        let writing = self.engine.evict_dirty_block(clean == 0, &self.params, queue);
        if queue.is_empty() {
            queue.push(Op::Think { ns: self.params.eviction_poll_ns });
        }
        writing
    }

    fn flush_journal(&mut self, queue: &mut Vec<Op>) -> Option<Writing> {
        while let Some(segment) = self.engine.journal.sync() {
            queue.push(Op::Fsync { file: layout::journal_file(segment) });
        }
        queue.push(Op::Think { ns: self.params.journal_flush_ns });
        None
    }
}

impl Workload for WiredTigerWorkload {
    fn layout(&self) -> Layout {
        layout::layout(&self.params)
    }

    fn next(&mut self, task: TaskId) -> Op {
        if let Some(op) = self.queues[task as usize].pop() {
            return op;
        }
        let mut queue = std::mem::take(&mut self.queues[task as usize].ops);
        queue.clear();
        self.decide(task, &mut queue);
        let first = queue[0];
        self.queues[task as usize] = Queue { ops: queue, done: 1 };
        first
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn figures(&self) -> Vec<(String, f64)> {
        self.engine.figures()
    }

    fn total_ops(&self) -> Option<u64> {
        Some(self.params.operations + self.params.warm_operations)
    }
}

#[cfg(test)]
mod tests;
