//! Bounds: variants named after flat caches (`lru`, `min`, …). They answer the workload's own page
//! string, as many pages at a time as the group's limit holds, and know nothing but misses: no
//! time, no readahead, no batches. Tasks take turns operation by operation, so that a string of
//! several tasks is one fixed interleaving; a string of one task is the machine's own.

use hdrhistogram::Histogram;
use mglru_sim::outcome::{Figures, Phase, Snapshot};
use mglru_sim::spec::{PAGE_SIZE, Size};
use mglru_sim::{MachineSpec, Outcome};
use mglru_workload::op::{FileId, RegionKind, RegionSpec, TaskId, TaskSpec};
use mglru_workload::trace::{Dense, Numbering};
use mglru_workload::{Layout, Op, Workload};

use crate::backend::Progress;
use crate::policy;
use crate::variant::Variant;
use mglru_error::KeyError;
use mglru_traces::flat::{Cache, NextUses, Policy, min_misses};

/// Accesses a cache is handed at a time.
const BLOCK: usize = 1 << 16;

/// A flat cache of the group's size.
pub(super) struct Bound {
    policy: Policy,
    pages: u64,
    /// First page of each file, one file after the other.
    files: Vec<u64>,
    /// File and its first page, per region.
    regions: Vec<(FileId, u64)>,
    tasks: u32,
    classes: Vec<String>,
    phases: Vec<String>,
}

/// Names of all bounds; a name the policy core knows too means the core's.
pub(super) fn variants() -> impl Iterator<Item = (String, String)> {
    let about = |p: Policy| format!("bound: a flat cache of the group's size, {}", p.about());
    Policy::ALL.into_iter().filter(|p| !in_core(p.name())).map(move |p| (p.name().into(), about(p)))
}

/// The variant whose keys are checked: a bound has none of its own.
pub(super) fn policed(variant: &Variant) -> Variant {
    match named(variant) {
        Some(_) => Variant::named("before"),
        None => variant.clone(),
    }
}

fn in_core(name: &str) -> bool {
    policy::variants().iter().any(|(known, _)| known == name)
}

fn named(variant: &Variant) -> Option<Policy> {
    variant.base.parse().ok().filter(|_| !in_core(&variant.base))
}

impl Bound {
    /// The bound a variant names, if it names one.
    pub(super) fn of(
        variant: &Variant,
        machine: &MachineSpec,
        layout: &Layout,
    ) -> Result<Option<Self>, KeyError> {
        let Some(policy) = named(variant) else { return Ok(None) };
        let refuse = |problem: &str| Err(KeyError::value("variant", &variant.name, problem));
        if !variant.set.is_empty() {
            return refuse("a flat cache has no switches");
        }
        if policy.bypass().is_some() && !layout.phases.is_empty() {
            return refuse("is the optimum of a whole run, but this workload has phases");
        }
        let Some(regions) = files_behind(layout) else {
            return refuse("a flat cache holds pages of files only, this workload has others");
        };
        let Some(pages) = limit(machine, layout) else {
            return refuse("needs all tasks in one group with a memory.max");
        };
        let places = layout.files.iter().scan(0, |next, file| {
            let first = *next;
            *next += file.bytes.div_ceil(PAGE_SIZE);
            Some(first)
        });
        Ok(Some(Self {
            policy,
            pages,
            files: places.collect(),
            regions,
            tasks: layout.tasks.len() as u32,
            classes: layout.classes.clone(),
            phases: layout.phases.clone(),
        }))
    }

    /// Runs the workload's string to its end.
    ///
    /// # Errors
    /// The workload does what a flat cache cannot answer.
    pub(super) fn run(
        &self,
        workload: &mut dyn Workload,
        seed: u64,
        progress: Progress,
    ) -> Result<Outcome, String> {
        let mut walk = Walk::new(self, seed);
        let mut turns = vec![Turn::Ready; self.tasks as usize];
        let total = workload.total_ops().unwrap_or(u64::MAX).max(1) as f64;
        let mut shown = 0;
        while open_barrier(&mut turns) {
            for (task, turn) in (0..).zip(&mut turns).filter(|(_, turn)| **turn == Turn::Ready) {
                *turn = walk.operation(task, workload)?;
            }
            if walk.ops - shown > BLOCK as u64 {
                shown = walk.ops;
                progress(shown as f64 / total);
            }
        }
        Ok(walk.outcome(workload))
    }
}

/// Names the cause that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Ready,
    AtBarrier,
    Done,
}

/// Opens the barrier when nobody else is left to run; false when all tasks are done.
fn open_barrier(turns: &mut [Turn]) -> bool {
    if !turns.contains(&Turn::Ready) {
        let waiting = turns.iter_mut().filter(|turn| **turn == Turn::AtBarrier);
        waiting.for_each(|turn| *turn = Turn::Ready);
    }
    turns.contains(&Turn::Ready)
}

/// One pass over the string.
struct Walk<'a> {
    bound: &'a Bound,
    /// Absent for an optimum, which is judged at the end.
    cache: Option<Box<dyn Cache>>,
    numbering: Numbering,
    /// Accesses the cache has not seen yet; for an optimum all of them.
    block: Vec<u32>,
    misses: u64,
    ops: u64,
    accesses: u64,
    latency: Vec<(String, Histogram<u64>)>,
    task_ops: Vec<u64>,
    phases: Vec<Phase>,
}

impl<'a> Walk<'a> {
    fn new(bound: &'a Bound, seed: u64) -> Self {
        let histogram = || Histogram::new(1).expect("one digit is in range");
        Self {
            bound,
            cache: bound.policy.cache(bound.pages, seed),
            numbering: Numbering::new(),
            block: Vec::new(),
            misses: 0,
            ops: 0,
            accesses: 0,
            latency: bound.classes.iter().map(|name| (name.clone(), histogram())).collect(),
            task_ops: vec![0; bound.tasks as usize],
            phases: Vec::new(),
        }
    }

    /// Runs a task to the end of its operation or to where it must wait.
    fn operation(&mut self, task: TaskId, workload: &mut dyn Workload) -> Result<Turn, String> {
        loop {
            match workload.next(task) {
                Op::Touch { region, page, .. } => {
                    let (file, first) = self.bound.regions[region as usize];
                    self.access(file, first + u64::from(page))?;
                }
                Op::Read { file, off, len } => {
                    let end = (off + u64::from(len)).div_ceil(PAGE_SIZE);
                    (off / PAGE_SIZE..end).try_for_each(|page| self.access(file, page))?;
                }
                Op::Mark { phase } => self.mark(phase as usize),
                Op::End { class } => {
                    self.end(task, class);
                    return Ok(Turn::Ready);
                }
                Op::Barrier { .. } => return Ok(Turn::AtBarrier),
                Op::Done => return Ok(Turn::Done),
                Op::Compute { .. } | Op::Think { .. } | Op::Fsync { .. } => {}
                op => return Err(format!("a flat cache only reads pages of files, not {op:?}")),
            }
        }
    }

    fn access(&mut self, file: FileId, page: u64) -> Result<(), String> {
        let place = self.bound.files[file as usize] + page;
        let number = self.numbering.number(place);
        self.block.push(number.map_err(|_| "too many distinct pages".to_string())?);
        self.accesses += 1;
        if self.block.len() >= BLOCK {
            self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) {
        if let Some(cache) = &mut self.cache {
            self.misses += cache.replay(self.numbering.unique(), &self.block);
            self.block.clear();
        }
    }

    fn end(&mut self, task: TaskId, class: u8) {
        self.ops += 1;
        self.task_ops[task as usize] += 1;
        if let Some((_, histogram)) = self.latency.get_mut(usize::from(class)) {
            histogram.saturating_record(0);
        }
    }

    fn mark(&mut self, phase: usize) {
        self.flush();
        let snapshot =
            Snapshot { counters: self.counters(), groups: Vec::new(), resident: Vec::new() };
        let name = self.bound.phases.get(phase).cloned().unwrap_or_else(|| phase.to_string());
        let (ops, accesses) = (self.ops, self.accesses);
        self.phases.push(Phase { name, sequence: 0, at: 0, ops, accesses, snapshot });
    }

    /// KiB a device would have read, as the machine counts them.
    fn counters(&self) -> Figures {
        vec![("pgpgin", self.misses * PAGE_SIZE / 1024)]
    }

    fn outcome(mut self, workload: &dyn Workload) -> Outcome {
        self.flush();
        if let Some(bypass) = self.bound.policy.bypass() {
            let ids = std::mem::take(&mut self.block);
            let trace = Dense { ids, unique: self.numbering.unique() };
            self.misses = min_misses(&trace, &NextUses::of(&trace), self.bound.pages, bypass);
        }
        Outcome {
            ops: self.ops,
            accesses: self.accesses,
            virtual_ns: 0,
            counters: self.counters(),
            latency: self.latency,
            task_ops: self.task_ops,
            groups: Vec::new(),
            phases: self.phases,
            blocks: Vec::new(),
            figures: workload.figures(),
            string_hash: workload.string_hash(),
        }
    }
}

/// File and first page behind each region; nothing when one is not of a file.
fn files_behind(layout: &Layout) -> Option<Vec<(FileId, u64)>> {
    let file = |region: &RegionSpec| match region.kind {
        RegionKind::File { file, first_page } => Some((file, first_page)),
        _ => None,
    };
    layout.regions.iter().map(file).collect()
}

/// Pages of the limit that holds for every task.
fn limit(machine: &MachineSpec, layout: &Layout) -> Option<u64> {
    let group = layout.tasks.first()?.group?;
    let same = |task: &TaskSpec| task.group == Some(group) && !task.background;
    let limit = machine.group(&layout.groups[group as usize].name).max;
    (layout.tasks.iter().all(same) && limit != Size::MAX).then(|| limit.pages().max(1))
}
