//! Reads measurements of a real kernel: one run a line of JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use indexmap::IndexMap;
use mglru_sim::spec::FileSystem;
use serde::Deserialize;

use super::texts::{self, Text};
use mglru_error::Error;
use mglru_lab::backend::kernel::version;

/// Largest machine a record may speak of, MiB.
const MAX_MEM_MB: u64 = 1 << 20;
/// Longest step a record may speak of, seconds.
const MAX_STEP_S: f64 = 1e6;

/// Holds one measured run. Fields that the model does not need are not read.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    /// Names the run: `experiment.variant.on|off.sSEED.rREPETITION`.
    pub id: String,
    /// Names the experiment.
    pub exp: String,
    /// Names the variant of the experiment.
    pub variant: String,
    /// Holds 1 where the multi-gen LRU was on.
    pub mglru: u8,
    /// Holds the seed of the job.
    pub seed: u64,
    /// Names the kernel's release.
    #[serde(default)]
    pub kernel: String,
    /// Holds the memory of the machine, MiB.
    pub mem_mb: u64,
    /// Holds the size of the machine's zram, MiB; 0: no swap.
    #[serde(default)]
    pub zram_mb: u64,
    /// Holds the job's text; empty when the run was no job.
    #[serde(default)]
    pub spec: String,
    /// Lists settings made before the job.
    #[serde(default)]
    pub pre: String,
    /// Names the file system of its files. Where the record names none, the kernel read nothing
    /// ahead and every folio is a single page.
    #[serde(default)]
    pub filesystem: FileSystem,
    /// Names the program that ran instead of a job.
    #[serde(default)]
    pub cmd: String,
    /// Holds the result of each step of the job.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Holds the result of requests for groups' memory.
    #[serde(default)]
    pub fair: Option<Fair>,
    /// Holds the result of a program.
    #[serde(default)]
    pub run: Option<Whole>,
    /// Holds the result of readers beside rounds of memory.
    #[serde(default)]
    pub mixoom: Option<Whole>,
}

/// Holds the figures of groups after requests for their memory.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Fair {
    /// Holds the time of all requests, with the time between them, seconds.
    pub sec: f64,
    /// Counts accesses of all groups meanwhile, where they were counted.
    #[serde(default)]
    pub accesses: Option<u64>,
    /// Holds differences by group.
    pub memcgs: Vec<Reclaimed>,
    /// Counts events of the machine, as differences: requests to the root take from all.
    #[serde(default)]
    pub vm: IndexMap<String, u64>,
}

/// Holds a group's reclaim counters.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[allow(missing_docs)]
pub struct Reclaimed {
    pub pgsteal: u64,
    pub pgscan: u64,
    pub refault_anon: u64,
    pub refault_file: u64,
}

/// Holds a run that is one step.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Whole {
    /// Counts rounds that were ended, where there are any.
    #[serde(default)]
    pub rounds_done: u64,
    /// Counts events of the group, as differences.
    #[serde(default)]
    pub d: IndexMap<String, u64>,
    /// Holds `memory.events`, as differences.
    #[serde(default)]
    pub events: IndexMap<String, u64>,
}

impl Whole {
    /// Returns a counter; 0 where there is none of that name.
    pub fn counter(&self, name: &str) -> f64 {
        self.d.get(name).copied().unwrap_or(0) as f64
    }

    /// Returns the count of an event; 0 where there was none.
    pub fn event(&self, name: &str) -> f64 {
        self.events.get(name).copied().unwrap_or(0) as f64
    }
}

/// Holds the measurement of one step.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Step {
    /// Counts operations; commands have none.
    #[serde(default)]
    pub ops: u64,
    /// Holds the time that it took, seconds.
    #[serde(default)]
    pub sec: f64,
    /// Counts events of the group, as differences.
    #[serde(default)]
    pub d: IndexMap<String, u64>,
    /// Holds counters of the machine, as differences.
    #[serde(default)]
    pub vm: IndexMap<String, u64>,
    /// Holds the administrator's command that it was.
    #[serde(default)]
    pub cmd: Option<String>,
    /// Lists the group's generations after it, as the kernel prints them.
    #[serde(default)]
    pub lru_gen: String,
}

impl Run {
    /// Sums a counter of the group over all steps; `None` where the run has none of that name.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.sum(|step| step.d.get(name))
    }

    /// Sums a counter of the machine in the same way.
    pub fn machine_counter(&self, name: &str) -> Option<u64> {
        self.sum(|step| step.vm.get(name))
    }

    fn sum(&self, of: impl Fn(&Step) -> Option<&u64>) -> Option<u64> {
        let known: Vec<u64> = self.steps.iter().filter_map(|step| of(step).copied()).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// Names the version of the kernel; empty where the record names none.
    pub fn version(&self) -> &str {
        version::of(&self.kernel)
    }

    /// Names the job: its experiment and variant, with a dot between.
    pub fn job(&self) -> String {
        format!("{}.{}", self.exp, self.variant)
    }

    fn check(&self) -> Result<(), String> {
        let refuse = |key: &str, got: &dyn std::fmt::Display, problem: &str| {
            Err(format!("{key} = {got}: {problem}"))
        };
        if self.mglru > 1 {
            return refuse("mglru", &self.mglru, "must be 0 or 1");
        }
        for (key, mb) in [("mem_mb", self.mem_mb), ("zram_mb", self.zram_mb)] {
            if mb > MAX_MEM_MB || key == "mem_mb" && mb == 0 {
                return refuse(key, &mb, "must be from 1 to 1048576");
            }
        }
        let slow = self.steps.iter().find(|step| !(0.0..=MAX_STEP_S).contains(&step.sec));
        match slow {
            Some(step) => refuse("steps.sec", &step.sec, "must be from 0 to 1000000"),
            None if !self.spec.is_empty() && self.steps.is_empty() => {
                refuse("steps", &"[]", "a job that ran has steps")
            }
            None => Ok(()),
        }
    }
}

/// Reads the runs of files, or of what the program holds, that were measured on some versions
/// (none: all) and have a word in their id; also the name of the first text.
///
/// # Errors
/// A file that cannot be read, a version that nothing was measured on, a word that no id has.
pub fn chosen(
    files: &[PathBuf],
    versions: &[String],
    only: &str,
) -> Result<(String, Vec<Run>), Error> {
    let texts = texts::of(files)?;
    let mut runs = load(&texts)?;
    for wanted in versions {
        let known = runs.iter().any(|run| version::is_of(run.version(), wanted));
        known.then_some(()).ok_or_else(|| {
            let known = version::listed(runs.iter().map(Run::version));
            let none = format!("--version {wanted}: no run was measured on it; known: {known}");
            Error::Request(none)
        })?;
    }
    let any = |run: &Run| versions.iter().any(|v| version::is_of(run.version(), v));
    runs.retain(|run| versions.is_empty() || any(run));
    runs.retain(|run| run.id.contains(only));
    match runs.is_empty() {
        true => Err(Error::Request(format!("--only {only}: no run's id has it"))),
        false => Ok((texts[0].name.clone(), runs)),
    }
}

/// Reads every run of the texts, in order. The same id may stand once for each kernel.
///
/// # Errors
/// Names file and line of what is no record, and an id that stands twice.
pub fn load(texts: &[Text]) -> Result<Vec<Run>, Error> {
    let mut runs = Vec::new();
    let mut seen: BTreeMap<(String, String), String> = BTreeMap::new();
    for Text { name, text } in texts {
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = format!("{name}:{}", at + 1);
            let run = parse(line).map_err(|e| Error::Request(format!("{place}: {e}")))?;
            let key = (run.version().to_string(), run.id.clone());
            if let Some(first) = seen.insert(key, place.clone()) {
                let twice = format!("{place}: id {}: stands at {first} already", run.id);
                return Err(Error::Request(twice));
            }
            runs.push(run);
        }
    }
    match (runs.is_empty(), texts.first()) {
        (true, Some(text)) => Err(Error::Request(format!("{}: holds no record", text.name))),
        _ => Ok(runs),
    }
}

fn parse(line: &str) -> Result<Run, String> {
    let run: Run = serde_json::from_str(line).map_err(|e| match e.is_eof() {
        true => "the line is cut short".to_string(),
        false => format!("no record of a run: {}", without_line(&e.to_string())),
    })?;
    run.check()?;
    Ok(run)
}

/// serde counts lines within the one it was given.
fn without_line(message: &str) -> String {
    message.replace(" at line 1 column ", " at column ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"id":"a.b.on.s1.r0","exp":"a","variant":"b","mglru":1,"seed":1,
        "mem_mb":64,"spec":"x","steps":[{"ops":2,"sec":0.5,"d":{"pgmajfault":3},
        "vm":{"pgpgin":8}},{"d":{"pgmajfault":4},"vm":{"pgpgin":4}}]}"#;

    fn load_text(text: &str) -> Result<Vec<Run>, String> {
        let text = Text { name: "t.jsonl".to_string(), text: text.to_string() };
        load(&[text]).map_err(|e| e.to_string())
    }

    fn line() -> String {
        LINE.replace('\n', " ")
    }

    #[test]
    fn counters_are_summed_over_steps() {
        let run = &load_text(&line()).unwrap()[0];
        assert_eq!((run.counter("pgmajfault"), run.counter("pgscan")), (Some(7), None));
        assert_eq!((run.machine_counter("pgpgin"), run.machine_counter("x")), (Some(12), None));
        assert_eq!((run.job().as_str(), run.zram_mb, run.version()), ("a.b", 0, ""));
    }

    #[test]
    fn an_id_may_stand_once_for_each_kernel() {
        let on =
            |kernel: &str| line().replace("\"exp\"", &format!("\"kernel\":{kernel:?},\"exp\""));
        let runs = load_text(&format!("{}\n{}", on("7.1.13+deb"), on("7.2.12"))).unwrap();
        assert_eq!((runs[0].version(), runs[1].version()), ("7.1.13", "7.2.12"));
        let message = load_text(&format!("{}\n{}", on("7.1.13+a"), on("7.1.13+b"))).unwrap_err();
        assert_eq!(message, "t.jsonl:2: id a.b.on.s1.r0: stands at t.jsonl:1 already");
    }

    #[test]
    fn what_is_no_record_is_named_by_file_and_line() {
        let ok = line();
        for (text, says) in [
            (String::new(), "t.jsonl: holds no record"),
            ("\n{".to_string(), "t.jsonl:2: the line is cut short"),
            (format!("{ok}\n{ok}"), "t.jsonl:2: id a.b.on.s1.r0: stands at t.jsonl:1 already"),
            (ok.replace("\"mglru\":1", "\"mglru\":2"), "t.jsonl:1: mglru = 2: must be 0 or 1"),
            (
                ok.replace("\"mem_mb\":64", "\"mem_mb\":0"),
                "t.jsonl:1: mem_mb = 0: must be from 1 to 1048576",
            ),
            (
                ok.replace("\"sec\":0.5", "\"sec\":-1"),
                "t.jsonl:1: steps.sec = -1: must be from 0 to 1000000",
            ),
            (
                ok.replace("\"seed\":1,", ""),
                "t.jsonl:1: no record of a run: missing field `seed` at column 206",
            ),
        ] {
            assert_eq!(load_text(&text).unwrap_err(), says);
        }
    }
}
