//! fio-like jobs: each reads and writes blocks of its own file (or of one they share) as fast as
//! it can.
//!
//! The zipf distribution is fio's: a Gray rank from a 32-bit uniform number, spread over the
//! blocks by multiplication with fio's hash constant, plus an offset per file, modulo the number of
//! blocks. That is a bijection only when the number of blocks is a power of two, so that a scaled
//! zipf run rounds its blocks down to one. With a random map every block is taken once per pass, in
//! a new order each pass; fio calls running without it `norandommap`.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::gray_zipf::GrayZipf;
use crate::op::{Layout, Op, TaskId, Workload};
use crate::pages::{Engine, PAGE_BYTES, Pages, add_task};
use crate::permutation::Permutation;
use crate::rng::{Rng, splitmix};
use crate::sampler::is_write;
use crate::string_hash::{StringHash, access};

/// fio spreads ranks over blocks by multiplying with this.
const SPREAD: u64 = 0x61C8_8646_80B5_83EB;
/// Accesses handed out at once.
const BATCH: u64 = 16;
const PHASES: [&str; 2] = ["ramp", "run"];
const CLASSES: [&str; 3] = ["read", "write", "ramp"];
/// Class of accesses that are not measured.
const RAMP: u8 = 2;

/// Selects the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Draws every block with equal likelihood.
    Uniform,
    /// Takes blocks one after the other, cyclically.
    Sequential,
    /// Draws blocks by fio's zipf.
    Zipf,
}

/// Describes a set of fio jobs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FioParams {
    /// Counts the jobs, one thread each.
    pub jobs: u32,
    /// Counts the blocks in each file.
    pub blocks: u32,
    /// Counts the pages in a block.
    pub block_pages: u32,
    /// Says whether all jobs use one file.
    pub shared_file: bool,
    /// Chooses how blocks are reached.
    pub engine: Engine,
    /// Selects the next block.
    pub distribution: Distribution,
    /// Sets the exponent of `distribution = "zipf"`, not 1.
    pub theta: f64,
    /// Draws uniform blocks without repeats within a pass.
    pub random_map: bool,
    /// Sets the writes per thousand accesses.
    pub write_per_mille: u64,
    /// Counts the accesses of all jobs together before the measured ones.
    pub ramp_operations: u64,
    /// Counts the measured accesses of all jobs together.
    pub operations: u64,
    /// Sets the CPU time of an access, in nanoseconds.
    pub cpu_ns: u64,
    /// Sets the pause after each access, in nanoseconds: it limits the rate.
    pub think_ns: u64,
    /// Names the group the jobs run in by its path; empty: the root.
    pub group: String,
    /// Gives every job a group of its own, `group` followed by its number.
    pub group_per_job: bool,
}

impl Default for FioParams {
    /// E7: 16 jobs, each its own 3 GiB file, mapped, zipf 1.2.
    fn default() -> Self {
        Self {
            jobs: 16,
            blocks: 786_432,
            block_pages: 1,
            shared_file: false,
            engine: Engine::MmapRandom,
            distribution: Distribution::Zipf,
            theta: 1.2,
            random_map: false,
            write_per_mille: 0,
            ramp_operations: 60_000_000,
            operations: 300_000_000,
            cpu_ns: 600,
            think_ns: 0,
            group: "/fio".to_owned(),
            group_per_job: false,
        }
    }
}

impl FioParams {
    /// Returns the parameters with blocks and accesses multiplied by `scale`.
    pub fn scaled(&self, scale: f64) -> Self {
        let times = |n: u64| (n as f64 * scale).round() as u64;
        let mut blocks = times(u64::from(self.blocks)).max(1) as u32;
        if self.distribution == Distribution::Zipf && scale != 1.0 {
            blocks = 1 << blocks.ilog2();
        }
        Self {
            blocks,
            ramp_operations: times(self.ramp_operations),
            operations: times(self.operations).max(1),
            ..self.clone()
        }
    }

    /// Checks every number's range, and that no keys conflict.
    ///
    /// # Errors
    /// Fails if a number is out of range or keys conflict; the error names the key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("fio.jobs", self.jobs, 1, 65_536)?;
        in_range("fio.blocks", self.blocks, 1, u32::MAX)?;
        in_range("fio.block_pages", self.block_pages, 1, 16_384)?;
        let pages = u64::from(self.blocks) * u64::from(self.block_pages);
        in_range("fio.blocks × block_pages", pages, 1, u64::from(u32::MAX))?;
        in_range("fio.theta", self.theta, 0.001, 10.0)?;
        in_range("fio.write_per_mille", self.write_per_mille, 0, 1000)?;
        in_range("fio.ramp_operations", self.ramp_operations, 0, 1 << 48)?;
        in_range("fio.operations", self.operations, 1, 1 << 48)?;
        self.check_combinations()
    }

    fn check_combinations(&self) -> Result<(), WorkloadError> {
        let conflict =
            |key, reason: &str| Err(WorkloadError::Conflict { key, reason: reason.to_owned() });
        if self.theta == 1.0 {
            return conflict("fio.theta", "1 has no zipf of this kind; take 0.99 or 1.01");
        }
        if self.random_map && self.distribution != Distribution::Uniform {
            return conflict("fio.random_map", "goes with distribution = \"uniform\" only");
        }
        if self.group_per_job && self.group.is_empty() {
            return conflict("fio.group_per_job", "the groups need a name: set `group`");
        }
        Ok(())
    }

    /// Ramp and measured accesses of one job.
    fn shares(&self, job: u32) -> [u64; 2] {
        let share = |total| crate::ycsb::share(total, self.jobs, job);
        [share(self.ramp_operations), share(self.operations)]
    }

    fn place(&self, job: u32) -> u32 {
        if self.shared_file { 0 } else { job }
    }

    fn declare_files(&self, layout: &mut Layout) {
        let pages = self.blocks * self.block_pages;
        let bytes = u64::from(pages) * PAGE_BYTES;
        let files = if self.shared_file { 1 } else { self.jobs };
        for file in 0..files {
            // Jobs are threads of one process: one address space.
            self.engine.declare(layout, 0, &format!("file{file}"), pages, bytes);
        }
    }
}

/// Draws blocks of one job.
#[derive(Clone, Debug)]
pub struct BlockChoice {
    blocks: u64,
    kind: Choice,
}

#[derive(Clone, Debug)]
enum Choice {
    Uniform,
    Mapped { taken: u64, order: Permutation, key: u64 },
    Sequential { next: u64 },
    Zipf { zipf: GrayZipf, offset: u64 },
}

impl BlockChoice {
    /// Creates the choice of job `job`; `params` must have passed its check.
    pub fn new(params: &FioParams, seed: u64, job: u32) -> Self {
        let blocks = u64::from(params.blocks);
        let key = splitmix(seed ^ splitmix(u64::from(job)));
        let kind = match params.distribution {
            Distribution::Uniform if params.random_map => {
                Choice::Mapped { taken: 0, order: Permutation::new(blocks, key), key }
            }
            Distribution::Uniform => Choice::Uniform,
            Distribution::Sequential => Choice::Sequential { next: 0 },
            Distribution::Zipf => {
                // Popular blocks belong to the file, not to the job.
                let offset = splitmix(seed ^ splitmix(u64::from(params.place(job))));
                Choice::Zipf { zipf: GrayZipf::new(blocks, params.theta), offset }
            }
        };
        Self { blocks, kind }
    }

    /// Draws the next block.
    #[inline]
    pub fn draw(&mut self, rng: &mut Rng) -> u64 {
        match &mut self.kind {
            Choice::Uniform => rng.below(self.blocks),
            Choice::Sequential { next } => {
                let block = *next;
                *next = (block + 1) % self.blocks;
                block
            }
            Choice::Zipf { zipf, offset } => spread(zipf.rank(rng.unit32()), *offset, self.blocks),
            Choice::Mapped { taken, order, key } => {
                if *taken == self.blocks {
                    *key = splitmix(*key);
                    *order = Permutation::new(self.blocks, *key);
                    *taken = 0;
                }
                *taken += 1;
                order.at(*taken - 1)
            }
        }
    }
}

/// Block of a popularity rank.
#[inline]
fn spread(rank: u64, offset: u64, blocks: u64) -> u64 {
    rank.wrapping_mul(SPREAD).wrapping_add(offset) % blocks
}

/// Holds the state of the fio jobs.
#[derive(Debug)]
pub struct FioWorkload {
    params: FioParams,
    jobs: Vec<FioJob>,
    hash: StringHash,
}

#[derive(Debug)]
struct FioJob {
    rng: Rng,
    choice: BlockChoice,
    pages: Pages,
    /// Accesses left in the ramp and in the run.
    left: [u64; 2],
    stage: Stage,
    /// Operations already drawn, last first.
    queue: Vec<Op>,
}

/// How far a job is; the first job speaks for all when a phase begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Ramp,
    /// The ramp is over for all jobs; the first one marks the run, the others wait for it.
    Gate,
    Run,
}

impl FioWorkload {
    /// Creates jobs that have not begun.
    ///
    /// # Errors
    /// Fails if parameters are out of range or in conflict.
    pub fn new(params: &FioParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let jobs = (0..params.jobs).map(|job| FioJob {
            rng: Rng::new(seed, u64::from(job)),
            choice: BlockChoice::new(params, seed, job),
            pages: Pages { engine: params.engine, place: params.place(job) },
            left: params.shares(job),
            stage: Stage::Start,
            queue: Vec::new(),
        });
        Ok(Self {
            jobs: jobs.collect(),
            hash: StringHash::new(params.jobs as usize),
            params: params.clone(),
        })
    }

    /// Appends what the job does next; a change of stage may append nothing.
    fn step(&mut self, id: TaskId, out: &mut Vec<Op>) {
        let job = &mut self.jobs[id as usize];
        let mark = |phase| (id == 0).then_some(Op::Mark { phase });
        match job.stage {
            Stage::Start => {
                job.stage =
                    if self.params.ramp_operations == 0 { Stage::Gate } else { Stage::Ramp };
                out.extend(mark(0).filter(|_| job.stage == Stage::Ramp));
            }
            Stage::Ramp if job.left[0] == 0 => {
                job.stage = Stage::Gate;
                out.push(Op::Barrier { id: 0 });
            }
            Stage::Gate => {
                job.stage = Stage::Run;
                out.extend(mark(1));
                // The wait is no part of the first access's latency.
                out.extend([Op::Barrier { id: 1 }, Op::End { class: RAMP }]);
            }
            Stage::Run if job.left[1] == 0 => out.push(Op::Done),
            Stage::Ramp => self.access(id, 0, out),
            Stage::Run => self.access(id, 1, out),
        }
    }

    fn access(&mut self, id: TaskId, stage: usize, out: &mut Vec<Op>) {
        let job = &mut self.jobs[id as usize];
        job.left[stage] -= 1;
        let block = job.choice.draw(&mut job.rng);
        let write = is_write(&mut job.rng, self.params.write_per_mille);
        self.hash.add(id, access(0, block, write));
        let bytes = u64::from(self.params.block_pages) * PAGE_BYTES;
        job.pages.access(block * bytes, (block + 1) * bytes, write, out);
        if self.params.cpu_ns > 0 {
            out.push(Op::Compute { ns: self.params.cpu_ns });
        }
        let class = if stage == 0 { RAMP } else { u8::from(write) };
        out.push(Op::End { class });
        if self.params.think_ns > 0 {
            out.push(Op::Think { ns: self.params.think_ns });
        }
    }
}

impl Workload for FioWorkload {
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            classes: CLASSES.map(String::from).to_vec(),
            phases: PHASES.map(String::from).to_vec(),
            ..Layout::default()
        };
        self.params.declare_files(&mut layout);
        for job in 0..self.params.jobs {
            let group = &self.params.group;
            match self.params.group_per_job {
                true => add_task(&mut layout, 0, &format!("{group}{job}")),
                false => add_task(&mut layout, 0, group),
            }
        }
        layout
    }

    fn next(&mut self, id: TaskId) -> Op {
        let mut queue = std::mem::take(&mut self.jobs[id as usize].queue);
        while queue.is_empty() {
            self.step(id, &mut queue);
            queue.reverse();
        }
        let op = queue.pop();
        self.jobs[id as usize].queue = queue;
        op.unwrap_or(Op::Done)
    }

    fn fill(&mut self, id: TaskId, out: &mut Vec<Op>) {
        out.extend(self.jobs[id as usize].queue.drain(..).rev());
        for _ in 0..BATCH {
            self.step(id, out);
            if matches!(out.last(), Some(Op::Done | Op::Barrier { .. })) {
                return;
            }
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> Option<u64> {
        Some(self.params.ramp_operations + self.params.operations)
    }
}

#[cfg(test)]
mod tests;
