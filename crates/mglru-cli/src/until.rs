//! `mglru run --until`: booted runs that end at a moment, and what the kernel reports there.

use std::io::Write;
use std::path::Path;

use mglru_guest::order::Until;
use mglru_guest::report::Step;

use super::run::{Output, default_dir};
use super::{Answer, Asked, Format, gdb};
use mglru_error::Error;
use mglru_lab::backend::{Announce, Standing, Stepping};
use mglru_lab::spec::{Experiment, RunSpec};
use mglru_lab::store;

/// Units of a time, in microseconds, those that end others last.
const UNITS: [(&str, f64); 3] = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];

/// Reads a number of accesses, a time with its unit, or the name of a trace event.
pub(super) fn parse(text: &str) -> Result<Until, String> {
    let wanted = "want accesses (64000), a time (1.5s, 200ms, 10us) or a trace event's name";
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_event = !text.is_empty() && text.chars().all(is_name);
        return is_event.then(|| Until::Event(text.to_string())).ok_or_else(|| wanted.to_string());
    }
    let found = match text.parse() {
        Ok(accesses) => Some(Until::Accesses(accesses)),
        Err(_) => time_us(text).map(Until::TimeUs),
    };
    found.filter(|u| !matches!(u, Until::Accesses(0) | Until::TimeUs(0))).ok_or(wanted.into())
}

fn time_us(text: &str) -> Option<u64> {
    let (number, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let value: f64 = number.parse().ok()?;
    (value * unit < 1e15).then_some((value * unit).round() as u64)
}

pub(super) fn execute(
    asked: &Asked,
    output: &Output,
    until: &Until,
    debugger: Option<u16>,
) -> Answer {
    if asked.plan == "all" || output.format != Format::Table || output.skin.is_some() {
        let problem = "one plan's runs end there, and files show it, no table";
        return Err(Error::Request(format!("--until: {problem}")));
    }
    if let Some(port) = debugger {
        gdb::check(port)?;
    }
    let seeds = asked.seeds.or(debugger.map(|_| 1));
    let experiment = Asked { seeds, ..asked.clone() }.experiment()?;
    let jobs = experiment.runs.iter().map(|run| stepping(&experiment, run));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    if let (Some(_), runs @ 2..) = (debugger, jobs.len()) {
        let problem = format!("{runs} runs; --gdb holds one: one --variant and one seed");
        return Err(Error::Request(format!("{}: {problem}", experiment.plan.file)));
    }
    let dir = output.out.clone().unwrap_or_else(|| default_dir(&experiment)).join("until");
    let mut text = String::new();
    for (run, job) in experiment.runs.iter().zip(jobs) {
        let name = format!("{} seed {}", run.variant.name, run.seed);
        let folder = dir.join(&run.id);
        let mut announce = |standing: &Standing| {
            keep(standing.at, &folder).map_err(|e| e.to_string())?;
            let text = about(&name, standing.at, &folder) + &gdb::instructions(standing);
            let mut out = std::io::stdout();
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| e.to_string())
        };
        let port = debugger.map(|port| (port, &mut announce as Announce));
        let step = job.stop(run.seed, until, &folder.join("console.log"), port);
        let fault = |e| Error::Request(format!("{}: {name}: {e}", experiment.plan.file));
        let step = step.map_err(fault)?;
        if debugger.is_some() {
            return Ok(("the machine is ended\n".to_string(), 0));
        }
        keep(&step, &folder)?;
        text += &about(&name, &step, &folder);
    }
    Ok((text, 0))
}

fn stepping<'a>(experiment: &Experiment, run: &'a RunSpec) -> Result<&'a dyn Stepping, Error> {
    run.job.stepping().filter(|job| job.can_stop()).ok_or_else(|| {
        let why = "--until ends booted runs of a workload (--backend kernel)";
        Error::Request(format!("{}: {}: {why}", experiment.plan.file, run.variant.name))
    })
}

/// Writes a file for each text of the kernel's, under its own name.
fn keep(step: &Step, folder: &Path) -> Result<(), Error> {
    let at = &step.at;
    let mut texts = vec![
        ("vmstat".to_string(), at.vmstat.clone()),
        ("meminfo".to_string(), at.meminfo.clone()),
        ("lru_gen".to_string(), at.lru_gen.clone()),
        ("pressure.memory".to_string(), at.pressure.memory.clone()),
        ("pressure.io".to_string(), at.pressure.io.clone()),
        ("trace".to_string(), step.events.clone()),
    ];
    for (path, group) in &at.groups {
        let group_name = path.trim_matches('/').replace('/', "-");
        let name = |file: &str| match group_name.as_str() {
            "" => format!("root.{file}"),
            group => format!("{group}.{file}"),
        };
        texts.push((name("memory.stat"), group.stat.clone()));
        texts.push((name("memory.events"), group.events.clone()));
        texts.push((name("memory.pressure"), group.pressure.memory.clone()));
        texts.push((name("io.pressure"), group.pressure.io.clone()));
    }
    let pages = step.pages.iter().enumerate();
    texts.extend(pages.map(|(file, bits)| (format!("f{file}.pages"), format!("{bits}\n"))));
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    texts.iter().try_for_each(|(name, text)| store::replace(&folder.join(name), text))
}

fn about(name: &str, step: &Step, folder: &Path) -> String {
    let last = step.events.lines().last().unwrap_or("none").trim();
    let access = match step.access {
        // The process was killed in it.
        0 => "an access that did not end".to_string(),
        access => format!("access {access}"),
    };
    format!(
        "{name}: {access}, {:.3} ms after the work began\nlast trace event: {last}\n{}files: {}\n",
        step.at.at_us as f64 / 1000.0,
        step.at.lru_gen,
        folder.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_accesses_times_or_events() {
        let event = |name: &str| Until::Event(name.to_string());
        for (text, want) in [
            ("64000", Until::Accesses(64_000)),
            ("1.5s", Until::TimeUs(1_500_000)),
            ("200ms", Until::TimeUs(200_000)),
            ("7us", Until::TimeUs(7)),
            ("mark_victim", event("mark_victim")),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
        for text in ["", "0", "0s", "1.5", "5m", "-3", "a/b", "1e400s", "oom kill"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
