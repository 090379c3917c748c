//! Runs that are added up, and are one column of a comparison: those of a variant.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;

use super::{FILE, Phase, Profile};
use crate::record::Record;
use crate::store;
use mglru_error::Error;

/// Sums up the runs of a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Names the side.
    pub name: String,
    /// Holds the release of its kernel.
    pub kernel: String,
    /// Counts the runs that are added up.
    pub runs: u64,
    /// Counts pages that were reclaimed.
    pub reclaimed: u64,
    /// Counts pages that reclaim scanned.
    pub scanned: u64,
    /// Counts operations of the workload; 0 for one phase of it.
    pub operations: u64,
    /// Counts instructions of programs.
    pub user: u64,
    /// Counts instructions of the kernel.
    pub system: u64,
    /// Counts the kernel's instructions, by function.
    #[serde(skip)]
    pub functions: BTreeMap<String, u64>,
}

impl Side {
    fn add(&mut self, phase: &Phase) {
        self.reclaimed += phase.reclaimed;
        self.scanned += phase.scanned;
        self.user += phase.user;
        self.system += phase.system;
        for (name, count) in &phase.functions {
            *self.functions.entry(name.clone()).or_default() += count;
        }
    }
}

/// Reads the profiles of a run folder, a side for each variant (and point of a sweep), in the order
/// of their records. `phase` names what is counted; none: what the records measure.
///
/// # Errors
/// Names the folder or file that is no such thing, or the phase that is not there.
pub fn sides(dir: &Path, phase: Option<&str>) -> Result<Vec<Side>, Error> {
    let mut sides: IndexMap<String, Side> = IndexMap::new();
    for record in store::load(dir)? {
        let profile = read(dir, &record)?;
        let name = format!("{} {}", record.variant, record.point()).trim_end().to_string();
        let side = sides.entry(name.clone()).or_default();
        (side.name, side.kernel) = (name, profile.kernel.clone());
        side.runs += 1;
        side.operations += if phase.is_none() { record.metrics.ops } else { 0 };
        chosen(&profile, phase)?.into_iter().for_each(|phase| side.add(phase));
    }
    Ok(sides.into_values().collect())
}

fn read(dir: &Path, record: &Record) -> Result<Profile, Error> {
    let file = store::files(dir, &record.run_id()).with_extension(FILE);
    let text = fs::read_to_string(&file).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::Request(format!(
            "{}: {} seed {} has no profile; run it with --profile",
            dir.display(),
            record.variant,
            record.seed
        )),
        _ => Error::io(&file, e),
    })?;
    let problem = |e| Error::Request(format!("{}: no profile: {e}", file.display()));
    serde_json::from_str(&text).map_err(problem)
}

fn chosen<'a>(profile: &'a Profile, phase: Option<&str>) -> Result<Vec<&'a Phase>, Error> {
    let wanted = |one: &&Phase| phase.map_or(one.measured, |name| one.name == name);
    let found: Vec<&Phase> = profile.phases.iter().filter(wanted).collect();
    match (phase, found.is_empty()) {
        (Some(name), true) => {
            let names = profile.phases.iter().map(|one| one.name.as_str());
            let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
            let has = if names.is_empty() { "none".to_string() } else { names.join(", ") };
            Err(Error::Request(format!("--phase {name}: the run marks no such phase ({has})")))
        }
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    fn phase(name: &str, measured: bool, n: u64) -> Phase {
        let functions = IndexMap::from([("f".to_string(), n)]);
        Phase {
            name: name.into(),
            measured,
            reclaimed: 2,
            system: n,
            functions,
            ..Phase::default()
        }
    }

    fn folder(records: &[Record], profiled: usize) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let lines: String = records.iter().map(Record::line).collect();
        fs::write(dir.path().join("records.jsonl"), lines).unwrap();
        fs::create_dir(dir.path().join("runs")).unwrap();
        for record in &records[..profiled] {
            let id = record.run_id();
            let phases = vec![phase("", false, 100), phase("run", true, 10 * record.seed)];
            let text = serde_json::to_string(&Profile { kernel: "k".into(), phases }).unwrap();
            fs::write(dir.path().join("runs").join(format!("{id}.{FILE}")), text).unwrap();
        }
        dir
    }

    #[test]
    fn seeds_of_a_variant_are_added_up() {
        let records = [example("b", 1, 1.0), example("b", 2, 1.0), example("a", 1, 1.0)];
        let dir = folder(&records, 3);
        let found = sides(dir.path(), None).unwrap();
        let figures = |side: &Side| (side.name.clone(), side.runs, side.functions["f"]);
        assert_eq!(
            found.iter().map(figures).collect::<Vec<_>>(),
            [("b".into(), 2, 30), ("a".into(), 1, 10)]
        );
        assert_eq!((found[0].reclaimed, found[0].system), (4, 30));
        let error = sides(dir.path(), Some("x")).unwrap_err().to_string();
        assert_eq!(error, "--phase x: the run marks no such phase (run)");
    }

    #[test]
    fn a_run_without_profile_is_named() {
        let dir = folder(&[example("b", 1, 1.0), example("a", 7, 1.0)], 1);
        let error = sides(dir.path(), None).unwrap_err().to_string();
        assert!(error.ends_with(": a seed 7 has no profile; run it with --profile"), "{error}");
        let gone = sides(Path::new("no/such"), None).unwrap_err().to_string();
        assert!(
            gone.starts_with("no/such/records.jsonl: ") || gone.starts_with("no/such: "),
            "{gone}"
        );
    }
}
