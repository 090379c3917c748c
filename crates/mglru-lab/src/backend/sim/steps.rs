//! The model looked at between two accesses, as a booted kernel is: a mark in its workload's
//! operations reads the machine's counters, and takes no time.

use std::path::Path;

use mglru_guest::order::{Steps, Until};
use mglru_guest::report::{GroupState, Snapshot, Step};
use mglru_sim::outcome::{Figures, GroupOutcome, Phase};
use mglru_workload::{Layout, Op, TaskId, Workload};

use super::SimJob;
use crate::backend::kernel::workers;
use crate::backend::{Announce, Stepping};

/// Marks from this number on are stops; a workload's own phases have small numbers.
const STOP: u32 = 1 << 31;

impl Stepping for SimJob {
    fn step(&self, seed: u64, steps: Steps, _: &Path) -> Result<Vec<Step>, String> {
        let workload = self.source.build(seed, self.scale).map_err(|e| e.to_string())?;
        let marked = Box::new(Marked::new(workload, steps));
        let found = mglru_sim::run(&self.machine, self.rules.clone(), marked, seed, None);
        let found = found.map_err(|e| e.to_string())?;
        let is_stop = |phase: &&Phase| phase.name.parse::<u32>().is_ok_and(|n| n >= STOP);
        let stops = found.phases.iter().filter(is_stop);
        Ok(stops.zip(steps.stops()).map(|(phase, access)| seen(phase, access)).collect())
    }

    fn stop(
        &self,
        _: u64,
        _: &Until,
        _: &Path,
        _: Option<(u16, Announce)>,
    ) -> Result<Step, String> {
        Err("--until ends booted runs of a workload (--backend kernel)".to_string())
    }

    fn can_stop(&self) -> bool {
        false
    }

    /// The model traces no events, drops no nodes of shadows but by a rule of two releases, and
    /// does not report pages one by one.
    fn lacks(&self) -> &'static [&'static str] {
        &["nodereclaim"]
    }
}

/// A workload with a mark after each access at which the machine is looked at.
struct Marked {
    inner: Box<dyn Workload>,
    /// Tasks of the first process.
    mine: Vec<TaskId>,
    stops: Box<dyn Iterator<Item = u64> + Send>,
    accesses: u64,
    next: Option<u64>,
    made: u32,
    fetched: Vec<Op>,
}

impl Marked {
    fn new(inner: Box<dyn Workload>, steps: Steps) -> Self {
        let mine = first_process(&inner.layout());
        let mut stops: Box<dyn Iterator<Item = u64> + Send> = Box::new(steps.stops());
        let next = stops.next();
        Self { inner, mine, stops, accesses: 0, next, made: 0, fetched: Vec::new() }
    }

    /// The mark that follows an operation, if it is an access at which to stop.
    fn mark_after(&mut self, op: Op) -> Option<Op> {
        if !matches!(op, Op::Touch { .. } | Op::Read { .. } | Op::Write { .. }) {
            return None;
        }
        self.accesses += 1;
        if self.next != Some(self.accesses) {
            return None;
        }
        self.next = self.stops.next();
        self.made += 1;
        Some(Op::Mark { phase: STOP + self.made })
    }
}

/// Tasks whose accesses count, as in a guest.
fn first_process(layout: &Layout) -> Vec<TaskId> {
    let first = workers(layout).into_iter().next();
    first.map_or_else(Vec::new, |worker| worker.tasks.iter().map(|task| task.id).collect())
}

impl Workload for Marked {
    fn layout(&self) -> Layout {
        self.inner.layout()
    }

    fn next(&mut self, task: TaskId) -> Op {
        self.inner.next(task)
    }

    fn fill(&mut self, task: TaskId, out: &mut Vec<Op>) {
        if !self.mine.contains(&task) {
            return self.inner.fill(task, out);
        }
        let mut fetched = std::mem::take(&mut self.fetched);
        self.inner.fill(task, &mut fetched);
        for op in fetched.drain(..) {
            out.push(op);
            out.extend(self.mark_after(op));
        }
        self.fetched = fetched;
    }

    fn string_hash(&self) -> u64 {
        self.inner.string_hash()
    }

    fn figures(&self) -> Vec<(String, f64)> {
        self.inner.figures()
    }
}

/// Writes the machine's state at a stop in the texts of a kernel.
fn seen(phase: &Phase, access: u64) -> Step {
    let snapshot = &phase.snapshot;
    let root = snapshot.groups.first().map_or("/", |group| &group.name);
    let mut groups: std::collections::BTreeMap<String, GroupState> =
        snapshot.groups.iter().map(|group| (group.name.clone(), state(group))).collect();
    let majors = snapshot.counters.iter().find(|(name, _)| *name == "pgmajfault");
    // The model counts them for the machine as a whole.
    if let (Some((_, majors)), Some((_, group))) =
        (majors, groups.iter_mut().find(|(name, _)| *name != root))
    {
        group.stat += &format!("pgmajfault {majors}\n");
    }
    let lru_gen: String = snapshot.groups.iter().map(|group| group.lru_gen.as_str()).collect();
    let at = Snapshot {
        at_us: phase.at / 1000,
        vmstat: text(&snapshot.counters),
        lru_gen,
        groups,
        resident: snapshot.resident.clone(),
        ..Snapshot::default()
    };
    Step { access, at, ..Step::default() }
}

fn state(group: &GroupOutcome) -> GroupState {
    let of =
        |name: &str| group.stat.iter().find(|(n, _)| *n == name).map_or(0, |(_, value)| *value);
    let sum = |name: &str| {
        let ways = ["kswapd", "direct", "proactive"];
        ways.iter().map(|way| of(&format!("{name}_{way}"))).sum::<u64>()
    };
    let sums = ["pgscan", "pgsteal"].map(|name| format!("{name} {}\n", sum(name))).concat();
    GroupState {
        stat: text(&group.stat) + &sums,
        current: of("memory.current"),
        peak: Some(of("memory.peak")),
        swap_current: of("memory.swap.current"),
        ..GroupState::default()
    }
}

fn text(figures: &Figures) -> String {
    figures.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, Job, Sections, sim::Sim};
    use crate::variant::Variant;

    const PLAN: &str = "[machine]\nmemory = \"64MiB\"\nreadahead_kb = 0\n\
        [workload]\nkind = \"touch\"\nengine = \"pread\"\npages = 4096\noperations = 3000\n";

    fn job() -> std::sync::Arc<dyn Job> {
        let plan: toml::Table = toml::from_str(PLAN).unwrap();
        let table = |name: &str| plan[name].as_table().unwrap().clone();
        let limit =
            toml::from_str::<indexmap::IndexMap<_, _>>("[\"/touch\"]\nmemory.max = \"2MiB\"");
        let sections = Sections {
            machine: table("machine"),
            groups: limit.unwrap(),
            workload: table("workload"),
            reclaim: toml::Table::new(),
            kernel: toml::Table::new(),
            scale: 1.0,
        };
        Sim.prepare(&sections, &Variant::named("k7.1")).unwrap()
    }

    #[test]
    fn stops_change_nothing_about_a_run_and_report_what_a_kernel_reports() {
        let job = job();
        let steps = |every| Steps { from: 100, to: 2_900, every, ..Steps::default() };
        let look = |every| job.stepping().unwrap().step(1, steps(every), Path::new("")).unwrap();
        let (often, seldom) = (look(100), look(1_400));
        assert_eq!((often.len(), seldom.len()), (29, 3));
        assert_eq!(often.iter().map(|s| s.access).max(), Some(2_900));
        for stop in &seldom {
            let same = often.iter().find(|other| other.access == stop.access).unwrap();
            assert_eq!(same, stop, "others between make no difference");
        }
        let last = often.last().unwrap();
        let group = &last.at.groups["/touch"];
        let of = |name| mglru_guest::kernel_text::value(&group.stat, name).unwrap();
        assert!(of("pgscan") >= of("pgsteal") && of("pgsteal") > 0, "{}", group.stat);
        assert!((256..=512).contains(&last.at.resident[0]), "{:?}", last.at.resident);
        let generations = mglru_guest::kernel_text::generations(&last.at.lru_gen);
        assert!(generations.iter().any(|memcg| memcg.path == "/touch"), "{}", last.at.lru_gen);
    }
}
