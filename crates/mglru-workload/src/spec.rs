//! Workloads as data: what a plan says, checked, and built for a seed and a scale.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::android::{Android, AndroidParams};
use crate::chrome_node::{ChromeNode, ChromeNodeParams};
use crate::dd::{Dd, DdParams};
use crate::error::{WorkloadError, in_range};
use crate::fairness::{FairnessParams, FairnessWorkload};
use crate::fio::{FioParams, FioWorkload};
use crate::fsmark::{Fsmark, FsmarkParams};
use crate::highalloc::{HighallocParams, HighallocWorkload};
use crate::job::{Job, JobWorkload};
use crate::kernel_build::{KernelBuild, KernelBuildParams};
use crate::memcached::{Memcached, MemcachedParams};
use crate::mixed_pressure::{MixedParams, MixedWorkload};
use crate::op::Workload;
use crate::postmark::{Postmark, PostmarkParams};
use crate::reads_only::ReadsOnly;
use crate::script::{Script, Scripted};
use crate::several::SeveralParams;
use crate::sysbench::{Sysbench, SysbenchParams};
use crate::touch::{TouchParams, TouchWorkload};
use crate::trace::{Access, Format, TraceFile, TraceSpec, TraceWorkload, UnknownFormatName, View};
use crate::wiredtiger::{WiredTigerParams, WiredTigerWorkload};
use crate::ycsb::store::{StoreParams, StoreWorkload};

const MAX_SCALE: f64 = 64.0;
const MIN_SCALE: f64 = 1.0 / 65_536.0;

/// Describes a workload, whose kind is its key `kind`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WorkloadSpec {
    /// Runs MongoDB's storage engine under YCSB.
    #[serde(rename = "wiredtiger")]
    WiredTiger(WiredTigerParams),
    /// Runs YCSB on a flat store.
    Ycsb(StoreParams),
    /// Runs fio jobs.
    Fio(FioParams),
    /// Runs browsers and servers in many groups.
    ChromeNode(ChromeNodeParams),
    /// Runs sysbench's oltp_read_only on InnoDB.
    Sysbench(SysbenchParams),
    /// Runs make -j on a kernel tree in memory.
    KernelBuild(KernelBuildParams),
    /// Has memcached filled by memtier.
    Memcached(MemcachedParams),
    /// Uses files as a mail server does.
    Postmark(PostmarkParams),
    /// Writes files from many threads.
    Fsmark(FsmarkParams),
    /// Writes a large file and copies it.
    Dd(DdParams),
    /// Runs a phone in use.
    Android(Box<AndroidParams>),
    /// Runs equal groups and requests memory back from them.
    Fairness(FairnessParams),
    /// Asks for blocks of contiguous memory under the load of kernel builds.
    Highalloc(HighallocParams),
    /// Runs readers of a mapped file beside short-lived anonymous memory.
    Mixed(MixedParams),
    /// Runs a program in the job language.
    Job(JobSource),
    /// Touches one shared range from several tasks.
    Touch(TouchParams),
    /// Replays a recorded reference string.
    Trace(TraceSource),
    /// Runs workloads of other kinds side by side.
    Several(SeveralParams),
}

/// Tells where a job's text is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobSource {
    /// Holds the text itself.
    pub text: Option<String>,
    /// Names, instead, a file that holds it.
    pub path: Option<PathBuf>,
    /// Puts the run's seed in the place of the job's own.
    pub reseed: bool,
}

/// Describes a trace and how it is replayed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    /// Names the trace, plain or compressed.
    pub path: PathBuf,
    /// Names its format; taken from name or content where absent.
    pub format: Option<String>,
    /// Says whether pages are loaded and stored through a mapping, not read and written.
    #[serde(default)]
    pub mmap: bool,
    /// Lays pages in the order of their first appearance, without holes.
    #[serde(default = "yes")]
    pub dense: bool,
    /// Keeps writes as writes; otherwise they are reads, as for a flat cache.
    #[serde(default = "yes")]
    pub writes: bool,
    /// Names the group it runs in by its path.
    #[serde(default = "trace_group")]
    pub group: String,
}

fn yes() -> bool {
    true
}

fn trace_group() -> String {
    "/trace".to_owned()
}

impl TraceSource {
    fn format(&self) -> Result<Option<Format>, UnknownFormatName> {
        self.format.as_deref().map(str::parse).transpose()
    }

    fn spec(&self) -> Result<TraceSpec, WorkloadError> {
        let format = self.format()?;
        Ok(TraceSpec {
            file: TraceFile::open(&self.path)?,
            format,
            view: View::Pages,
            access: if self.mmap { Access::Mmap } else { Access::Pread },
            dense: self.dense,
            group: self.group.clone(),
        })
    }

    /// Reads the whole trace once.
    ///
    /// # Errors
    /// An unknown format, a trace that cannot be read to its end.
    pub fn open(&self) -> Result<TraceWorkload, WorkloadError> {
        Ok(TraceWorkload::open(self.spec()?)?)
    }

    fn build(&self, scale: f64) -> Result<Box<dyn Workload>, WorkloadError> {
        refuse_scale("a trace", scale)?;
        let trace = self.open()?;
        Ok(match self.writes {
            true => Box::new(trace),
            false => Box::new(ReadsOnly(trace)),
        })
    }
}

/// Refuses to make a recording larger or smaller.
fn refuse_scale(what: &str, scale: f64) -> Result<(), WorkloadError> {
    if scale == 1.0 {
        return Ok(());
    }
    let reason = format!("{what} is exact and cannot be run at scale {scale}");
    Err(WorkloadError::Conflict { key: "scale", reason })
}

impl JobSource {
    fn read(&self) -> Result<String, WorkloadError> {
        match (&self.text, &self.path) {
            (Some(text), None) => Ok(text.clone()),
            (None, Some(path)) => read(path),
            _ => {
                let reason = "give exactly one of `text` and `path`".to_owned();
                Err(WorkloadError::Conflict { key: "job", reason })
            }
        }
    }

    /// Parses the job and gives it its seed.
    ///
    /// # Errors
    /// A file that cannot be read, a text that does not parse.
    pub fn job(&self, seed: u64) -> Result<Job, WorkloadError> {
        let mut job = Job::parse(&self.read()?)?;
        if self.reseed {
            job.seed = seed;
        }
        Ok(job)
    }

    fn build(&self, seed: u64, scale: f64) -> Result<Box<dyn Workload>, WorkloadError> {
        refuse_scale("a job", scale)?;
        Ok(Box::new(JobWorkload::new(self.job(seed)?)))
    }
}

fn read(path: &Path) -> Result<String, WorkloadError> {
    std::fs::read_to_string(path)
        .map_err(|source| WorkloadError::Unreadable { path: path.to_owned(), source })
}

fn scripted(script: impl Script + 'static) -> Box<dyn Workload> {
    Box::new(Scripted::new(script))
}

impl WorkloadSpec {
    /// Lists every kind with one line on what it is.
    pub fn kinds() -> &'static [(&'static str, &'static str)] {
        &[
            ("wiredtiger", "MongoDB's storage engine under YCSB: own cache, eviction, checkpoints"),
            ("ycsb", "YCSB core workloads A to F on records in one flat file or memory"),
            ("fio", "fio-like jobs: blocks of files, uniform, sequential or zipf"),
            ("chrome-node", "browsers and servers in many equal groups: who gets how much"),
            ("sysbench", "oltp_read_only of sysbench on an InnoDB buffer pool in swapped memory"),
            ("kernel-build", "make -j on a tree in memory: short-lived compilers and their heaps"),
            ("memcached", "memcached set over and over by memtier: a cyclic scan with many heads"),
            ("postmark", "PostMark: files created, read, appended to and deleted at random"),
            ("fsmark", "fs-mark: threads that write new files one after the other"),
            ("dd", "a file larger than memory, written and copied"),
            ("android", "a phone: apps launched, used, left and killed; navigation; a camera"),
            ("fairness", "equal groups used at random; memory is asked back by memory.reclaim"),
            ("highalloc", "2 MiB blocks under the load of kernel builds, and at rest"),
            ("mixed", "readers of a mapped file beside rounds of anonymous memory"),
            ("job", "the job language of the kernel measurements, drawn bit for bit"),
            ("touch", "tasks touching one shared range of pages"),
            ("trace", "a recorded reference string, replayed on one file"),
            ("several", "workloads of other kinds side by side, each with a name"),
        ]
    }

    /// Checks every number; a job is parsed when it is built.
    ///
    /// # Errors
    /// Says what is out of range or in conflict, naming its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        match self {
            Self::WiredTiger(params) => params.check(),
            Self::Ycsb(params) => params.check(),
            Self::Fio(params) => params.check(),
            Self::ChromeNode(params) => params.check(),
            Self::Sysbench(params) => params.check(),
            Self::KernelBuild(params) => params.check(),
            Self::Memcached(params) => params.check(),
            Self::Postmark(params) => params.check(),
            Self::Fsmark(params) => params.check(),
            Self::Dd(params) => params.check(),
            Self::Android(params) => params.check(),
            Self::Fairness(params) => params.check(),
            Self::Highalloc(params) => params.check(),
            Self::Mixed(params) => params.check(),
            Self::Touch(params) => params.check(),
            Self::Job(source) => source.read().map(drop),
            Self::Several(params) => params.check(),
            Self::Trace(source) => source.format().map(drop).map_err(Into::into),
        }
    }

    /// Builds the workload for one run. `scale` multiplies sizes and operations; 1 is as described.
    ///
    /// # Errors
    /// Says what is out of range, in conflict or unreadable, naming its key.
    pub fn build(&self, seed: u64, scale: f64) -> Result<Box<dyn Workload>, WorkloadError> {
        in_range("scale", scale, MIN_SCALE, MAX_SCALE)?;
        self.check()?;
        Ok(match self {
            Self::WiredTiger(params) => {
                Box::new(WiredTigerWorkload::new(&params.scaled(scale), seed)?)
            }
            Self::Ycsb(params) => Box::new(StoreWorkload::new(&params.scaled(scale), seed)?),
            Self::Fio(params) => Box::new(FioWorkload::new(&params.scaled(scale), seed)?),
            Self::ChromeNode(params) => scripted(ChromeNode::new(&params.scaled(scale), seed)?),
            Self::Sysbench(params) => scripted(Sysbench::new(&params.scaled(scale), seed)?),
            Self::KernelBuild(params) => scripted(KernelBuild::new(&params.scaled(scale), seed)?),
            Self::Memcached(params) => scripted(Memcached::new(&params.scaled(scale))?),
            Self::Postmark(params) => scripted(Postmark::new(&params.scaled(scale), seed)?),
            Self::Fsmark(params) => scripted(Fsmark::new(&params.scaled(scale))?),
            Self::Android(params) => scripted(Android::new(&params.scaled(scale), seed)?),
            Self::Dd(params) => scripted(Dd::new(&params.scaled(scale))?),
            Self::Mixed(params) => Box::new(MixedWorkload::new(&params.scaled(scale), seed)?),
            Self::Fairness(params) => Box::new(FairnessWorkload::new(&params.scaled(scale), seed)?),
            Self::Highalloc(params) => {
                Box::new(HighallocWorkload::new(&params.scaled(scale), seed)?)
            }
            Self::Touch(params) => Box::new(TouchWorkload::new(&params.scaled(scale), seed)?),
            Self::Job(source) => source.build(seed, scale)?,
            Self::Trace(source) => source.build(scale)?,
            Self::Several(params) => Box::new(params.build(seed, scale)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Op;

    /// Whole numbers, a line each.
    const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/pages.plain");

    fn parse(text: &str) -> Result<WorkloadSpec, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    fn build_error(text: &str, scale: f64) -> String {
        parse(text).unwrap().build(1, scale).err().unwrap().to_string()
    }

    /// One of every kind, with defaults where there are any.
    fn every_kind() -> impl Iterator<Item = (&'static str, Box<dyn Workload>)> {
        WorkloadSpec::kinds().iter().map(|(kind, _)| {
            let text = match *kind {
                "job" => {
                    "kind = \"job\"\ntext = \"region kind=anon pages=2\\n\
                    stream region=0 gen=seq n=2 base=0 wr=0\\nphase p ops=1 mix=0:1\""
                }
                "trace" => &format!("kind = \"trace\"\npath = {TRACE:?}"),
                "several" => "kind = \"several\"\nparts = { a = { kind = \"touch\" } }",
                other => &format!("kind = {other:?}"),
            };
            let is_exact = matches!(*kind, "job" | "trace");
            let scale = if is_exact || *kind == "highalloc" { 1.0 } else { 1.0 / 64.0 };
            (*kind, parse(text).unwrap().build(1, scale).unwrap())
        })
    }

    #[test]
    fn every_kind_is_listed_and_builds_with_defaults() {
        for (kind, workload) in every_kind() {
            assert!(workload.layout().tasks.iter().any(|task| !task.background), "{kind}");
        }
    }

    /// A killed task takes its memory along: nobody else may count on it.
    #[test]
    fn tasks_touch_memory_of_their_own_or_shared_memory() {
        for (kind, mut workload) in every_kind() {
            let layout = workload.layout();
            for (t, task) in (0..).zip(&layout.tasks) {
                let ops = (0..20_000).map(|_| workload.next(t)).take_while(|&op| op != Op::Done);
                for op in ops.collect::<Vec<_>>() {
                    let Op::Touch { region, .. } = op else { continue };
                    let region = &layout.regions[region as usize];
                    let owns = region.mm == task.mm || region.shared;
                    assert!(owns, "{kind}: task {t} of {} touches {region:?}", task.mm);
                }
            }
        }
    }

    #[test]
    fn unknown_keys_and_kinds_are_named() {
        let error = parse("kind = \"fio\"\njbos = 3").unwrap_err();
        assert!(error.contains("unknown field `jbos`"), "{error}");
        let error = parse("kind = \"foi\"").unwrap_err();
        assert!(error.contains("unknown variant `foi`"), "{error}");
        assert!(parse("jobs = 1").unwrap_err().contains("missing field `kind`"));
    }

    #[test]
    fn wrong_values_are_named() {
        let error = build_error("kind = \"fio\"\njobs = 0", 1.0);
        assert_eq!(error, "fio.jobs = 0: must be from 1 to 65536");
        let error = build_error("kind = \"touch\"", 0.0);
        assert!(error.starts_with("scale = 0: must be from "), "{error}");
        let error = build_error("kind = \"job\"", 1.0);
        assert_eq!(error, "job: give exactly one of `text` and `path`");
        let error = build_error("kind = \"job\"\ntext = \"seed x\"", 1.0);
        assert_eq!(error, "job: line 1: seed: `x` is not a whole number");
        let error = build_error("kind = \"job\"\npath = \"no/such.job\"", 1.0);
        assert!(error.starts_with("no/such.job: "), "{error}");
        assert!(build_error("kind = \"job\"\ntext = \"seed 1\"", 0.5).starts_with("scale: "));
        let error = build_error("kind = \"trace\"\npath = \"no/such.trc\"", 1.0);
        assert!(error.contains("no/such.trc"), "{error}");
        let error = build_error("kind = \"trace\"\npath = \"x\"\nformat = \"gif\"", 1.0);
        assert!(error.contains("gif"), "{error}");
    }

    #[test]
    fn whole_numbers_serve_as_exponents() {
        assert!(parse("kind = \"touch\"\ntheta = 1\norder = \"zipf\"").is_ok());
    }
}
