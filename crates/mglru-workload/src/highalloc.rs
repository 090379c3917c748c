//! STRESS-HIGHALLOC (experiments E16): a module asks for 2 MiB blocks, one every 125 ms, while
//! kernels are being built; again at once; and once more when the machine rests.
//!
//! The load is given per attempt: memory of short-lived jobs, source files read by popularity, a
//! walk over all directories, objects written, inodes, page tables and slab. Sizes of the load do
//! not change with the size of the machine; the number of builds and attempts does.

mod blocks;
mod builder;

use serde::Deserialize;

use self::builder::Builder;
use crate::error::{WorkloadError, in_range};
use crate::op::{
    Control, FileId, FileSpec, KernelOp, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec,
    Workload,
};
use crate::pages::PAGE_BYTES;
use crate::string_hash::StringHash;

/// Pages of a source tree.
const TREE_PAGES: u64 = 110_000;
/// Time between two attempts: 2 MiB at 16 MiB/s.
const ATTEMPT_NS: u64 = 125_000_000;
/// Memory that goes with one build: 400 MB.
const BUILD_BYTES: u64 = 400 << 20;
/// Attempts are made for this share of memory, per cent.
const ATTEMPT_PERCENT: u64 = 95;
/// Length of a pause between the passes under load, of the wait for the load, and of the wait for
/// it to end, seconds.
const PAUSE_S: u64 = 5;
/// Bytes that dd moves at a time.
const DD_BYTES: u64 = 64 << 10;
/// `vm.min_free_kbytes` of the last pass.
const RESTED_MIN_KIB: u64 = 1_024;
const SECOND: u64 = 1_000_000_000;
/// The classes and phases of the passes.
const PASSES: [&str; 3] = ["pass1", "pass2", "rested"];
/// Jobs of each builder that the hash of the string covers: how many there are depends on time.
const HASHED_JOBS: u32 = 64;
/// The task that makes the attempts.
const DRIVER: TaskId = 0;

/// Describes the test.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HighallocParams {
    /// Sets the memory of the machine, MiB: attempts, builds and the file of the last phase follow.
    pub memory_mib: u64,
    /// Sets log2 of the pages of a block.
    pub order: u8,
    /// Lets attempts go on as long as reclaim makes progress, as hugetlb's do.
    pub repeat: bool,
    /// Sets for how many seconds the load runs before the first pass.
    pub warm_s: u64,
    /// Sets how many seconds after the second pass the load ends.
    pub rest_s: u64,
    /// Counts the pages of source that a job reads, cached or not. The default makes the load read
    /// 79 pages per attempt with L2; 78 were published (experiments E16).
    pub job_reads: u64,
    /// Counts the attempts per pass; 0: 95 per cent of memory.
    pub attempts: u64,
}

impl Default for HighallocParams {
    fn default() -> Self {
        Self {
            memory_mib: 1_024,
            order: 9,
            repeat: false,
            warm_s: 300,
            rest_s: 180,
            job_reads: 688,
            attempts: 0,
        }
    }
}

impl HighallocParams {
    /// Multiplies the machine's memory; the load is what it is.
    pub fn scaled(&self, scale: f64) -> Self {
        let memory_mib = ((self.memory_mib as f64 * scale).round() as u64).max(1);
        Self { memory_mib, ..self.clone() }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("highalloc.memory_mib", self.memory_mib, 256, 1 << 20)?;
        in_range("highalloc.order", self.order, 1, 10)?;
        in_range("highalloc.warm_s", self.warm_s, 0, 3_600)?;
        in_range("highalloc.rest_s", self.rest_s, 0, 3_600)?;
        in_range("highalloc.job_reads", self.job_reads, 0, 1 << 20)?;
        in_range("highalloc.attempts", self.attempts, 0, 1 << 20)?;
        Ok(())
    }

    fn memory(&self) -> u64 {
        self.memory_mib << 20
    }

    fn builds(&self) -> u32 {
        (self.memory() / BUILD_BYTES + 1) as u32
    }

    fn attempts(&self) -> u64 {
        let blocks = self.memory() / (PAGE_BYTES << self.order);
        let all = blocks * ATTEMPT_PERCENT / 100;
        if self.attempts == 0 { all } else { self.attempts }
    }
}

/// Names the driver's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Warm,
    Pass(u8),
    Load,
    Kill,
    WriteFile { at: u64 },
    ReadFile { at: u64 },
    Clean(u8),
    Over,
}

/// Holds the state of the test while it runs.
#[derive(Debug)]
pub struct HighallocWorkload {
    params: HighallocParams,
    builders: Vec<Builder>,
    part: Part,
    attempts: u64,
    /// Operations decided but not handed out, last first.
    queue: Vec<Op>,
    killed: bool,
    hash: u64,
}

impl HighallocWorkload {
    /// Creates a test that has not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &HighallocParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let builds = params.builds();
        let builders: Vec<Builder> =
            (0..builds).map(|n| Builder::new(n, builds, params.job_reads, seed)).collect();
        Ok(Self {
            hash: hash_of(&builders, params),
            builders,
            part: Part::Warm,
            attempts: 0,
            queue: Vec::new(),
            killed: false,
            params: params.clone(),
        })
    }

    /// The file that dd writes and reads.
    fn dd_file(&self) -> u32 {
        2 * self.params.builds() + 1
    }

    fn drive(&mut self) -> Op {
        loop {
            if let Some(op) = self.queue.pop() {
                return op;
            }
            if self.part == Part::Over {
                return Op::Done;
            }
            let mut ops = self.plan();
            ops.reverse();
            self.queue = ops;
        }
    }

    /// The driver's next few operations.
    fn plan(&mut self) -> Vec<Op> {
        let wait = |seconds| Op::Think { ns: seconds * SECOND };
        match self.part {
            Part::Warm => {
                self.part = Part::Pass(0);
                vec![wait(self.params.warm_s)]
            }
            Part::Pass(pass) => self.attempt(pass),
            Part::Load => {
                self.part = Part::Kill;
                vec![wait(self.params.rest_s)]
            }
            Part::Kill => {
                self.killed = true;
                self.part = Part::WriteFile { at: 0 };
                // Builders look up at their next step, and their trees go once they are gone.
                let files = (0..self.dd_file()).map(|file| Op::Truncate { file, len: 0 });
                std::iter::once(wait(PAUSE_S)).chain(files).collect()
            }
            Part::WriteFile { at } => self.dd(at, true),
            Part::ReadFile { at } => self.dd(at, false),
            Part::Clean(pass) => {
                self.part = Part::Pass(pass);
                vec![
                    Op::Truncate { file: self.dd_file(), len: 0 },
                    Op::Control(Control::DropCaches),
                    Op::Kernel(KernelOp::DropSlab),
                    Op::Kernel(KernelOp::MinFree { kib: RESTED_MIN_KIB }),
                ]
            }
            Part::Over => Vec::new(),
        }
    }

    fn attempt(&mut self, pass: u8) -> Vec<Op> {
        let begins = self.attempts == 0;
        self.attempts += 1;
        let mut ops = Vec::new();
        if begins {
            ops.push(Op::Mark { phase: u32::from(pass) });
        }
        let (order, repeat) = (self.params.order, self.params.repeat);
        ops.push(Op::Kernel(KernelOp::TryBlock { order, repeat, class: pass }));
        ops.extend([Op::End { class: pass }, Op::Think { ns: ATTEMPT_NS }]);
        if self.attempts == self.params.attempts() {
            self.attempts = 0;
            ops.push(Op::Kernel(KernelOp::FreeBlocks));
            self.part = match pass {
                0 => {
                    ops.push(Op::Think { ns: PAUSE_S * SECOND });
                    Part::Pass(1)
                }
                1 => Part::Load,
                _ => Part::Over,
            };
        }
        ops
    }

    fn dd(&mut self, at: u64, write: bool) -> Vec<Op> {
        let (file, len) = (self.dd_file(), DD_BYTES as u32);
        let next = at + DD_BYTES;
        let over = next >= self.params.memory();
        self.part = match (write, over) {
            (true, false) => Part::WriteFile { at: next },
            (true, true) => Part::ReadFile { at: 0 },
            (false, false) => Part::ReadFile { at: next },
            (false, true) => Part::Clean(2),
        };
        vec![match write {
            true => Op::Write { file, off: at, len },
            false => Op::Read { file, off: at, len },
        }]
    }
}

impl Workload for HighallocWorkload {
    fn layout(&self) -> Layout {
        let builds = self.params.builds();
        let file = |name: String, pages: u64| FileSpec { name, bytes: pages * PAGE_BYTES };
        let mut layout = Layout {
            classes: PASSES.map(str::to_owned).to_vec(),
            phases: PASSES.map(str::to_owned).to_vec(),
            ..Layout::default()
        };
        let task = |mm, background| TaskSpec { mm, group: None, node: None, background };
        layout.tasks.push(task(0, false));
        for build in 0..builds {
            layout.files.push(file(format!("tree{build}"), TREE_PAGES));
            layout.files.push(file(format!("objects{build}"), 0));
            let mm = build + 1;
            layout.regions.push(RegionSpec::plain(mm, RegionKind::Anon, builder::JOB_PAGES));
            layout.tasks.push(task(mm, true));
        }
        layout.files.push(file("directories".to_owned(), TREE_PAGES * u64::from(builds)));
        layout.files.push(file("dd".to_owned(), 0));
        layout.blocks = Some(layout.files.len() as FileId);
        layout.files.push(file("blocks".to_owned(), blocks::TREE_BLOCKS * u64::from(builds)));
        layout
    }

    fn next(&mut self, task: TaskId) -> Op {
        match task {
            DRIVER => self.drive(),
            _ if self.killed => self.builders[task as usize - 1].stop(),
            _ => self.builders[task as usize - 1].next(),
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash
    }
}

/// The string that is drawn does not depend on time, only its length does: its head is hashed.
fn hash_of(builders: &[Builder], params: &HighallocParams) -> u64 {
    let mut hash = StringHash::new(builders.len() + 1);
    hash.add(DRIVER, params.attempts() << 8 | u64::from(params.order));
    for (task, builder) in (1..).zip(builders) {
        let mut builder = builder.clone();
        for _ in 0..HASHED_JOBS {
            builder.job().into_iter().for_each(|word| hash.add(task, word));
        }
    }
    hash.finish()
}

#[cfg(test)]
mod tests;
