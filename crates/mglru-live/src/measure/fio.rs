//! fio's mmap engine on one file, once on the kernel's page cache and once under the pager, with
//! either fault engine, all in a group of the kernel of one size, caches cold. fio gives no system
//! call the memory it maps, so that its threads may serve their own faults.
//!
//! The kernel charges a program's own pages to the group that reads them first. Beside a pager
//! nothing else in the group can go, and the kernel would take the very code that runs: so each
//! side runs once outside the group before it is measured (what lies unused for a minute a host may
//! have dropped meanwhile).

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use mglru_pager::launch::{LEFT, Launch};
use mglru_pager::{FaultEngine, FileStore};
use serde_json::Value;

use super::kernel_group::KernelGroup;
use super::{Finding, MIB, Numbers, Section, Settings, Target, abba, progress};
use mglru_error::Error;

/// The file, the pager's budget, and the group: the budget and what fio takes itself.
const FILE: usize = 256 * MIB;
const BUDGET: usize = 128 * MIB;
const GROUP: usize = 142 * MIB;

/// How the file is used, and the least that we may have of the kernel's rate.
const PATTERNS: [(&str, &str, f64); 4] = [
    ("randread", "zipf:1.2", 1.15),
    ("randread", "zipf:0.8", 1.05),
    ("randwrite", "zipf:1.2", 1.0),
    ("randread", "random", 0.9),
];

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    if Command::new("fio").arg("--version").output().is_err() {
        return Err(Error::Request("fio: not found (apt-get install fio)".into()));
    }
    let group = KernelGroup::new(GROUP)?;
    let file = scratch(&settings.dir).map_err(|e| Error::io(&settings.dir, e))?;
    let patterns = settings.size(&PATTERNS[..], &PATTERNS[..1]);
    let mut findings = Vec::new();
    for engine in [FaultEngine::Sigbus, FaultEngine::Thread] {
        for &(rw, law, least) in patterns {
            let job = Job { settings, group: &group, file: file.path(), engine, rw, law };
            findings.extend(job.compare(least)?);
        }
    }
    Ok(findings)
}

/// The file, its content not packable, with a name for fio.
fn scratch(dir: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    let mut numbers = Numbers(1);
    let chunk: Vec<u8> = (0..MIB).map(|_| numbers.below(256) as u8).collect();
    (0..FILE / MIB).try_for_each(|_| file.write_all(&chunk))?;
    file.as_file().sync_all()?;
    Ok(file)
}

struct Job<'a> {
    settings: &'a Settings,
    group: &'a KernelGroup,
    file: &'a Path,
    engine: FaultEngine,
    rw: &'static str,
    law: &'static str,
}

/// Holds fio's result: operations per second, and the time that one in a thousand exceeds, µs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Said {
    rate: f64,
    tail: f64,
}

impl Job<'_> {
    fn compare(&self, least: f64) -> Result<[Finding; 2], Error> {
        let what = format!("{} {}, {}", self.rw, self.law, self.engine.name());
        progress(&format!("fio: {what}"));
        let pairs = abba::pairs(self.settings.pairs, || self.run(false), || self.run(true))?;
        let of = |figure: fn(&Said) -> f64| -> Vec<(f64, f64)> {
            pairs.iter().map(|(base, ours)| (figure(base), figure(ours))).collect()
        };
        let (rates, tails) = (of(|said| said.rate), of(|said| said.tail));
        let rate = Finding::new(
            Section::Fio,
            format!("{what}: operations per second over the kernel's"),
            abba::ratios(&rates),
            Target::AtLeast(least),
            sides(&rates),
        );
        let tail = Finding::new(
            Section::Fio,
            format!("{what}: 99.9th percentile over the kernel's"),
            abba::ratios(&tails),
            Target::AtMost(1.0),
            sides(&tails) + " µs",
        );
        Ok([rate, tail])
    }

    /// Has the code of a side read.
    fn warm(&self, managed: bool) -> Result<(), Error> {
        let mut command = self.command(managed, (0, 1))?;
        command.output().map(drop).map_err(|e| Error::io(Path::new("fio"), e))
    }

    fn run(&self, managed: bool) -> Result<Said, Error> {
        self.warm(managed)?;
        // Writes back and forgets what is cached of it.
        let file = File::options().read(true).write(true).open(self.file);
        let cold = file.and_then(|file| FileStore::new(&file, true).map(drop));
        cold.map_err(|e| Error::io(self.file, e))?;
        let command = self.command(managed, self.settings.size((4, 3), (1, 1)))?;
        let done = self.group.run(&command).output().map_err(|e| Error::io(Path::new("sh"), e))?;
        let (text, notes) =
            [&done.stdout, &done.stderr].map(|out| String::from_utf8_lossy(out)).into();
        let figures = said(&text, self.rw.trim_start_matches("rand"));
        // A run that the kernel served under either name would be compared with itself.
        figures
            .filter(|_| !notes.contains(LEFT))
            .ok_or_else(|| Error::Request(format!("fio gave no figures: {}", notes.trim())))
    }

    /// fio for so many seconds, after so many that do not count.
    fn command(&self, managed: bool, (ramp, time): (u32, u32)) -> Result<Command, Error> {
        let mut command = self.program(managed)?;
        command.args(["--thread", "--numjobs=2", "--bs=4k", "--norandommap", "--ioengine=mmap"]);
        command.args(["--time_based", "--group_reporting", "--output-format=json", "--name=job"]);
        command.args(["--fallocate=none", "--size=256M"]);
        command.arg(format!("--ramp_time={ramp}")).arg(format!("--runtime={time}"));
        command.arg(format!("--rw={}", self.rw)).arg(format!("--random_distribution={}", self.law));
        command.arg(format!("--filename={}", self.file.display()));
        Ok(command)
    }

    fn program(&self, managed: bool) -> Result<Command, Error> {
        let (memory_max, faults) = (Some(BUDGET as u64), self.engine);
        if !managed {
            return Ok(Command::new(PathBuf::from("fio")));
        }
        let library = mglru_carried::library()?;
        let launch =
            Launch { library, memory_max, faults, shared_files: true, ..Launch::default() };
        launch.command("fio").map_err(|e| Error::Request(e.to_string()))
    }
}

fn said(text: &str, side: &str) -> Option<Said> {
    // Notes may come before the document.
    let document: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let side = &document["jobs"][0][side];
    let tail = side["clat_ns"]["percentile"]["99.900000"].as_f64()? / 1000.0;
    Some(Said { rate: side["iops"].as_f64()?, tail })
}

fn sides(pairs: &[(f64, f64)]) -> String {
    let side = |of: fn(&(f64, f64)) -> f64| {
        abba::Spread::of(&pairs.iter().map(of).collect::<Vec<_>>()).median.round()
    };
    format!("kernel {}, ours {}", side(|pair| pair.0), side(|pair| pair.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_behind_a_note() {
        let text = r#"note: x
            {"jobs": [{"read": {"iops": 12.5, "clat_ns": {"percentile": {"99.900000": 8000}}}}]}"#;
        assert_eq!(said(text, "read"), Some(Said { rate: 12.5, tail: 8.0 }));
        assert_eq!(said(text, "write"), None);
        assert_eq!(said("no document", "read"), None);
    }
}
