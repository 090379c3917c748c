//! Measured runs that are no job: groups and requests for memory (`fair`), dd on a slow device
//! (`runin … dd`), readers beside rounds of memory (`mixoom`). What they did is not known page by
//! page; they are run again as workloads of ours, on the model and on booted kernels, and their
//! outcomes are compared.

mod figures;

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};
use toml::{Table, Value};

use self::figures::{fair_figures, mixed_figures};
use super::truth::Run;
use mglru_lab::backend::{Outcome, Sections};
use mglru_lab::limits;

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
/// Milliseconds and nanoseconds.
const NS_PER_MS: u64 = 1_000_000;
/// Where a device's rate stands: `bps8M` in the variant's name (megabytes of 10^6).
const RATE: &str = "bps";
const MB: u64 = 1_000_000;
/// Processor time of dd for a MiB, ns: the guests on 7.1 and 7.2, which are translated, wrote 24 MB
/// in the first 260 ms where nothing held them (`8dd.dr90`).
const DD_NS: i64 = 11_400_000;
/// Counters whose sum is what reclaim took, and looked at: kernels differ in whom a request of an
/// administrator counts for.
const BY: [&str; 3] = ["kswapd", "direct", "proactive"];

/// Holds the named figures of an outcome.
pub type Figures = BTreeMap<&'static str, f64>;

/// Says how fast requests and accesses were where they were measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Holds the time from one request to the next: the interval and what a request took, ms.
    pub period_ms: u64,
    /// Holds accesses of a group per second; none where the record does not say.
    pub rate: Option<f64>,
}

/// Names the kind of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// Runs equal groups used at random, and requests for their memory.
    Fair(IndexMap<String, String>),
    /// Runs one writer: MiB, the group's limit in bytes, the device.
    Dd {
        /// MiB written.
        count: u64,
        /// `memory.max`.
        limit: u64,
        /// `machine.device`.
        device: Device,
    },
    /// Runs readers of a mapped file, and threads that fill and free memory.
    Mixed(IndexMap<String, String>),
}

/// Names the target of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Writes take so long, ns.
    Delay(u64),
    /// Limits the device to so many bytes a second.
    Rate(u64),
    /// Writes to the measuring host's plain disk.
    Plain,
}

impl Program {
    /// Reads a record's command.
    ///
    /// # Errors
    /// Returns the part of it that is not known.
    pub fn of(run: &Run) -> Result<Self, String> {
        let words: Vec<&str> = run.cmd.split_whitespace().collect();
        let given = || words.iter().filter_map(|w| w.split_once('='));
        let keys = || given().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        match words.first() {
            Some(&"fair") => Ok(Self::Fair(keys())),
            Some(&"mixoom") => Ok(Self::Mixed(keys())),
            Some(&"runin") if words.contains(&"/bin/dd") => {
                let keys: IndexMap<String, String> = keys();
                let (count, limit) = (number(&keys, "count")?, number(&keys, "memory.max")?);
                Ok(Self::Dd { count, limit, device: device(run)? })
            }
            _ => Err("is no job: what it did is not known page by page".to_string()),
        }
    }

    /// Returns the run as a plan's sections, at the pace that was asked for unless one is given.
    ///
    /// # Errors
    /// A number that is missing or no number.
    pub fn sections(&self, run: &Run, pace: Option<Pace>) -> Result<Sections, String> {
        let (device, groups, workload) = match self {
            Self::Fair(keys) => ("\"ram\"".to_string(), Vec::new(), fair(keys, pace)?),
            Self::Mixed(keys) => {
                let limit = number(keys, "limit_mb")? * MIB;
                ("\"ram\"".to_string(), vec![("/mixed", limit)], mixed(keys)?)
            }
            Self::Dd { count, limit, device } => {
                (device.text(), vec![("/fio", *limit)], dd(*count))
            }
        };
        let machine = match self {
            Self::Dd { .. } => machine(run, &device) + &writers_machine(run),
            _ => {
                machine(run, &device) + &dirty(run, "") + &statistics(super::replay::STAT_FLUSH_MS)
            }
        };
        let group = |(name, limit): &(&str, u64)| {
            let max = Value::String(limit.to_string());
            let limits = limits::parse(&Table::from_iter([("memory.max".to_string(), max)]), 1.0);
            limits.map(|limits| (name.to_string(), limits)).map_err(|e| e.to_string())
        };
        Ok(Sections {
            machine: table(&machine)?,
            groups: groups.iter().map(group).collect::<Result<_, _>>()?,
            workload: table(&workload)?,
            reclaim: Table::new(),
            kernel: Table::new(),
            scale: 1.0,
        })
    }

    /// Returns the same for the model, which does not take a translated guest's time by itself.
    ///
    /// # Errors
    /// As above.
    pub fn paced_sections(&self, run: &Run, pace: Option<Pace>) -> Result<Sections, String> {
        let mut sections = self.sections(run, pace)?;
        if matches!(self, Self::Dd { .. }) {
            sections.workload.insert("cpu_ns".to_string(), Value::from(DD_NS));
        }
        Ok(sections)
    }

    /// Returns the pace of requests and accesses as it was measured.
    pub fn pace(&self, runs: &[Run]) -> Option<Pace> {
        let Self::Fair(keys) = self else { return None };
        let [requests, groups] = ["rounds", "n"].map(|key| number(keys, key).ok());
        let measured = || runs.iter().filter_map(|run| run.fair.as_ref());
        let seconds: Vec<f64> = measured().map(|fair| fair.sec).collect();
        let mean = mglru_lab::stats::mean(&seconds);
        let period_ms = (mean * 1e3 / requests? as f64) as u64;
        let accesses: Option<Vec<f64>> = measured().map(|f| Some(f.accesses? as f64)).collect();
        let rate = |all: Vec<f64>| mglru_lab::stats::mean(&all) / mean / groups.unwrap_or(1) as f64;
        (!seconds.is_empty()).then(|| Pace { period_ms, rate: accesses.map(rate) })
    }

    /// Returns the figures of a measured run; empty where the record lacks them.
    pub fn measured(&self, run: &Run) -> Figures {
        match (self, &run.fair, &run.run, &run.mixoom) {
            (Self::Fair(keys), Some(fair), ..) => fair_figures(fair, asked_pages(keys) as f64),
            (Self::Dd { .. }, _, Some(whole), _) => [
                ("oom_kill", whole.event("oom_kill")),
                ("pgscan", whole.counter("pgscan")),
                ("pgsteal", whole.counter("pgsteal")),
            ]
            .into(),
            (Self::Mixed(_), .., Some(whole)) => mixed_figures(whole),
            _ => Figures::new(),
        }
    }

    /// Returns the same figures of a run of the model or of a booted kernel.
    pub fn found(
        &self,
        counters: &IndexMap<String, u64>,
        custom: &IndexMap<String, Json>,
        ops: u64,
    ) -> Figures {
        let counter = |name: &str| counters.get(name).copied().unwrap_or(0) as f64;
        let sum = |what: &str| BY.iter().map(|by| counter(&format!("{what}_{by}"))).sum::<f64>();
        let refaults = counter("workingset_refault_anon") + counter("workingset_refault_file");
        match self {
            Self::Fair(keys) => [
                (
                    "spread of pgsteal",
                    custom.get("pgsteal_cv").and_then(Json::as_f64).unwrap_or(0.0),
                ),
                ("stolen per page asked for", sum("pgsteal") / asked_pages(keys) as f64),
                ("scanned per page stolen", sum("pgscan") / sum("pgsteal").max(1.0)),
                ("refaults", refaults),
            ]
            .into(),
            Self::Dd { .. } => [
                ("oom_kill", counter("oom_kill")),
                ("pgscan", sum("pgscan")),
                ("pgsteal", sum("pgsteal")),
            ]
            .into(),
            Self::Mixed(_) => [
                ("oom_kill", counter("oom_kill")),
                ("refaults a round", refaults / ops.max(1) as f64),
            ]
            .into(),
        }
    }

    /// Returns the fields of a truth file's line that a run on a booted kernel fills.
    pub fn line(&self, outcome: &Outcome) -> Map<String, Json> {
        let counter = |name: &str| outcome.counters.get(name).copied().unwrap_or(0);
        let sum = |what: &str| BY.iter().map(|by| counter(&format!("{what}_{by}"))).sum::<u64>();
        let mut whole = json!({
            "sec": outcome.metrics.virtual_s,
            "d": {
                "pgscan": sum("pgscan"), "pgsteal": sum("pgsteal"),
                "pgmajfault": counter("pgmajfault"),
                "workingset_refault_anon": counter("workingset_refault_anon"),
                "workingset_refault_file": counter("workingset_refault_file"),
                "workingset_activate_anon": counter("workingset_activate_anon"),
                "workingset_activate_file": counter("workingset_activate_file"),
                "pgactivate": counter("pgactivate"), "pgrefill": counter("pgrefill"),
                "pgdeactivate": counter("pgdeactivate"),
            },
            "vm": {
                "slabs_scanned": counter("slabs_scanned"),
                "pgsteal_anon": counter("pgsteal_anon"),
                "pgsteal_file": counter("pgsteal_file"),
            },
            "events": { "oom_kill": counter("oom_kill") },
        });
        let (key, more) = match self {
            Self::Fair(_) => {
                let groups = outcome.custom.get("reclaimed").and_then(Json::as_object);
                let leaves = groups.into_iter().flatten().filter(|(n, _)| is_leaf(n));
                // As they were made: shorter numbers first.
                let ordered = BTreeMap::from_iter(leaves.map(|(n, group)| ((n.len(), n), group)));
                let groups = ordered.values().collect::<Vec<_>>();
                ("fair", json!({ "accesses": accesses(outcome), "memcgs": groups }))
            }
            Self::Dd { .. } => ("run", json!({})),
            Self::Mixed(_) => ("mixoom", json!({ "rounds_done": outcome.metrics.ops })),
        };
        let more = more.as_object().cloned().unwrap_or_default();
        whole.as_object_mut().into_iter().for_each(|whole| whole.extend(more.clone()));
        let status = ("status".to_string(), Json::from("ok"));
        let kernel = outcome.custom.get("kernel").cloned().unwrap_or_default();
        let repeat =
            outcome.custom.get("repeat").map(|proof| ("repeat".to_string(), proof.clone()));
        let fields = [status, ("kernel".to_string(), kernel), (key.to_string(), whole)];
        fields.into_iter().chain(repeat).collect()
    }

    /// Says why a booted guest cannot repeat it.
    pub fn is_beyond_guests(&self) -> bool {
        matches!(self, Self::Dd { device: Device::Rate(_), .. })
    }
}

impl Device {
    fn text(self) -> String {
        match self {
            Self::Delay(ns) => format!("{{ preset = \"delay\", write_ns = {ns} }}"),
            Self::Rate(bytes) => format!("{{ preset = \"nvme\", write_rate = {bytes} }}"),
            Self::Plain => "\"nvme\"".to_string(),
        }
    }
}

/// Accesses between the first request and the last.
fn accesses(outcome: &Outcome) -> Option<&Json> {
    outcome.custom.get("phases")?.as_array()?.last()?.get("accesses")
}

/// Groups of tasks lie below the one that is asked for memory.
fn is_leaf(name: &str) -> bool {
    name.matches('/').count() > 1
}

/// dm-delay's last word is the delay of writes in ms; a rate is in the variant's name alone.
fn device(run: &Run) -> Result<Device, String> {
    let delayed = run.pre.lines().find(|line| line.contains(" delay "));
    if let Some(ms) = delayed.and_then(|line| line.split_whitespace().last()) {
        let ms: u64 = ms.parse().map_err(|_| format!("pre: {ms}: no delay in ms"))?;
        return Ok(Device::Delay(ms * NS_PER_MS));
    }
    let rate = run.variant.split('_').find_map(|part| part.strip_prefix(RATE)?.strip_suffix('M'));
    match rate.map(str::parse::<u64>) {
        Some(Ok(mb)) => Ok(Device::Rate(mb * MB)),
        Some(Err(_)) => Err(format!("variant {}: no rate", run.variant)),
        None => Ok(Device::Plain),
    }
}

fn number(keys: &IndexMap<String, String>, key: &str) -> Result<u64, String> {
    let text = keys.get(key).ok_or(format!("cmd: {key} is missing"))?;
    text.parse().map_err(|_| format!("cmd: {key}={text}: no number"))
}

fn asked_pages(keys: &IndexMap<String, String>) -> u64 {
    number(keys, "rounds").unwrap_or(0) * number(keys, "bytes").unwrap_or(0) / PAGE
}

/// The measuring machine, as for jobs.
fn machine(run: &Run, device: &str) -> String {
    let swap = match run.zram_mb {
        0 => "{ kind = \"none\" }".to_string(),
        mb => format!("{{ kind = \"zram\", size = \"{mb}MiB\" }}"),
    };
    format!(
        "memory = \"{}MiB\"\ncpus = 2\nreadahead_kb = 0\nfault_around_kb = 4\ndevice = {device}\n\
         swap = {swap}\ncharge_batch = {}\n",
        run.mem_mb,
        super::replay::CHARGE_BATCH
    )
}

/// dd wrote to ext4; the program that watched it read `memory.stat` and so summed the statistics
/// up, and the group's dirty limits go by the last sum.
fn writers_machine(run: &Run) -> String {
    let watched_ms = run.cmd.split_whitespace().nth(2).and_then(|ms| ms.parse().ok());
    let statistics = statistics(watched_ms.unwrap_or(super::replay::STAT_FLUSH_MS));
    let dirty = dirty(run, "summed = true");
    format!("filesystem = \"ext4\"\ncharge_kernel = true\n{dirty}{statistics}")
}

fn statistics(ms: u32) -> String {
    format!("stat_flush_ms = {ms}\n")
}

/// Shares of memory at which writers and flushers act, as they were set before the run.
fn dirty(run: &Run, more: &str) -> String {
    let set = |line: &str| {
        let (value, file) = line.strip_prefix("echo ")?.split_once(" > /proc/sys/vm/dirty_")?;
        let percent: u64 = value.parse().ok()?;
        Some(format!("{} = {percent}", file.trim()))
    };
    let set = run.pre.lines().filter_map(set);
    let all = set.chain((!more.is_empty()).then(|| more.to_string())).collect::<Vec<_>>();
    format!("dirty = {{ {} }}\n", all.join(", "))
}

fn fair(keys: &IndexMap<String, String>, pace: Option<Pace>) -> Result<String, String> {
    let n = |key: &str| number(keys, key);
    let rate = pace.and_then(|pace| pace.rate).unwrap_or(n("rate")? as f64);
    let engine = match keys.get("kind").map(String::as_str) {
        Some("shmem") => "shmem",
        Some("file") => "mmap",
        other => return Err(format!("cmd: kind={}: unknown", other.unwrap_or_default())),
    };
    let target = keys.get("target").map_or("root", String::as_str);
    Ok(format!(
        "kind = \"fairness\"\ngroups = {}\npages = {}\nengine = \"{engine}\"\nrate = {rate:?}\n\
         burst = 8\nrandom_map = false\nwrite_per_mille = {}\nwarm_ms = {}\nrequests = {}\n\
         interval_ms = {}\nrequest_bytes = {}\ntarget = \"{target}\"\n",
        n("n")?,
        n("pages")?,
        n("wr")?,
        n("warm_ms")?,
        n("rounds")?,
        pace.map_or(n("interval_ms")?, |pace| pace.period_ms),
        n("bytes")?,
    ))
}

fn mixed(keys: &IndexMap<String, String>) -> Result<String, String> {
    let n = |key: &str| number(keys, key);
    Ok(format!(
        "kind = \"mixed\"\nreaders = {}\nthreads = {}\nfile_pages = {}\nanon_pages = {}\n\
         rounds = {}\nsleep_us = {}\npause_us = {}\n",
        n("readers")?,
        n("threads")?,
        n("file_mb")? * MIB / PAGE,
        n("anon_mb")? * MIB / PAGE,
        n("rounds")?,
        n("sleep_ms")? * 1000,
        n("wait_ms")? * 1000,
    ))
}

fn dd(count: u64) -> String {
    format!(
        "kind = \"fio\"\njobs = 1\nengine = \"pread\"\ndistribution = \"sequential\"\n\
         blocks = {count}\nblock_pages = 256\nwrite_per_mille = 1000\nramp_operations = 0\n\
         operations = {count}\ngroup = \"/fio\"\n"
    )
}

fn table(text: &str) -> Result<Table, String> {
    text.parse().map_err(|e: toml::de::Error| e.message().to_string())
}

#[cfg(test)]
mod tests;
