//! A job while it runs: each task goes through its own steps.

use std::sync::Arc;

use super::{Draw, Job, Pattern, Place, Step, StreamSpec, layout, stream};
use crate::op::{Layout, Op, TaskId, Workload, fill_batch};
use crate::rng::Rng;
use crate::sampler::Sampler;
use crate::string_hash::{StringHash, access};
use crate::zipf_table::ZipfTable;

/// The mix selector of step `k` is lane `SELECTOR_LANE + k` of the job's seed.
const SELECTOR_LANE: u64 = 0x10000;

/// Runs a job as a workload.
#[derive(Debug)]
pub struct JobWorkload {
    job: Job,
    layout: Layout,
    places: Vec<Place>,
    streams: Vec<stream::Stream>,
    cursors: Vec<Cursor>,
    hash: StringHash,
}

/// Where a task stands in the job.
#[derive(Clone, Debug)]
struct Cursor {
    /// Numbers of its steps that are not over, the current one last.
    steps: Vec<usize>,
    /// The current step's mark was emitted.
    marked: bool,
    /// Operations left in it.
    left: u64,
    selector: Selector,
    /// The mark of its end that is to come.
    end: Option<Op>,
}

/// Picks the stream of each operation of a phase.
#[derive(Clone, Debug)]
struct Selector {
    rng: Rng,
    total: u64,
}

impl Selector {
    fn new(seed: u64, step: usize, mix: &[(usize, u64)]) -> Self {
        let rng = Rng::new(seed, SELECTOR_LANE + step as u64);
        Self { rng, total: mix.iter().map(|(_, weight)| weight).sum() }
    }

    /// With one stream in the mix no number is drawn.
    fn pick(&mut self, mix: &[(usize, u64)]) -> usize {
        if let [(only, _)] = mix {
            return *only;
        }
        let mut x = self.rng.below(self.total);
        for &(stream, weight) in mix {
            match x.checked_sub(weight) {
                Some(rest) => x = rest,
                None => return stream,
            }
        }
        unreachable!("a number below the total lies within the mix");
    }
}

impl Cursor {
    fn new(job: &Job, task: TaskId) -> Self {
        let steps = (0..job.steps.len()).rev().filter(|&step| job.owners[step] == task);
        let selector = Selector::new(job.seed, 0, &[]);
        let end = job.named_tasks().find(|named| *named == task);
        let end = end.map(|task| Op::Mark { phase: job.steps.len() as u32 + task });
        Self { steps: steps.collect(), marked: false, left: 0, selector, end }
    }

    fn begin(&mut self, job: &Job, step: usize) -> Op {
        self.marked = true;
        self.left = job.steps[step].ops();
        if let Step::Phase { mix, .. } = &job.steps[step] {
            self.selector = Selector::new(job.seed, step, mix);
        }
        Op::Mark { phase: step as u32 }
    }

    fn end(&mut self) {
        self.steps.pop();
        self.marked = false;
    }
}

impl JobWorkload {
    /// Prepares a job to be run; zipf tables are built here, one for all streams that share it.
    pub fn new(job: Job) -> Self {
        let (layout, places) = layout::layout(&job);
        let mut tables = Tables::default();
        let streams = (0..).zip(&job.streams).map(|(lane, spec)| {
            stream::Stream::new(spec, tables.sampler(spec), Rng::new(job.seed, lane))
        });
        Self {
            streams: streams.collect(),
            cursors: (0..).zip(&job.tasks).map(|(task, _)| Cursor::new(&job, task)).collect(),
            hash: StringHash::new(job.tasks.len()),
            layout,
            places,
            job,
        }
    }

    /// Returns the job that is run.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the places where the accesses to each region of the job go.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The next access of a task's current phase; `None` when it has none left.
    fn draw(&mut self, task: TaskId, step: usize) -> Option<Draw> {
        let Step::Phase { mix, .. } = &self.job.steps[step] else { return None };
        let cursor = &mut self.cursors[task as usize];
        cursor.left = cursor.left.checked_sub(1)?;
        let stream = cursor.selector.pick(mix);
        let draw = self.streams[stream].draw();
        self.hash.add(task, access(stream as u32, u64::from(draw.page), draw.write));
        Some(draw)
    }

    fn access(&self, draw: Draw) -> Op {
        let Draw { region, page, write } = draw;
        let off = u64::from(page) * 4096;
        match self.places[region] {
            Place::Region(region) => Op::Touch { region, page, write },
            Place::File(file) if write => Op::Write { file, off, len: 4096 },
            Place::File(file) => Op::Read { file, off, len: 4096 },
        }
    }
}

impl Workload for JobWorkload {
    fn layout(&self) -> Layout {
        self.layout.clone()
    }

    fn next(&mut self, task: TaskId) -> Op {
        while let Some(&step) = self.cursors[task as usize].steps.last() {
            let cursor = &mut self.cursors[task as usize];
            if !cursor.marked {
                return cursor.begin(&self.job, step);
            }
            if let Step::Command { op, .. } = self.job.steps[step] {
                cursor.end();
                return op;
            }
            if let Some(draw) = self.draw(task, step) {
                return self.access(draw);
            }
            self.cursors[task as usize].end();
        }
        self.cursors[task as usize].end.take().unwrap_or(Op::Done)
    }

    fn fill(&mut self, task: TaskId, out: &mut Vec<Op>) {
        fill_batch(self, task, out);
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> Option<u64> {
        Some(self.job.ops())
    }
}

/// Zipf tables built so far: streams with the same numbers share one.
#[derive(Default)]
struct Tables(Vec<((u32, u64, u64), Arc<ZipfTable>)>);

impl Tables {
    fn sampler(&mut self, spec: &StreamSpec) -> Sampler {
        let n = spec.pages;
        match spec.pattern {
            Pattern::Uniform => Sampler::Uniform { n },
            Pattern::Sequential { start } => Sampler::Sequential { n, next: start % n },
            Pattern::Zipf { theta_micro, scatter } => {
                Sampler::Zipf(self.get((n, theta_micro, scatter)))
            }
        }
    }

    fn get(&mut self, key: (u32, u64, u64)) -> Arc<ZipfTable> {
        if let Some((_, table)) = self.0.iter().find(|(known, _)| *known == key) {
            return Arc::clone(table);
        }
        let table = ZipfTable::new(key.0, key.1, key.2).expect("the parser checked its size");
        let table = Arc::new(table);
        self.0.push((key, Arc::clone(&table)));
        table
    }
}
