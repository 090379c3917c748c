//! What of a workload's description makes sense in the guest: texts in place of files, traces where
//! they are packed, what jobs say besides their operations.

use std::path::PathBuf;

use mglru_workload::Layout;
use mglru_workload::op::Knob;
use toml::{Table, Value};

use crate::backend::word;
use crate::backend::workload::Source;
use mglru_error::KeyError;

/// Where a trace lies in the guest.
const TRACES: &str = "/traces";

/// Holds the statements of a job that are no operations.
#[derive(Default)]
pub(super) struct JobExtras {
    pub(super) settings: Vec<(String, Knob, u64)>,
    pub(super) pin: Option<usize>,
    pub(super) tlb_flush_every: u64,
}

/// The workload's table as it makes sense in the guest: a job's text instead of its file, a trace
/// where it is packed.
pub(super) fn carried(table: &Table) -> Result<(Table, Vec<(PathBuf, String)>), KeyError> {
    let mut table = table.clone();
    table.remove("cache");
    if let Some(Value::Table(parts)) = table.get_mut("parts") {
        let mut packed = Vec::new();
        for part in parts.iter_mut().filter_map(|(_, part)| part.as_table_mut()) {
            let (own, files) = carried(part)?;
            *part = own;
            packed.extend(files);
        }
        return Ok((table, packed));
    }
    let Some(path) = word(&table, "path").map(PathBuf::from) else {
        return Ok((table, Vec::new()));
    };
    if word(&table, "kind") == Some("job") {
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|e| KeyError::value("workload.path", path.display(), e))?;
        table.remove("path");
        table.insert("text".to_string(), Value::String(text));
        return Ok((table, Vec::new()));
    }
    // The name is kept: it may name the format.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let place = format!("{TRACES}/{name}");
    table.insert("path".to_string(), Value::String(place.clone()));
    Ok((table, vec![(path, place)]))
}

pub(super) fn extras(source: &Source) -> Result<JobExtras, KeyError> {
    let settings = source.settings()?;
    let jobs = source.jobs()?;
    let [job] = &jobs[..] else {
        let bound = jobs.iter().any(|job| job.pin.is_some() || job.tlb_flush_every.is_some());
        return match bound {
            true => {
                Err(KeyError::key("workload", "pin and tlbflush are for a job that runs alone"))
            }
            false => Ok(JobExtras { settings, ..JobExtras::default() }),
        };
    };
    let (pin, tlb_flush_every) =
        (job.pin.map(|cpu| cpu as usize), job.tlb_flush_every.unwrap_or(0));
    Ok(JobExtras { pin, tlb_flush_every, settings })
}

/// Tasks run in groups that have none below them, or in the root: a rule of cgroup v2.
///
/// # Errors
/// Names a group that has both.
pub(super) fn check_leaves(layout: &Layout) -> Result<(), KeyError> {
    let groups = layout.tasks.iter().filter_map(|task| task.group);
    let with_tasks = groups.map(|group| &layout.groups[group as usize].name);
    let is_above =
        |name: &str| layout.groups.iter().any(|other| other.name.starts_with(&format!("{name}/")));
    match with_tasks.into_iter().find(|name| is_above(name)) {
        None => Ok(()),
        Some(name) => {
            let problem = "has tasks and groups below it, which cgroup v2 does not allow";
            Err(KeyError::key(format!("groups.{name}"), problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_workload::op::{GroupSpec, TaskSpec};

    #[test]
    fn jobs_travel_as_text_and_traces_as_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.job");
        std::fs::write(&path, "seed 1\n").unwrap();
        let table = |kind: &str| {
            let text =
                format!("kind = \"{kind}\"\npath = {:?}\ncache = 5", path.display().to_string());
            text.parse::<Table>().unwrap()
        };
        let (job, packed) = carried(&table("job")).unwrap();
        assert_eq!((word(&job, "text"), packed.len()), (Some("seed 1\n"), 0));
        assert!(!job.contains_key("path") && !job.contains_key("cache"));
        let (trace, packed) = carried(&table("trace")).unwrap();
        assert_eq!(word(&trace, "path"), Some("/traces/a.job"));
        assert_eq!(packed, [(path.clone(), "/traces/a.job".to_string())]);
    }

    #[test]
    fn parts_travel_each_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.job");
        std::fs::write(&path, "seed 1\n").unwrap();
        let text = format!(
            "kind = \"several\"\n[parts.a]\nkind = \"job\"\npath = {path:?}\n[parts.b]\n\
             kind = \"trace\"\npath = {path:?}\n"
        );
        let (table, packed) = carried(&text.parse().unwrap()).unwrap();
        let part = |name: &str| table["parts"][name].as_table().unwrap();
        assert_eq!(word(part("a"), "text"), Some("seed 1\n"));
        assert_eq!(word(part("b"), "path"), Some("/traces/a.job"));
        assert_eq!(packed, [(path.clone(), "/traces/a.job".to_string())]);
    }

    #[test]
    fn a_group_has_tasks_or_groups_below_it() {
        let group = |name: &str| GroupSpec { name: name.to_string(), parent: None };
        let task = |group| TaskSpec { mm: 0, group, node: None, background: false };
        let groups = vec![group("/a"), group("/a/b"), group("/ab")];
        let layout =
            |of| Layout { groups: groups.clone(), tasks: vec![task(of)], ..Layout::default() };
        assert_eq!(
            [None, Some(1), Some(2)].map(|of| check_leaves(&layout(of))),
            [Ok(()), Ok(()), Ok(())]
        );
        let error = check_leaves(&layout(Some(0))).unwrap_err().to_string();
        assert_eq!(
            error,
            "groups./a: has tasks and groups below it, which cgroup v2 does not allow"
        );
    }
}
