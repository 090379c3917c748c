//! The job language: the small programs that were run on a real kernel, as a workload.
//!
//! A job is regions, streams that draw pages from them, and steps: phases (mixes of streams) and
//! administrator's commands. One task in one group, [`GROUP`]. Drawn bit for bit like the kernel
//! measurements, so that a model and a kernel see the same accesses.
//!
//! Every step, phase or command, begins with a [`Op::Mark`] of its own number, so that counters
//! can be told apart step by step as in the measured records; `Layout::phases` holds the steps'
//! names (a phase's own name, a command's verb) and may repeat one.
//!
//! A stream may reach past the pages declared for its region (some of the published vectors do):
//! the region that is run is as long as its streams reach.

mod command;
mod line;
mod parse;
mod stream;

use std::sync::Arc;

use crate::op::{
    Advice, Content, FileId, FileSpec, GroupId, GroupSpec, Knob, Layout, Op, RegionId, RegionKind,
    RegionSpec, TaskId, TaskSpec, Workload, fill_batch,
};
use crate::rng::Rng;
use crate::sampler::Sampler;
use crate::string_hash::{StringHash, access};
use crate::zipf_table::ZipfTable;

pub use line::JobError;
pub use stream::{Draw, Pattern, StreamSpec};

/// The group a job runs in.
pub const GROUP: GroupId = 0;
/// Name of that group.
pub const GROUP_NAME: &str = "/job";
/// The mix selector of step `k` is lane `SELECTOR_LANE + k` of the job's seed.
const SELECTOR_LANE: u64 = 0x10000;
/// Incompressible pages per thousand of swap-backed memory.
const INCOMPRESSIBLE: u16 = 250;

/// A parsed job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Seed of every stream and selector.
    pub seed: u64,
    /// Knobs of the job's group, set before it starts.
    pub settings: Vec<(Knob, u64)>,
    /// Memory and files.
    pub regions: Vec<JobRegion>,
    /// Sources of accesses.
    pub streams: Vec<StreamSpec>,
    /// Phases and commands, in order.
    pub steps: Vec<Step>,
    /// CPU the task is pinned to.
    pub pin: Option<u32>,
    /// The job flushed the TLB every so many operations; a machine without a TLB ignores it.
    pub tlb_flush_every: Option<u64>,
}

/// How a region is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Shared file mapping.
    Mmap,
    /// File, read and written in pages through a descriptor.
    Pread,
    /// Private anonymous memory.
    Anon,
    /// Shared memory.
    Shmem,
}

/// A region of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRegion {
    /// How it is accessed.
    pub access: Access,
    /// Path of the file behind it; empty for memory.
    pub path: String,
    /// Length.
    pub pages: u32,
    /// Advice given for the mapping.
    pub advice: Advice,
}

/// A step of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Operations drawn from a mix of streams.
    Phase {
        /// Name of the phase.
        name: String,
        /// Number of operations.
        ops: u64,
        /// Streams with their weights.
        mix: Vec<(usize, u64)>,
    },
    /// An administrator's command.
    Command {
        /// Its verb.
        name: String,
        /// The operations that the task does for it.
        op: Op,
    },
}

impl Step {
    fn name(&self) -> &str {
        match self {
            Self::Phase { name, .. } | Self::Command { name, .. } => name,
        }
    }

    fn ops(&self) -> u64 {
        match self {
            Self::Phase { ops, .. } => *ops,
            Self::Command { .. } => 1,
        }
    }
}

impl Job {
    /// Parses a job's text.
    ///
    /// # Errors
    /// The first line that cannot be understood, with the offending key.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        parse::parse(text)
    }

    /// Number of operations in all phases.
    pub fn ops(&self) -> u64 {
        let phases = self.steps.iter().filter(|step| matches!(step, Step::Phase { .. }));
        phases.map(Step::ops).sum()
    }

    /// Pages of a region: as declared, or as far as its streams reach.
    pub fn region_pages(&self, region: usize) -> u32 {
        let streams = self.streams.iter().filter(|stream| stream.region == region);
        let reach = streams.map(|stream| stream.base + stream.pages).max().unwrap_or(0);
        reach.max(self.regions[region].pages)
    }
}

/// Where the accesses to a region of a job go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A region of the layout.
    Region(RegionId),
    /// A file of the layout, through a descriptor.
    File(FileId),
}

/// A job as a workload.
#[derive(Debug)]
pub struct JobWorkload {
    job: Job,
    layout: Layout,
    places: Vec<Place>,
    streams: Vec<stream::Stream>,
    /// Current step, and whether its mark was emitted.
    step: usize,
    marked: bool,
    /// Operations left in the current step.
    left: u64,
    selector: Selector,
    hash: StringHash,
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

impl JobWorkload {
    /// Prepares a job to be run; zipf tables are built here, one for all streams that share it.
    pub fn new(job: Job) -> Self {
        let (layout, places) = layout(&job);
        let mut tables = Tables::default();
        let streams = (0..).zip(&job.streams).map(|(lane, spec)| {
            stream::Stream::new(spec, tables.sampler(spec), Rng::new(job.seed, lane))
        });
        Self {
            streams: streams.collect(),
            selector: Selector::new(job.seed, 0, &[]),
            hash: StringHash::new(1),
            layout,
            places,
            job,
            step: 0,
            marked: false,
            left: 0,
        }
    }

    /// The job that is run.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Where the accesses to each region of the job go.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The next access of the current step, which must have begun; `None` when it has none left.
    fn draw(&mut self) -> Option<Draw> {
        let Step::Phase { mix, .. } = &self.job.steps[self.step] else { return None };
        self.left = self.left.checked_sub(1)?;
        let stream = self.selector.pick(mix);
        let draw = self.streams[stream].draw();
        self.hash.add(0, access(stream as u32, u64::from(draw.page), draw.write));
        Some(draw)
    }

    fn begin_step(&mut self) -> Op {
        let step = &self.job.steps[self.step];
        self.marked = true;
        self.left = step.ops();
        if let Step::Phase { mix, .. } = step {
            self.selector = Selector::new(self.job.seed, self.step, mix);
        }
        Op::Mark { phase: self.step as u32 }
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

    fn next(&mut self, _task: TaskId) -> Op {
        while let Some(step) = self.job.steps.get(self.step) {
            if !self.marked {
                return self.begin_step();
            }
            if let Step::Command { op, .. } = *step
                && self.left > 0
            {
                self.left = 0;
                return op;
            }
            if let Some(draw) = self.draw() {
                return self.access(draw);
            }
            self.step += 1;
            self.marked = false;
        }
        Op::Done
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

fn layout(job: &Job) -> (Layout, Vec<Place>) {
    let mut layout = Layout {
        groups: vec![GroupSpec { name: GROUP_NAME.to_owned(), parent: None }],
        tasks: vec![TaskSpec { mm: 0, group: Some(GROUP), node: None, background: false }],
        phases: job.steps.iter().map(|step| step.name().to_owned()).collect(),
        ..Layout::default()
    };
    let regions = job.regions.iter().enumerate();
    let places = regions.map(|(at, region)| place(&mut layout, region, job.region_pages(at)));
    let places = places.collect();
    (layout, places)
}

fn place(layout: &mut Layout, region: &JobRegion, pages: u32) -> Place {
    let kind = match region.access {
        Access::Anon => RegionKind::Anon,
        Access::Shmem => RegionKind::Shmem,
        Access::Mmap => RegionKind::File { file: file(layout, &region.path, pages), first_page: 0 },
        Access::Pread => return Place::File(file(layout, &region.path, pages)),
    };
    layout.regions.push(RegionSpec {
        advice: region.advice,
        content: Content::Mixed { per_mille: INCOMPRESSIBLE },
        ..RegionSpec::plain(0, kind, pages)
    });
    Place::Region(layout.regions.len() as RegionId - 1)
}

/// Regions of the same path are the same file, as long as the longest of them.
fn file(layout: &mut Layout, path: &str, pages: u32) -> FileId {
    let bytes = u64::from(pages) * 4096;
    let known = layout.files.iter().position(|file| file.name == path);
    let id = known.unwrap_or_else(|| {
        layout.files.push(FileSpec { name: path.to_owned(), bytes: 0 });
        layout.files.len() - 1
    });
    layout.files[id].bytes = layout.files[id].bytes.max(bytes);
    id as FileId
}

#[cfg(test)]
mod tests;
