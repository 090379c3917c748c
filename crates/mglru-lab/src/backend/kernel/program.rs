//! `[workload]` with `kind = "program"`: a script that runs programs of this host in a group of
//! the guest, and what is read off its output.

use indexmap::IndexMap;
use mglru_guest::order::Program;
use mglru_guest::report::Ended;
use mglru_workload::Layout;
use mglru_workload::op::GroupSpec;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value as Json;
use toml::Table;

use super::outcome;
use super::watch::GuestReport;
use crate::backend::Outcome;
use crate::typed;
use mglru_error::KeyError;

/// Figure that becomes the record's rate.
const RATE: &str = "ops_per_s";
/// Figure that becomes the record's number of operations.
const OPS: &str = "ops";
/// Lines of output that an error shows at most.
const SHOWN: usize = 3;

/// `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[allow(dead_code)]
    kind: String,
    /// A text for the shell; what it starts runs in the group. `$SEED` is the run's seed.
    script: String,
    /// The group.
    #[serde(default = "group")]
    group: String,
    /// Killed after this time, seconds.
    #[serde(default = "hour")]
    at_most_s: u64,
    /// A killed program, or one that fails, is a result and not an error.
    #[serde(default)]
    may_fail: bool,
    /// By name: what in the output is the figure, a pattern with one group.
    #[serde(default)]
    figures: IndexMap<String, String>,
}

/// Holds the keys of a program, checked.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    keys: Keys,
    figures: Vec<(String, Regex)>,
}

impl ProgramSpec {
    /// Reads the table.
    ///
    /// # Errors
    /// Names the key.
    pub fn read(table: &Table, scale: f64) -> Result<Self, KeyError> {
        let keys: Keys = typed::from_table(table.clone()).map_err(|e| e.within("workload"))?;
        if scale != 1.0 {
            let problem = "a program runs as it is, at scale 1 only";
            return Err(KeyError::value("scale", scale, problem));
        }
        let pattern = |(name, text): (&String, &String)| {
            let key = format!("workload.figures.{name}");
            let pattern =
                Regex::new(text).map_err(|_| KeyError::value(&key, text, "no pattern"))?;
            match pattern.captures_len() {
                2 => Ok((name.clone(), pattern)),
                _ => Err(KeyError::value(key, text, "needs exactly one group, such as (\\d+)")),
            }
        };
        let figures = keys.figures.iter().map(pattern).collect::<Result<_, _>>()?;
        Ok(Self { keys, figures })
    }

    /// Returns a layout of one group, without files of ours.
    pub fn layout(&self) -> Layout {
        let group = GroupSpec { name: self.keys.group.clone(), parent: None };
        Layout { groups: vec![group], ..Layout::default() }
    }

    /// Returns the guest's orders.
    pub fn order(&self, seed: u64) -> Program {
        Program {
            script: format!("SEED={seed}\n{}", self.keys.script),
            group: self.keys.group.clone(),
            at_most_ms: self.keys.at_most_s * 1000,
        }
    }

    /// Returns all that the program said.
    pub fn output(report: &GuestReport) -> &str {
        report.workers.first().map_or("", |ended| &ended.output)
    }

    /// Returns the outcome of a run, which becomes part of its record.
    ///
    /// # Errors
    /// A program that failed, or an output that lacks a figure; but not where memory ran out and
    /// the kernel killed something: that is a result.
    pub fn outcome(&self, report: &GuestReport) -> Result<Outcome, String> {
        let mut found = outcome::outcome(report, &self.layout())?;
        // A machine that stopped says nothing about its program.
        let stopped = report.starved.as_ref().map(|_| Ended::default());
        let ended = report.workers.first().or(stopped.as_ref());
        let ended = ended.ok_or("the guest says nothing about the program")?;
        let starved = report.starved.is_some() || !report.killed.is_empty();
        let failed = ended.status != Some(0);
        if failed && !starved && !self.keys.may_fail {
            return Err(failure(ended));
        }
        for (name, pattern) in &self.figures {
            match figure(pattern, &ended.output) {
                Some(figure) if name == RATE => found.metrics.ops_per_s = figure,
                Some(figure) if name == OPS => found.metrics.ops = figure as u64,
                Some(figure) => {
                    found.custom.insert(name.clone(), Json::from(figure));
                }
                None if failed || starved => {}
                None => {
                    return Err(format!(
                        "workload.figures.{name}: not in the output: {}",
                        tail(&ended.output)
                    ));
                }
            }
        }
        let completed = u8::from(!failed && !ended.timed_out);
        found.custom.insert("completed".to_string(), Json::from(completed));
        found.custom.insert("output".to_string(), Json::from(ended.output.clone()));
        Ok(found)
    }
}

/// The first match; thousands may be separated by commas.
fn figure(pattern: &Regex, output: &str) -> Option<f64> {
    let text = pattern.captures(output)?.get(1)?.as_str().replace(',', "");
    text.parse().ok().filter(|figure: &f64| figure.is_finite())
}

fn failure(ended: &Ended) -> String {
    let how = match (ended.timed_out, ended.signal, ended.status) {
        (true, ..) => "was not over in time (workload.at_most_s)".to_string(),
        (_, Some(signal), _) => format!("was ended by signal {signal}"),
        (_, _, status) => format!("failed with status {}", status.unwrap_or(-1)),
    };
    format!("the program {how}: {}", tail(&ended.output))
}

fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("; ")
}

fn group() -> String {
    "/program".to_string()
}

fn hour() -> u64 {
    3600
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::kernel::oom::Killed;
    use mglru_guest::report::Snapshot;

    const PLAN: &str = "kind = \"program\"\nscript = \"fio x\"\n[figures]\n\
        ops_per_s = 'IOPS=([0-9.,]+)'\nmisses = 'misses (\\d+)'";

    fn report(ended: Ended) -> GuestReport {
        GuestReport {
            over: Some(Snapshot::default()),
            workers: vec![ended],
            ..GuestReport::default()
        }
    }

    fn spec(text: &str) -> Result<ProgramSpec, String> {
        ProgramSpec::read(&text.parse().unwrap(), 1.0).map_err(|e| e.to_string())
    }

    #[test]
    fn figures_are_read_off_the_output() {
        let output = "read: IOPS=1,234.5\nmisses 7\n".to_string();
        let ended = Ended { status: Some(0), output, ..Ended::default() };
        let found = spec(PLAN).unwrap().outcome(&report(ended)).unwrap();
        assert_eq!((found.metrics.ops_per_s, &found.custom["misses"]), (1234.5, &7.0.into()));
        assert_eq!(found.custom["completed"], 1);
    }

    #[test]
    fn a_program_that_fails_is_an_error_unless_that_may_be() {
        let output = "a\nb\nc\nKilled\n".to_string();
        let ended = Ended { status: Some(137), output, ..Ended::default() };
        let error = spec(PLAN).unwrap().outcome(&report(ended.clone())).unwrap_err();
        assert_eq!(error, "the program failed with status 137: b; c; Killed");
        let may = spec(&PLAN.replacen('\n', "\nmay_fail = true\n", 1)).unwrap();
        assert_eq!(may.outcome(&report(ended)).unwrap().custom["completed"], 0);
        let silent = Ended { status: Some(0), ..Ended::default() };
        let error = spec(PLAN).unwrap().outcome(&report(silent)).unwrap_err();
        assert!(error.starts_with("workload.figures.ops_per_s: not in the output"), "{error}");
    }

    #[test]
    fn a_program_that_the_kernel_killed_for_want_of_memory_is_a_result() {
        let killed = Killed { process: "fio".to_string(), pid: 70, in_group: false };
        let report = |status, starved: Option<&str>| GuestReport {
            killed: vec![killed.clone()],
            starved: starved.map(str::to_string),
            ..report(Ended { status, ..Ended::default() })
        };
        let spec = spec(PLAN).unwrap();
        for status in [Some(137), Some(0)] {
            let found = spec.outcome(&report(status, None)).unwrap();
            assert_eq!(found.custom["completed"], u8::from(status == Some(0)));
            assert_eq!(found.custom["oom_killed"][0]["process"], "fio");
        }
        let stopped =
            GuestReport { over: None, workers: Vec::new(), ..report(None, Some("Kernel panic")) };
        let found = spec.outcome(&stopped).unwrap();
        assert_eq!(
            (&found.custom["completed"], &found.custom["stopped"]),
            (&0.into(), &"Kernel panic".into())
        );
        assert_eq!(found.counters["oom_kill"], 1);
    }

    #[test]
    fn mistakes_name_the_key() {
        let error = spec("kind = \"program\"\nscript = \"\"\nfigures = { x = \"y\" }").unwrap_err();
        assert!(error.starts_with("workload.figures.x = y: needs exactly one group"), "{error}");
        assert!(spec("kind = \"program\"").unwrap_err().starts_with("workload.script: is missing"));
        let table: Table = PLAN.parse().unwrap();
        let error = ProgramSpec::read(&table, 0.5).unwrap_err().to_string();
        assert!(error.starts_with("scale = 0.5: a program runs as it is"), "{error}");
    }
}
