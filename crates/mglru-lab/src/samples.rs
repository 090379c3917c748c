//! Looks at a simulated machine in the course of a run, kept in a file beside its record: curves of
//! the report are drawn from them. Records stay as they are.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use mglru_sim::samples::{COLUMNS, COUNTERS, GroupSample, Sample};
use serde::{Deserialize, Serialize};

use crate::store;
use mglru_error::Error;

/// Version of the file's layout.
const SCHEMA: u32 = 1;

/// Follows the run's name in the file's name.
const ENDING: &str = "samples.json";

/// Holds samples of one run, as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    schema: u32,
    /// Lists the moments, ns of virtual time.
    pub at_ns: Vec<u64>,
    /// Counts operations ended before.
    pub ops: Vec<u64>,
    /// Holds counters of the machine, by name.
    pub counters: IndexMap<String, Vec<u64>>,
    /// Holds groups by path, the root first: at most seventeen.
    pub groups: IndexMap<String, GroupSeries>,
}

/// Holds samples of one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSeries {
    /// Holds sizes in bytes and counters, by name.
    pub columns: IndexMap<String, Vec<u64>>,
    /// Holds generations at each moment, oldest first: sequence number, when it began (ns), pages
    /// of anon, of file.
    pub generations: Vec<Vec<[u64; 4]>>,
    /// Counts at each moment, by type and tier, pages that refaulted, as the controller counts.
    pub refaulted: Vec<[[u64; 4]; 2]>,
    /// Counts the same for pages that left or were spared.
    pub judged: Vec<[[u64; 4]; 2]>,
    /// Holds at each moment, by type, the highest tier that is evicted.
    pub limits: Vec<[u8; 2]>,
}

impl Series {
    /// Creates a series without a look.
    pub fn empty() -> Self {
        Self { schema: SCHEMA, ..Self::default() }
    }

    /// Turns looks into columns; `groups` names the groups, the root first.
    pub fn new(samples: &[Sample], groups: &[String]) -> Self {
        let column = |at: usize| samples.iter().map(|s| s.counters[at]).collect();
        let counters = COUNTERS.iter().enumerate().map(|(at, name)| (name.to_string(), column(at)));
        let group = |at: usize| samples.iter().filter_map(move |s| s.groups.get(at));
        let sampled = samples.first().map_or(0, |s| s.groups.len());
        let named = groups.iter().take(sampled).enumerate();
        Self {
            schema: SCHEMA,
            at_ns: samples.iter().map(|s| s.at).collect(),
            ops: samples.iter().map(|s| s.ops).collect(),
            counters: counters.collect(),
            groups: named.map(|(at, name)| (name.clone(), GroupSeries::new(group(at)))).collect(),
        }
    }

    /// Writes the file of the run whose own files begin with `files`.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn write(&self, files: &Path) -> Result<(), Error> {
        let path = path(files);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        }
        let text = serde_json::to_string(self).expect("keys are strings");
        store::replace(&path, &text)
    }

    /// Reads the file of a run. `None`: it has none.
    ///
    /// # Errors
    /// Names a file that cannot be read or holds something else.
    pub fn read(files: &Path) -> Result<Option<Self>, Error> {
        let path = path(files);
        let text = match std::fs::read_to_string(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|e| Error::io(&path, e))?,
        };
        let bad = |why: String| Error::Request(format!("{}: {why}", path.display()));
        let series: Self = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
        match series.schema {
            SCHEMA => Ok(Some(series)),
            other => Err(bad(format!("schema {other}, this program reads {SCHEMA}"))),
        }
    }
}

impl GroupSeries {
    fn new<'a>(looks: impl Iterator<Item = &'a GroupSample> + Clone) -> Self {
        let column = |at: usize| looks.clone().map(|g| g.columns[at]).collect();
        let columns = COLUMNS.iter().enumerate().map(|(at, name)| (name.to_string(), column(at)));
        let rows = |g: &GroupSample| {
            let row = g.generations.iter().map(|x| [x.seq, x.born, x.pages[0], x.pages[1]]);
            row.collect()
        };
        Self {
            columns: columns.collect(),
            generations: looks.clone().map(rows).collect(),
            refaulted: looks.clone().map(|g| g.refaulted).collect(),
            judged: looks.clone().map(|g| g.judged).collect(),
            limits: looks.clone().map(|g| g.limits).collect(),
        }
    }
}

fn path(files: &Path) -> PathBuf {
    let name = files.file_name().unwrap_or_default().to_string_lossy();
    files.with_file_name(format!("{name}.{ENDING}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at: u64) -> Sample {
        let group = GroupSample {
            columns: [at; COLUMNS.len()],
            generations: Vec::new(),
            refaulted: [[1; 4]; 2],
            judged: [[2; 4]; 2],
            limits: [0, 3],
        };
        Sample { at, ops: 2 * at, counters: [at; COUNTERS.len()], groups: vec![group] }
    }

    #[test]
    fn what_is_written_is_read_and_a_run_without_a_file_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("runs/t-1.5");
        assert_eq!(Series::read(&files).unwrap(), None);
        let series = Series::new(&[look(1), look(5)], &["/".to_string(), "/late".to_string()]);
        assert_eq!((series.ops[1], series.counters["pgpgin"][1], series.groups.len()), (10, 5, 1));
        series.write(&files).unwrap();
        assert_eq!(Series::read(&files).unwrap(), Some(series));
    }

    #[test]
    fn another_file_is_named_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("t");
        std::fs::write(path(&files), "{\"schema\":1}").unwrap();
        let error = Series::read(&files).unwrap_err().to_string();
        assert!(error.contains("t.samples.json: missing field"), "{error}");
    }
}
