//! make -j on a kernel tree in memory (experiments E9): short-lived compilers, each with a heap.
//!
//! A job maps the compiler, reads its source and headers from the tree, grows its heap page by
//! page while it goes over what it built, writes an object and exits. Heaps are lognormal, as
//! measured. Of what it goes over, most was built lately (geometric by age; the recipe asks for
//! distance in an LRU stack, which needs no stack this way) and some lies anywhere. At the end one
//! job links: it reads every object.
//!
//! The tree was unpacked outside the group and is charged to nobody's limit; objects are charged. A
//! slot of make's job server runs one job after the other; what a job does depends on the job only,
//! not on the slot that took it.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::gray_zipf::GrayZipf;
use crate::lognormal::lognormal;
use crate::op::{FileSpec, Layout, Op, RegionKind, RegionSpec, TaskId};
use crate::pages::{PAGE_BYTES, add_task};
use crate::rng::Rng;
use crate::script::Script;
use crate::string_hash::{StringHash, access};

/// The compiler, and the part of it that every job uses.
const TEXT_PAGES: u32 = 7_168;
const HOT_TEXT_PAGES: u32 = TEXT_PAGES * 2 / 5;
const TREE_FILES: u64 = 6_000;
const TREE_FILE_PAGES: u32 = 3;
const TREE_THETA: f64 = 0.9;
const HEADERS: u32 = 300;
const OBJECT_PAGES: u32 = 30;
/// Spread of heap sizes.
const SIGMA: f64 = 0.38;
const MOST_PAGES: u32 = 65_536;
/// Heap pages gone over for each page built.
const REVISITS: u32 = 6;
/// Mean age of a page gone over, in pages built since.
const MEAN_AGE: f64 = 2_000.0;
/// Revisits per thousand that go anywhere.
const ANYWHERE: u64 = 50;
/// Pages built between two looks at the clock.
const STRIDE: u32 = 16;
/// The linker's heap, pages per job linked (900 MB over 2,900 jobs).
const LINK_PAGES_PER_JOB: u32 = 76;
const CLASSES: [&str; 2] = ["job", "setup"];
const SETUP: u8 = 1;
/// Regions of a slot: its heap, and the compiler. Objects and the tree come after all slots'.
const REGIONS: u32 = 2;

/// Describes a build.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KernelBuildParams {
    /// Counts the files compiled.
    pub jobs: u32,
    /// Counts the jobs at a time.
    pub parallel: u32,
    /// Sets the median heap of a job, pages.
    pub heap_pages: u32,
    /// Sets the CPU time of a job for each page of its heap, ns.
    pub page_ns: u64,
    /// Names the group the jobs run in by its path; empty: the root.
    pub group: String,
}

impl Default for KernelBuildParams {
    /// x86-64 defconfig with -j96; 0.44 s of a compiler's own time for a mean heap of 15,600 pages.
    fn default() -> Self {
        Self {
            jobs: 2_900,
            parallel: 96,
            heap_pages: 14_200,
            page_ns: 28_000,
            group: "/build".to_owned(),
        }
    }
}

impl KernelBuildParams {
    /// Returns the parameters with fewer jobs, and as many fewer at a time; a job's size stays.
    pub fn scaled(&self, scale: f64) -> Self {
        let times = |n: u32| ((f64::from(n) * scale).round() as u32).max(1);
        Self { jobs: times(self.jobs), parallel: times(self.parallel), ..self.clone() }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("kernel-build.jobs", self.jobs, 1, 1 << 20)?;
        in_range("kernel-build.parallel", self.parallel, 1, 4096)?;
        in_range("kernel-build.heap_pages", self.heap_pages, 1, MOST_PAGES / 2)?;
        in_range("kernel-build.page_ns", self.page_ns, 0, 1 << 40)?;
        Ok(())
    }
}

/// Holds the state of a build under way.
#[derive(Debug)]
pub struct KernelBuild {
    params: KernelBuildParams,
    seed: u64,
    headers: GrayZipf,
    /// The next job to start.
    next: u32,
    slots: Vec<Slot>,
    /// One lane a job.
    hash: StringHash,
}

/// Says how far a slot of the job server is.
#[derive(Debug)]
enum Slot {
    Start,
    Idle,
    Compiling(Job),
    Linking { next: u32 },
    Ended,
}

#[derive(Debug)]
struct Job {
    number: u32,
    rng: Rng,
    built: u32,
    pages: u32,
}

impl KernelBuild {
    /// Creates a build that has not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &KernelBuildParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        Ok(Self {
            seed,
            headers: GrayZipf::new(TREE_FILES, TREE_THETA),
            next: 0,
            slots: (0..=params.parallel).map(|_| Slot::Start).collect(),
            hash: StringHash::new(params.jobs as usize),
            params: params.clone(),
        })
    }

    /// The task that unpacked the tree, outside the group.
    fn unpack(&mut self, task: TaskId, out: &mut Vec<Op>) {
        let tree = self.tree();
        let pages = TREE_FILES as u32 * TREE_FILE_PAGES;
        out.extend((0..pages).map(|page| Op::Touch { region: tree, page, write: true }));
        out.extend([Op::Mark { phase: 0 }, Op::Barrier { id: 0 }]);
        // It keeps the tree until the build is over.
        out.extend([Op::Barrier { id: 1 }, Op::Barrier { id: 2 }, Op::Done]);
        self.slots[task as usize] = Slot::Ended;
    }

    fn objects(&self) -> u32 {
        self.params.parallel * REGIONS
    }

    fn tree(&self) -> u32 {
        self.objects() + 1
    }

    fn heap(slot: TaskId) -> u32 {
        slot * REGIONS
    }

    fn begin_job(&mut self, slot: TaskId, out: &mut Vec<Op>) -> Slot {
        let number = self.next;
        self.next += 1;
        let mut rng = Rng::new(self.seed, u64::from(number));
        let pages = lognormal(&mut rng, f64::from(self.params.heap_pages), SIGMA);
        let pages = (pages as u32).clamp(1, MOST_PAGES);
        self.hash.add(number, u64::from(pages));
        out.push(Op::Map { region: Self::heap(slot) });
        for _ in 0..HEADERS {
            let file = self.headers.draw(&mut rng) as u32;
            let first = file * TREE_FILE_PAGES;
            let region = self.tree();
            let touch = |page| Op::Touch { region, page, write: false };
            out.extend((first..first + TREE_FILE_PAGES).map(touch));
        }
        Slot::Compiling(Job { number, rng, built: 0, pages })
    }

    fn build_on(&mut self, slot: TaskId, job: &mut Job, out: &mut Vec<Op>) {
        let heap = Self::heap(slot);
        let end = (job.built + STRIDE).min(job.pages);
        for page in job.built..end {
            out.push(Op::Touch { region: heap, page, write: true });
            for _ in 0..REVISITS {
                let page = revisit(&mut job.rng, page);
                self.hash.add(job.number, access(0, u64::from(page), true));
                out.push(Op::Touch { region: heap, page, write: true });
            }
        }
        let text = job.rng.below(u64::from(HOT_TEXT_PAGES)) as u32;
        out.push(Op::Touch { region: heap + 1, page: text, write: false });
        out.push(Op::Compute { ns: self.params.page_ns * u64::from(end - job.built) });
        job.built = end;
    }

    /// Writes the object and exits.
    fn end_job(&self, slot: TaskId, number: u32, out: &mut Vec<Op>) {
        let first = number * OBJECT_PAGES;
        let region = self.objects();
        let write = |page| Op::Touch { region, page, write: true };
        out.extend((first..first + OBJECT_PAGES).map(write));
        out.extend([Op::Unmap { region: Self::heap(slot) }, Op::End { class: 0 }]);
    }

    /// The first slot links, when the others are done.
    fn link_on(&self, next: u32, out: &mut Vec<Op>) {
        let objects = next * OBJECT_PAGES..(next + 1) * OBJECT_PAGES;
        let heap = next * LINK_PAGES_PER_JOB..(next + 1) * LINK_PAGES_PER_JOB;
        let heap = heap.start.min(MOST_PAGES)..heap.end.min(MOST_PAGES);
        let region = self.objects();
        out.extend(objects.map(|page| Op::Touch { region, page, write: false }));
        out.extend(heap.map(|page| Op::Touch { region: 0, page, write: true }));
        out.push(Op::Compute { ns: self.params.page_ns * u64::from(LINK_PAGES_PER_JOB) });
    }

    fn go_on(&mut self, slot: TaskId, state: Slot, out: &mut Vec<Op>) -> Slot {
        match state {
            Slot::Start => {
                out.extend([Op::Barrier { id: 0 }, Op::End { class: SETUP }]);
                Slot::Idle
            }
            Slot::Idle if self.next < self.params.jobs => self.begin_job(slot, out),
            Slot::Idle if slot == 0 => {
                out.extend([Op::Barrier { id: 1 }, Op::Map { region: 0 }]);
                Slot::Linking { next: 0 }
            }
            Slot::Idle => {
                out.extend([Op::Barrier { id: 1 }, Op::Done]);
                Slot::Ended
            }
            Slot::Compiling(mut job) if job.built < job.pages => {
                self.build_on(slot, &mut job, out);
                Slot::Compiling(job)
            }
            Slot::Compiling(job) => {
                self.end_job(slot, job.number, out);
                Slot::Idle
            }
            Slot::Linking { next } if next < self.params.jobs => {
                self.link_on(next, out);
                Slot::Linking { next: next + 1 }
            }
            Slot::Linking { .. } | Slot::Ended => {
                out.extend([Op::Barrier { id: 2 }, Op::Done]);
                Slot::Ended
            }
        }
    }
}

/// A page built before, most likely of late.
fn revisit(rng: &mut Rng, newest: u32) -> u32 {
    if rng.below(1000) < ANYWHERE {
        return rng.below(u64::from(newest) + 1) as u32;
    }
    let age = -MEAN_AGE * libm::log(1.0 - rng.unit());
    newest - (age as u32).min(newest)
}

impl Script for KernelBuild {
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            classes: CLASSES.map(str::to_owned).to_vec(),
            phases: vec!["run".to_owned()],
            ..Layout::default()
        };
        let bytes = u64::from(TEXT_PAGES) * PAGE_BYTES;
        layout.files.push(FileSpec { name: "compiler".to_owned(), bytes });
        let objects = self.params.jobs * OBJECT_PAGES;
        let text = RegionKind::File { file: 0, first_page: 0 };
        for mm in 0..self.params.parallel {
            add_task(&mut layout, mm, &self.params.group);
            let heap = RegionSpec::plain(mm, RegionKind::Anon, MOST_PAGES);
            layout.regions.push(RegionSpec { mapped: false, ..heap });
            let text = RegionSpec::plain(mm, text, TEXT_PAGES);
            layout.regions.push(RegionSpec { exec: true, ..text });
        }
        let of_all = |mm, pages| RegionSpec {
            shared: true,
            ..RegionSpec::plain(mm, RegionKind::Shmem, pages)
        };
        layout.regions.push(of_all(0, objects));
        let mm = self.params.parallel;
        add_task(&mut layout, mm, "");
        let pages = TREE_FILES as u32 * TREE_FILE_PAGES;
        layout.regions.push(of_all(mm, pages));
        layout
    }

    fn step(&mut self, task: TaskId, out: &mut Vec<Op>) {
        if task == self.params.parallel {
            return self.unpack(task, out);
        }
        let state = std::mem::replace(&mut self.slots[task as usize], Slot::Ended);
        self.slots[task as usize] = self.go_on(task, state, out);
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> u64 {
        // Progress is reported in accesses.
        u64::from(self.params.jobs) * u64::from(self.params.heap_pages) * 8
    }
}

#[cfg(test)]
mod tests;
