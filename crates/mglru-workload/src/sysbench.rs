//! sysbench's oltp_read_only on an InnoDB buffer pool that holds everything (experiments E6).
//!
//! A transaction is ten point selects in one table and four ranges of a hundred rows, each in a
//! table of its own. The pool is anonymous memory: once it is loaded nothing is read from files,
//! and what does not fit the group is swapped. A row is looked up through the root and an internal
//! block of its table; of a block, the page of its header, that of its directory and that of the
//! row are touched, of a block whose rows are all read, every page.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{Layout, Op, RegionKind, RegionSpec, TaskId};
use crate::pages::add_task;
use crate::rng::Rng;
use crate::script::Script;
use crate::string_hash::{StringHash, access};
use crate::ycsb::share;

/// Pages of a block (16 KiB).
const BLOCK_PAGES: u32 = 4;
/// Rows of a leaf block.
const ROWS: u32 = 73;
/// Leaf blocks below an internal block.
const FANOUT: u32 = 1_000;
const POINT_SELECTS: u32 = 10;
const RANGES: u32 = 4;
const RANGE_ROWS: u32 = 100;
/// Pages of a thread's stack and buffers that a transaction touches.
const THREAD_TOUCHES: u32 = 8;
/// Uniform numbers of which `special` takes the mean.
const BATES: u32 = 12;
/// Blocks loaded at a time.
const LOAD_BLOCKS: u32 = 64;
const CLASSES: [&str; 2] = ["transaction", "setup"];
const SETUP: u8 = 1;

/// Selects the row that a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowChoice {
    /// Takes three of four rows from the middle hundredth of the table: sysbench 1.0's default.
    Special,
    /// Draws every row with equal likelihood.
    Uniform,
}

/// Describes a sysbench run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SysbenchParams {
    /// Counts the tables.
    pub tables: u32,
    /// Counts the rows of a table.
    pub rows: u32,
    /// Counts the client threads.
    pub threads: u32,
    /// Counts the measured transactions of all threads together.
    pub transactions: u64,
    /// Counts the transactions before them.
    pub warm_transactions: u64,
    /// Selects the row that a query asks for.
    pub row_choice: RowChoice,
    /// Counts the pages of each thread's stack and buffers.
    pub thread_pages: u32,
    /// Counts the pages of the server that are no part of the pool and used all the time.
    pub server_pages: u32,
    /// Sets the CPU and client time of a transaction, ns.
    pub transaction_ns: u64,
    /// Names the group it runs in by its path; empty: the root.
    pub group: String,
}

impl Default for SysbenchParams {
    fn default() -> Self {
        Self {
            tables: 48,
            rows: 2_000_000,
            threads: 48,
            transactions: 10_000_000,
            warm_transactions: 2_000_000,
            row_choice: RowChoice::Special,
            thread_pages: 533,
            server_pages: 64_000,
            transaction_ns: 2_600_000,
            group: "/mysql".to_owned(),
        }
    }
}

impl SysbenchParams {
    /// Returns the parameters with rows, transactions and the server's memory multiplied.
    pub fn scaled(&self, scale: f64) -> Self {
        let pages = |n: u32| ((f64::from(n) * scale).round() as u32).max(1);
        let times = |n: u64| (n as f64 * scale).round() as u64;
        Self {
            rows: pages(self.rows),
            transactions: times(self.transactions).max(1),
            warm_transactions: times(self.warm_transactions),
            thread_pages: pages(self.thread_pages),
            server_pages: pages(self.server_pages),
            ..self.clone()
        }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("sysbench.tables", self.tables, 1, 65_536)?;
        in_range("sysbench.rows", self.rows, RANGE_ROWS, 1 << 30)?;
        in_range("sysbench.threads", self.threads, 1, 65_536)?;
        in_range("sysbench.transactions", self.transactions, 1, 1 << 48)?;
        in_range("sysbench.warm_transactions", self.warm_transactions, 0, 1 << 48)?;
        in_range("sysbench.thread_pages", self.thread_pages, 1, 1 << 20)?;
        in_range("sysbench.server_pages", self.server_pages, 1, 1 << 30)?;
        let pages = u64::from(self.table_blocks()) * u64::from(self.tables) * 4;
        in_range("sysbench.tables × rows in pages", pages, 1, 1 << 31)?;
        Ok(())
    }

    fn leaves(&self) -> u32 {
        self.rows.div_ceil(ROWS)
    }

    /// Blocks of a table: leaves, then internal blocks, then the root.
    fn table_blocks(&self) -> u32 {
        self.leaves() + self.leaves().div_ceil(FANOUT) + 1
    }

    fn pool_blocks(&self) -> u32 {
        self.tables * self.table_blocks()
    }

    fn row(&self, rng: &mut Rng) -> u32 {
        let n = f64::from(self.rows);
        let u = rng.unit();
        let at = match self.row_choice {
            RowChoice::Uniform => u,
            // One number selects and places, so that only the upper ¾ of the hundredth is hit.
            RowChoice::Special if u >= 0.25 => 0.495 + 0.01 * u,
            RowChoice::Special => (0..BATES).map(|_| rng.unit()).sum::<f64>() / f64::from(BATES),
        };
        ((n * at) as u32).min(self.rows - 1)
    }
}

/// Holds the state of a sysbench run.
#[derive(Debug)]
pub struct Sysbench {
    params: SysbenchParams,
    threads: Vec<Thread>,
    hash: StringHash,
}

#[derive(Debug)]
struct Thread {
    rng: Rng,
    stage: Stage,
    /// The next block to load, and where the thread's part ends.
    load: std::ops::Range<u32>,
    warm: u64,
    run: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Load,
    Warm,
    Gate,
    Run,
}

impl Sysbench {
    /// Creates threads that have not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &SysbenchParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let bound = |thread: u32| {
            let blocks = u64::from(params.pool_blocks());
            (blocks * u64::from(thread) / u64::from(params.threads)) as u32
        };
        let threads = (0..params.threads).map(|thread| Thread {
            rng: Rng::new(seed, u64::from(thread)),
            stage: Stage::Load,
            load: bound(thread)..bound(thread + 1),
            warm: share(params.warm_transactions, params.threads, thread),
            run: share(params.transactions, params.threads, thread),
        });
        Ok(Self {
            threads: threads.collect(),
            hash: StringHash::new(params.threads as usize),
            params: params.clone(),
        })
    }

    /// Reads blocks into the pool.
    fn load(&mut self, t: TaskId, out: &mut Vec<Op>) {
        let load = &mut self.threads[t as usize].load;
        let end = load.end.min(load.start + LOAD_BLOCKS);
        let pages = load.start * BLOCK_PAGES..end * BLOCK_PAGES;
        load.start = end;
        out.extend(pages.map(|page| Op::Touch { region: 0, page, write: true }));
        out.push(Op::End { class: SETUP });
        if load.start == load.end {
            self.threads[t as usize].stage = Stage::Warm;
            out.push(Op::Barrier { id: 0 });
        }
    }

    fn transaction(&mut self, t: TaskId, class: u8, out: &mut Vec<Op>) {
        out.push(Op::Compute { ns: self.params.transaction_ns });
        let own = t * self.params.thread_pages;
        for _ in 0..THREAD_TOUCHES {
            let rng = &mut self.threads[t as usize].rng;
            let page = own + rng.below(u64::from(self.params.thread_pages)) as u32;
            let server = rng.below(u64::from(self.params.server_pages)) as u32;
            out.push(Op::Touch { region: 1, page, write: true });
            out.push(Op::Touch { region: 2, page: server, write: true });
        }
        let table = self.table(t);
        for _ in 0..POINT_SELECTS {
            let row = self.row(t, table);
            self.look_up(table, row, out);
        }
        for _ in 0..RANGES {
            let table = self.table(t);
            let row = self.row(t, table).min(self.params.rows - RANGE_ROWS);
            self.look_up(table, row, out);
            self.scan(table, row, out);
        }
        out.push(Op::End { class });
    }

    fn table(&mut self, t: TaskId) -> u32 {
        self.threads[t as usize].rng.below(u64::from(self.params.tables)) as u32
    }

    fn row(&mut self, t: TaskId, table: u32) -> u32 {
        let row = self.params.row(&mut self.threads[t as usize].rng);
        self.hash.add(t, access(table, u64::from(row), false));
        row
    }

    /// Root, internal block and leaf of a row.
    fn look_up(&self, table: u32, row: u32, out: &mut Vec<Op>) {
        let (first, leaves) = (table * self.params.table_blocks(), self.params.leaves());
        let leaf = row / ROWS;
        let internal = leaf / FANOUT;
        let root = first + self.params.table_blocks() - 1;
        probe(root, internal % BLOCK_PAGES, out);
        probe(first + leaves + internal, (leaf % FANOUT) * BLOCK_PAGES / FANOUT, out);
        probe(first + leaf, (row % ROWS) * BLOCK_PAGES / ROWS, out);
    }

    /// All pages of the leaves that hold a range.
    fn scan(&self, table: u32, row: u32, out: &mut Vec<Op>) {
        let first = table * self.params.table_blocks();
        let leaves = row / ROWS..=(row + RANGE_ROWS - 1) / ROWS;
        let pages =
            (first + leaves.start()) * BLOCK_PAGES..(first + leaves.end() + 1) * BLOCK_PAGES;
        out.extend(pages.map(|page| Op::Touch { region: 0, page, write: false }));
    }
}

/// Header and directory of a block, and one page between them.
fn probe(block: u32, page: u32, out: &mut Vec<Op>) {
    let first = block * BLOCK_PAGES;
    let touch = |page| Op::Touch { region: 0, page, write: false };
    out.extend([touch(first), touch(first + BLOCK_PAGES - 1), touch(first + page)]);
}

impl Script for Sysbench {
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            classes: CLASSES.map(str::to_owned).to_vec(),
            phases: ["setup", "run"].map(str::to_owned).to_vec(),
            ..Layout::default()
        };
        (0..self.params.threads).for_each(|_| add_task(&mut layout, 0, &self.params.group));
        let params = &self.params;
        let sizes = [
            params.pool_blocks() * BLOCK_PAGES,
            params.threads * params.thread_pages,
            params.server_pages,
        ];
        layout.regions = sizes.map(|pages| RegionSpec::plain(0, RegionKind::Anon, pages)).to_vec();
        layout
    }

    fn step(&mut self, t: TaskId, out: &mut Vec<Op>) {
        let thread = &mut self.threads[t as usize];
        match thread.stage {
            Stage::Load => self.load(t, out),
            Stage::Warm if thread.warm == 0 => {
                thread.stage = Stage::Gate;
                out.push(Op::Barrier { id: 1 });
            }
            Stage::Warm => {
                thread.warm -= 1;
                self.transaction(t, SETUP, out);
            }
            Stage::Gate => {
                thread.stage = Stage::Run;
                out.extend((t == 0).then_some(Op::Mark { phase: 1 }));
                out.extend([Op::Barrier { id: 2 }, Op::End { class: SETUP }]);
            }
            Stage::Run if thread.run == 0 => out.push(Op::Done),
            Stage::Run => {
                thread.run -= 1;
                self.transaction(t, 0, out);
            }
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> u64 {
        // Progress is reported in accesses, of which a transaction makes about a hundred.
        (self.params.transactions + self.params.warm_transactions) * 100
    }
}

#[cfg(test)]
mod tests;
