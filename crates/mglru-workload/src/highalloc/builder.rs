//! One build: jobs of ten steps, each of which takes memory, reads sources, writes objects and
//! makes inodes, and a pause. What all builds do together in the time of one attempt is given.

use crate::gray_zipf::GrayZipf;
use crate::op::{KernelOp, Op};
use crate::pages::PAGE_BYTES;
use crate::rng::Rng;

/// Anonymous pages of a job.
pub(super) const JOB_PAGES: u32 = 10_000;
/// Anonymous pages that all builds take in the time of an attempt: the middle of 2,000 to 3,500.
const ANON_PER_ATTEMPT: u64 = 2_750;
/// Pages written per attempt: the middle of 190 to 215.
const WRITTEN_PER_ATTEMPT: u64 = 200;
/// Inodes made per attempt.
const INODES_PER_ATTEMPT: u64 = 60;
/// Pages of slab per attempt that stay.
const SLAB_PER_ATTEMPT: u64 = 3;
/// Pages of directories that the walk over all files reads per attempt.
const WALKED_PER_ATTEMPT: u64 = 8;
/// Anonymous pages to a page of page tables.
const PAGES_PER_TABLE: u32 = 400;
/// A job lives a second, in so many steps.
const STEPS: u64 = 10;
const STEP_NS: u64 = 100_000_000;
const ATTEMPT_NS: u64 = 125_000_000;
/// Sources are read in runs of so many pages.
const RUN_PAGES: u64 = 16;
/// Runs of a tree.
const RUNS: u64 = super::TREE_PAGES / RUN_PAGES;
/// Popularity of sources.
const THETA: f64 = 0.8;
/// Lane of the random numbers of the first builder.
const LANE: u64 = 0xB111D;

/// A build.
#[derive(Clone, Debug)]
pub(super) struct Builder {
    number: u32,
    builds: u32,
    reads: u64,
    rng: Rng,
    zipf: GrayZipf,
    /// Steps of the job that are done.
    step: u64,
    jobs: u64,
    written: u64,
    walked: u64,
    /// Operations decided but not handed out, last first.
    queue: Vec<Op>,
}

impl Builder {
    pub(super) fn new(number: u32, builds: u32, reads: u64, seed: u64) -> Self {
        Self {
            number,
            builds,
            reads,
            rng: Rng::new(seed, LANE + u64::from(number)),
            zipf: GrayZipf::new(RUNS, THETA),
            step: 0,
            jobs: 0,
            written: 0,
            walked: 0,
            queue: Vec::new(),
        }
    }

    /// The next operation; there is no end to them.
    pub(super) fn next(&mut self) -> Op {
        loop {
            if let Some(op) = self.queue.pop() {
                return op;
            }
            let mut ops = if self.step < STEPS { self.plan_step() } else { self.plan_end() };
            ops.reverse();
            self.queue = ops;
        }
    }

    /// The build is killed: its page tables go with it.
    pub(super) fn stop(&mut self) -> Op {
        self.queue.clear();
        let pages = self.step as u32 * (JOB_PAGES / STEPS as u32) / PAGES_PER_TABLE;
        match std::mem::take(&mut self.step) {
            0 => Op::Done,
            _ => Op::Kernel(KernelOp::Give { pages }),
        }
    }

    /// Draws one job's words of memory.
    pub(super) fn job(&mut self) -> Vec<u64> {
        (0..self.reads / RUN_PAGES).map(|_| self.draw_run()).collect()
    }

    /// The time of a job in attempts, in thousandths: as long as its memory is its build's share.
    fn job_millis(&self) -> u64 {
        u64::from(JOB_PAGES) * u64::from(self.builds) * 1_000 / ANON_PER_ATTEMPT
    }

    /// This build's share, up to the end of this step, of what all builds do per attempt.
    fn due(&self, per_attempt: u64) -> u64 {
        let per_step = |steps: u64| {
            per_attempt * self.job_millis() * steps / (1_000 * STEPS * u64::from(self.builds))
        };
        let steps = self.jobs * STEPS + self.step;
        per_step(steps + 1) - per_step(steps)
    }

    fn plan_step(&mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        let pages = JOB_PAGES / STEPS as u32;
        let first = self.step as u32 * pages;
        let region = self.number;
        let tables = (first + pages) / PAGES_PER_TABLE - first / PAGES_PER_TABLE;
        ops.push(Op::Kernel(KernelOp::Inodes { nr: self.due(INODES_PER_ATTEMPT) as u32 }));
        self.plan_reads(&mut ops);
        ops.push(Op::Kernel(KernelOp::Take { pages: tables }));
        ops.extend((first..first + pages).map(|page| Op::Touch { region, page, write: true }));
        self.plan_writes(&mut ops);
        ops.push(Op::Think { ns: STEP_NS });
        self.step += 1;
        ops
    }

    /// Sources by popularity, and this build's part of the walk over all directories.
    fn plan_reads(&mut self, ops: &mut Vec<Op>) {
        let runs = |steps: u64| self.reads / RUN_PAGES * steps / STEPS;
        let due = runs(self.step + 1) - runs(self.step);
        for _ in 0..due {
            let off = self.draw_run() * RUN_PAGES * PAGE_BYTES;
            ops.push(Op::Read { file: 2 * self.number, off, len: (RUN_PAGES * PAGE_BYTES) as u32 });
        }
        let walk = self.due(WALKED_PER_ATTEMPT);
        let off = (self.walk_start() + self.walked) * PAGE_BYTES;
        if walk > 0 && self.walked + walk <= super::TREE_PAGES {
            let len = (walk * PAGE_BYTES) as u32;
            ops.push(Op::Read { file: 2 * self.builds, off, len });
            self.walked += walk;
        }
    }

    fn walk_start(&self) -> u64 {
        super::TREE_PAGES * u64::from(self.number)
    }

    /// Ranks are spread over the tree, so that popular files do not lie side by side.
    fn draw_run(&mut self) -> u64 {
        let rank = self.zipf.draw(&mut self.rng);
        // The factor has no divisor in common with the number of runs.
        rank * 3_571 % RUNS
    }

    /// Objects, one after the other; a tree that is built is built again.
    fn plan_writes(&mut self, ops: &mut Vec<Op>) {
        let pages = self.due(WRITTEN_PER_ATTEMPT);
        if self.written + pages > super::TREE_PAGES {
            self.written = 0;
        }
        let off = self.written * PAGE_BYTES;
        let len = (pages * PAGE_BYTES) as u32;
        ops.push(Op::Write { file: 2 * self.number + 1, off, len });
        let blocks = 2 * self.builds + 2;
        super::blocks::changes(blocks, self.number, self.written, self.written + pages, ops);
        self.written += pages;
    }

    /// The job's memory goes; slab that it leaves stays for good.
    fn plan_end(&mut self) -> Vec<Op> {
        self.step = 0;
        let tables = JOB_PAGES / PAGES_PER_TABLE;
        let stays = SLAB_PER_ATTEMPT * self.job_millis() / 1_000 / u64::from(self.builds);
        self.jobs += 1;
        let share = self.job_millis() * ATTEMPT_NS / 1_000;
        let pause = share.saturating_sub(STEPS * STEP_NS);
        vec![
            Op::Free { region: self.number, page: 0, nr: JOB_PAGES },
            Op::Kernel(KernelOp::Give { pages: tables }),
            Op::Kernel(KernelOp::Take { pages: stays as u32 }),
            Op::Think { ns: pause },
        ]
    }
}
