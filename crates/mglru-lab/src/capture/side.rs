//! One side of a comparison of captures: a file, several with commas between them, or a folder of
//! them. Each file is one repetition.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::Capture;
use crate::compare::Comparison;
use crate::judge::{self, Verdict};
use mglru_error::{Error, did_you_mean};
use mglru_workload::trace::unpacked;

/// Holds the figures of each repetition, under the name that the user gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    name: String,
    runs: Vec<IndexMap<String, f64>>,
    /// Says that each repetition was read once, so that counters are totals since boot.
    totals: bool,
    /// Names the counters that fell in some repetition, and have no figure there.
    fallen: BTreeSet<String>,
}

/// Tells whether a path is one of captures, not of records: those are lines of JSON.
///
/// # Errors
/// Nothing can be read there.
pub fn is_capture(path: &Path) -> Result<bool, Error> {
    let Some(first) = files(path)?.into_iter().next() else {
        return Err(Error::Request(format!(
            "{}: holds neither capture nor record",
            path.display()
        )));
    };
    let mut start = Vec::new();
    let read = unpacked(&first).and_then(|file| file.take(4096).read_to_end(&mut start));
    read.map_err(|e| Error::io(&first, e))?;
    let start = start.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_records = first.extension().is_some_and(|e| e == "jsonl") || start == Some(&b'{');
    Ok(!is_records)
}

/// Finds the files behind a path. A run folder counts as its records.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if path.is_dir() {
        let records = path.join("records.jsonl");
        if records.exists() {
            return Ok(vec![records]);
        }
        let entries = fs::read_dir(path).map_err(|e| Error::io(path, e))?.flatten();
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        found.sort();
        return Ok(found);
    }
    let text = path.to_string_lossy();
    match !path.exists() && text.contains(',') {
        true => Ok(text.split(',').map(PathBuf::from).collect()),
        false => Ok(vec![path.to_path_buf()]),
    }
}

impl Side {
    /// Reads all captures of a side.
    ///
    /// # Errors
    /// Names the file, and the line, that cannot be read.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let load = |file: PathBuf| Capture::load(&file);
        let captures: Vec<_> = files(path)?.into_iter().map(load).collect::<Result<_, _>>()?;
        if captures.is_empty() {
            return Err(Error::Request(format!("{}: holds no capture", path.display())));
        }
        let totals = captures.iter().all(|capture| capture.is_one_reading());
        let runs = captures.iter().map(Capture::figures).collect();
        let fallen = captures.iter().flat_map(Capture::fallen).map(str::to_string).collect();
        Ok(Self { name: named(path), runs, totals, fallen })
    }

    /// Tells the values of a figure in all repetitions; `a/b` divides one by another, and what only
    /// a group has may be named without `memory.stat.`.
    fn values(&self, metric: &str) -> Option<Vec<f64>> {
        self.runs.iter().map(|run| value(run, metric)).collect()
    }
}

fn value(run: &IndexMap<String, f64>, metric: &str) -> Option<f64> {
    let plain =
        |name: &str| run.get(name).or_else(|| run.get(&format!("memory.stat.{name}"))).copied();
    let quotient = |(at, _)| {
        let (over, under) = (plain(&metric[..at])?, plain(&metric[at + 1..])?);
        (under != 0.0).then(|| over / under)
    };
    plain(metric).or_else(|| metric.match_indices('/').find_map(quotient))
}

/// Names a side by its file, or by its first and last.
fn named(path: &Path) -> String {
    let text = path.to_string_lossy();
    let stem = |file: &str| {
        let name = file.trim_end_matches('/').rsplit('/').next().unwrap_or(file).to_string();
        let ending = [".capture", ".txt"].iter().find_map(|ending| name.strip_suffix(ending));
        ending.map_or(name.clone(), str::to_string)
    };
    match (path.exists(), text.split_once(',')) {
        (false, Some((first, rest))) => {
            format!("{}…{}", stem(first), stem(rest.rsplit(',').next().unwrap_or(rest)))
        }
        _ => stem(&text),
    }
}

/// Compares two sides: the named figures, or each that is there on both sides and differs (`all`:
/// also those that do not).
///
/// # Errors
/// A named figure is missing on one side, or no figure is on both.
pub fn compare(sides: &[Side; 2], metrics: &[String], all: bool) -> Result<Vec<Comparison>, Error> {
    let [a, b] = sides;
    let both = |metric: &str| Some([a.values(metric)?, b.values(metric)?]);
    let names = [format!("A {}", a.name), format!("B {}", b.name)];
    let compared = |metric: &str, runs| {
        let mut found = Comparison::unpaired(metric, [&names[0], &names[1]], runs);
        let is_single = a.runs.len() + b.runs.len() == 2 && found.base_mean != found.mean;
        found.verdict = if is_single { Verdict::NotJudged } else { judge::unexpected(&found) };
        found
    };
    if !metrics.is_empty() {
        let named = |metric: &String| {
            let runs = both(metric).ok_or_else(|| missing(metric, sides))?;
            Ok(compared(metric, runs))
        };
        return metrics.iter().map(named).collect();
    }
    let shared = a.runs[0].keys().filter_map(|metric| Some((metric, both(metric)?)));
    let mut found: Vec<Comparison> = shared.map(|(metric, runs)| compared(metric, runs)).collect();
    if found.is_empty() {
        let problem = format!("{} and {} have no counter in common", a.name, b.name);
        return Err(Error::Request(problem));
    }
    let differs = |c: &Comparison| c.runs.iter().flatten().any(|&x| x != c.runs[0][0]);
    found.retain(|c| all || differs(c));
    Ok(found)
}

/// Says what readings of one moment do not tell, and which counters fell; empty where all is well.
pub fn remark(sides: &[Side; 2]) -> String {
    let totals = sides.iter().any(|side| side.totals).then_some(
        "A file of one reading has totals, since boot or since its group was made. A file of two, \
         before and after a run\n(mglru capture -- COMMAND), has their growth.\n",
    );
    sides.iter().filter_map(fallen).fold(totals.unwrap_or_default().to_string(), |a, b| a + &b)
}

fn fallen(side: &Side) -> Option<String> {
    let first = side.fallen.first()?;
    let others = match side.fallen.len() - 1 {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Some(format!(
        "{}: {first}{others} fell from one reading to a later one, so the machine or the group was \
         made anew\nin between; what fell is left out.\n",
        side.name
    ))
}

fn missing(metric: &str, sides: &[Side; 2]) -> Error {
    let lacks = |side: &&Side| side.values(metric).is_none();
    let side = sides.iter().find(lacks).unwrap_or(&sides[0]);
    let near = did_you_mean(metric, side.runs[0].keys().map(String::as_str));
    Error::Request(format!("--metric {metric}: {} has no such figure{near}", side.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, pgscan: &[f64]) -> Side {
        let run = |x: &f64| {
            let values = [("pgscan", *x), ("memory.stat.pgsteal", x / 2.0), ("same", 1.0)];
            values.map(|(name, x)| (name.to_string(), x)).into()
        };
        let runs = pgscan.iter().map(run).collect();
        Side { name: name.to_string(), runs, totals: false, fallen: BTreeSet::new() }
    }

    #[test]
    fn a_single_pair_that_differs_is_not_judged() {
        let sides = [side("a", &[1000.0]), side("b", &[1001.0])];
        let found = compare(&sides, &[], true).unwrap();
        let verdicts: Vec<Verdict> = found.iter().map(|c| c.verdict).collect();
        assert_eq!(verdicts, [Verdict::NotJudged, Verdict::NotJudged, Verdict::Neutral]);
    }

    #[test]
    fn counters_that_fell_are_named() {
        let mut sides = [side("a", &[1.0]), side("b", &[1.0])];
        assert_eq!(remark(&sides), "");
        sides[1].fallen = ["pgpgin", "pgscan"].map(str::to_string).into();
        assert!(remark(&sides).starts_with("b: pgpgin and 1 more fell from one reading"));
    }

    #[test]
    fn a_compressed_capture_is_read_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.capture.zst");
        fs::write(&path, zstd::encode_all(&b"pgscan 7\n"[..], 1).unwrap()).unwrap();
        assert!(is_capture(&path).unwrap());
        assert_eq!(Side::load(&path).unwrap().runs[0]["pgscan"], 7.0);
    }

    #[test]
    fn figures_that_differ_are_compared_over_repetitions() {
        let sides = [side("a", &[100.0, 102.0, 98.0]), side("b", &[50.0, 51.0])];
        let found = compare(&sides, &[], false).unwrap();
        let names: Vec<&str> = found.iter().map(|c| c.metric.as_str()).collect();
        assert_eq!(names, ["pgscan", "memory.stat.pgsteal"]);
        assert!((found[0].ratio.unwrap() - 0.505).abs() < 0.001);
        let [low, high] = found[0].ci95.unwrap();
        assert!(low < 0.505 && high > 0.505 && high < 0.6, "{low} {high}");
        assert_eq!(compare(&sides, &[], true).unwrap().len(), 3);
    }

    #[test]
    fn figures_are_named_divided_and_missed_by_name() {
        let sides = [side("a", &[100.0]), side("b", &[50.0])];
        let found = compare(&sides, &["pgsteal".into(), "pgsteal/pgscan".into()], false).unwrap();
        assert_eq!((found[0].mean, found[1].mean), (25.0, 0.5));
        let message = compare(&sides, &["pgscam".into()], false).unwrap_err().to_string();
        assert!(message.starts_with("--metric pgscam: a has no such figure"), "{message}");
    }
}
