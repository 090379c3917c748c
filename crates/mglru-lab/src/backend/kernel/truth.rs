//! Measuring jobs for a truth file: one run on a booted kernel, written step by step in the layout
//! that `mglru validate --truth` reads.

use std::path::Path;

use mglru_guest::kernel_text::{group_part, pairs, stalled_us, value};
use mglru_guest::report::{Command, GroupState, Snapshot};
use mglru_workload::job::{Access, GROUP_NAME, Job as Program, JobWorkload, Place, Step};
use mglru_workload::op::RegionKind;
use mglru_workload::{Layout, Workload};
use serde_json::{Map, Value as Json, json};
use toml::{Table, Value};

use super::watch::GuestReport;
use super::{Kernel, KernelJob};
use crate::backend::Sections;
use crate::variant::Variant;
use mglru_error::KeyError;

/// Lists the counters of memory.stat that are written as differences.
const DELTAS: [&str; 20] = [
    "pgfault",
    "pgmajfault",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "workingset_nodereclaim",
    "pgscan",
    "pgsteal",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgrefill",
    "pgactivate",
    "pgdeactivate",
    "swpin_zero",
    "swpout_zero",
];
/// Lists the counters of vmstat that are written as differences.
const MACHINE: [&str; 15] = [
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_anon",
    "pgsteal_file",
    "pgrotated",
    "slabs_scanned",
    "nr_dirtied",
    "nr_written",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_throttled_written",
];
/// Levels of memory.stat at the end of a step.
const LEVELS: [&str; 14] = [
    "anon",
    "file",
    "kernel",
    "pagetables",
    "slab",
    "file_mapped",
    "file_dirty",
    "file_writeback",
    "swapcached",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "shmem",
];
const PAGE: u64 = 4096;
/// Processors of the measuring machine.
const CPUS: i64 = 2;

/// Names the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Holds the job.
    pub job: String,
    /// Turns multi-generational reclaim on.
    pub mglru: bool,
    /// Holds the memory of the guest, MiB.
    pub memory_mib: u64,
    /// Holds the size of compressed swap, MiB; 0: none.
    pub zram_mib: u64,
    /// Names the disk: `blk` or `pmem`.
    pub disk: String,
    /// Bounds readahead, KiB.
    pub readahead_kb: u32,
    /// Holds commands for the shell before the job.
    pub before: String,
    /// Holds `[kernel]`: image, modules, append, filesystem.
    pub kernel: Table,
}

/// Holds a job that is ready to be measured.
pub struct Measuring {
    job: KernelJob,
    program: Program,
    places: Vec<Place>,
    layout: Layout,
}

impl Measuring {
    /// Checks everything about a run.
    ///
    /// # Errors
    /// Names the key or line that is wrong.
    pub fn new(asked: &Asked) -> Result<Self, KeyError> {
        let program = Program::parse(&asked.job).map_err(|e| KeyError::key("spec", e))?;
        let workload = JobWorkload::new(program.clone());
        let layout = workload.layout();
        let places = workload.places().to_vec();
        let variant = Variant::named(if asked.mglru { "k6.12" } else { "classic" });
        let job = Kernel.ready(&sections(asked), &variant)?;
        Ok(Self { job, program, places, layout })
    }

    /// Measures: the fields `status`, `kernel`, `steps` and, where pages of files or memory are
    /// held, `ref_cap`.
    ///
    /// # Errors
    /// Returns what went wrong in the guest.
    pub fn run(&self, seed: u64, console: &Path) -> Result<Map<String, Json>, String> {
        let report = self.job.boot(seed, super::stops::Stops::default(), console)?;
        // A job whose machine was too small is no truth about anything else.
        if let Some(kill) = report.killed.iter().find(|kill| !kill.in_group) {
            let problem = "the guest ran out of memory (kernel.memory): killed";
            return Err(format!("{problem} {}", kill.process));
        }
        let over = report.over.as_ref().ok_or("the guest stopped before the job was over")?;
        let state = group(over).ok_or("the guest says nothing about the job's group")?;
        let held = |name| value(&state.stat, name).unwrap_or(0);
        let mut line = Map::new();
        line.insert("status".into(), "ok".into());
        line.insert("kernel".into(), report.kernel.clone().into());
        line.insert("steps".into(), self.steps(&report, over));
        line.insert("ref_cap".into(), ((held("file") + held("anon")) / PAGE).into());
        // In virtual time the same kernel, files, words and seed give the same line once more.
        line.extend(report.proof.map(|proof| ("repeat".to_string(), proof)));
        Ok(line)
    }

    fn steps(&self, report: &GuestReport, over: &Snapshot) -> Json {
        let ends = report.marks.iter().skip(1).map(|(_, snapshot)| snapshot).chain([over]);
        let between = report.marks.iter().zip(ends).enumerate();
        between
            .map(|(at, ((number, from), to))| {
                let mut step = self.counted(from, to);
                let number = *number as usize;
                step.insert("i".into(), number.into());
                step.insert("name".into(), self.layout.phases[number].clone().into());
                match &self.program.steps[number] {
                    Step::Phase { .. } => step.extend(self.phase(from, to)),
                    Step::Command { .. } => step.extend(command(report, at)),
                }
                Json::Object(step)
            })
            .collect()
    }

    fn counted(&self, from: &Snapshot, to: &Snapshot) -> Map<String, Json> {
        let (before, after) = (group(from), group(to));
        let stat = |state: Option<&GroupState>| state.map_or("", |state| &state.stat).to_string();
        let events =
            |state: Option<&GroupState>| state.map_or("", |state| &state.events).to_string();
        let grown: Map<String, Json> = differences(&events(before), &events(after), |_| true)
            .filter(|(_, went)| *went > 0)
            .map(|(name, went)| (name, went.into()))
            .collect();
        let named = |names: &'static [&'static str]| move |name: &str| names.contains(&name);
        let all = |found: &mut dyn Iterator<Item = (String, u64)>| -> Json {
            found.map(|(name, went)| (name, Json::from(went))).collect::<Map<_, _>>().into()
        };
        let d = all(&mut differences(&stat(before), &stat(after), named(&DELTAS)));
        let vm = all(&mut differences(&from.vmstat, &to.vmstat, named(&MACHINE)));
        let lru_gen = group_part(&to.lru_gen, GROUP_NAME);
        let line = json!({
            "sec": (to.at_us - from.at_us) as f64 / 1e6,
            "d": d, "vm": vm, "events": grown,
            "psi": pressure(before, after),
            "end": after.map(levels), "lru_gen": lru_gen,
        });
        line.as_object().cloned().unwrap_or_default()
    }

    fn phase(&self, from: &Snapshot, to: &Snapshot) -> Map<String, Json> {
        let (from_done, done) = (from.done, to.done);
        let (rd, wr) = (done.reads - from_done.reads, done.writes - from_done.writes);
        let line = json!({
            "ops": rd + wr, "rd": rd, "wr": wr,
            "minflt": done.minflt.saturating_sub(from_done.minflt),
            "majflt": done.majflt.saturating_sub(from_done.majflt),
            "inblk": done.inblk.saturating_sub(from_done.inblk),
            "oublk": done.oublk.saturating_sub(from_done.oublk),
            "resident_n": self.resident(to),
        });
        line.as_object().cloned().unwrap_or_default()
    }

    /// Cached pages by region of the job, for those that are files.
    fn resident(&self, at: &Snapshot) -> Json {
        let file = |place: &Place| match *place {
            Place::File(file) => Some(file),
            Place::Region(region) => match self.layout.regions[region as usize].kind {
                RegionKind::File { file, .. } => Some(file),
                _ => None,
            },
        };
        let regions = self.program.regions.iter().zip(&self.places).enumerate();
        let of_files = regions
            .filter(|(_, (region, _))| matches!(region.access, Access::Mmap | Access::Pread));
        let pages = of_files.filter_map(|(number, (_, place))| {
            let pages = at.resident.get(file(place)? as usize)?;
            Some((number.to_string(), Json::from(*pages)))
        });
        pages.collect::<Map<_, _>>().into()
    }
}

fn group(snapshot: &Snapshot) -> Option<&GroupState> {
    snapshot.groups.get(GROUP_NAME)
}

fn sections(asked: &Asked) -> Sections {
    let text = |value: &str| Value::String(value.to_string());
    let mib = |mib: u64| text(&format!("{mib}MiB"));
    let mut machine = Table::from_iter([
        ("memory".to_string(), mib(asked.memory_mib)),
        ("cpus".to_string(), Value::Integer(CPUS)),
        ("readahead_kb".to_string(), Value::Integer(asked.readahead_kb.into())),
        ("fault_around_kb".to_string(), Value::Integer(4)),
    ]);
    if asked.zram_mib > 0 {
        let zram = [("kind".to_string(), text("zram")), ("size".to_string(), mib(asked.zram_mib))];
        machine.insert("swap".to_string(), Value::Table(Table::from_iter(zram)));
    }
    let mut kernel = asked.kernel.clone();
    kernel.insert("disk".to_string(), text(&asked.disk));
    kernel.insert("prepare".to_string(), text(&asked.before));
    let workload = [("kind".to_string(), text("job")), ("text".to_string(), text(&asked.job))];
    Sections {
        machine,
        groups: indexmap::IndexMap::new(),
        workload: Table::from_iter(workload),
        reclaim: Table::new(),
        kernel,
        scale: 1.0,
    }
}

/// How far each counter of a text went.
fn differences(
    from: &str,
    to: &str,
    kept: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (String, u64)> {
    let went = |(name, now): (&str, u64)| {
        (name.to_string(), now.saturating_sub(value(from, name).unwrap_or(0)))
    };
    pairs(to).filter(|(name, _)| kept(name)).map(went).collect::<Vec<_>>().into_iter()
}

fn levels(state: &GroupState) -> Json {
    let of = |name: &&str| Some((name.to_string(), Json::from(value(&state.stat, name)?)));
    let mut levels: Map<String, Json> = LEVELS.iter().filter_map(of).collect();
    levels.insert("current".into(), state.current.into());
    levels.insert("swap_current".into(), state.swap_current.into());
    levels.into()
}

fn pressure(from: Option<&GroupState>, to: Option<&GroupState>) -> Json {
    let went = |text: fn(&GroupState) -> &str, kind| {
        let at = |state: Option<&GroupState>| state.and_then(|s| stalled_us(text(s), kind));
        at(to).unwrap_or(0).saturating_sub(at(from).unwrap_or(0))
    };
    json!({
        "mem_some_us": went(|s| &s.pressure.memory, "some"),
        "mem_full_us": went(|s| &s.pressure.memory, "full"),
        "io_some_us": went(|s| &s.pressure.io, "some"),
    })
}

/// Reads the kernel's answer to the command of a step.
fn command(report: &GuestReport, step: usize) -> Map<String, Json> {
    let answer = report.commands.iter().find(|(marks, _)| *marks == step + 1);
    let Some((_, Command { text, rc, took_us })) = answer else { return Map::new() };
    let mut line = Map::new();
    line.insert("cmd".into(), text.clone().into());
    if text.starts_with(['+', '-']) {
        line.insert("lgcmd".into(), text.clone().into());
    }
    line.insert("rc".into(), (*rc).into());
    line.insert("sec".into(), (*took_us as f64 / 1e6).into());
    line
}

#[cfg(test)]
mod tests;
