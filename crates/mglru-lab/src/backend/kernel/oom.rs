//! Reads the kernel's messages about memory that ran out: a killed process, or a machine that
//! stopped because there was none to kill. Both are results of a run. The first process of the
//! guest, which reports, is never killed: no kernel takes process 1.

use mglru_guest::report::Ended;
use mglru_workload::Layout;
use serde_json::{Value as Json, json};

use super::order;

/// Text between the cause and the process in the message of a kill.
const KILLED: &str = ": Killed process ";
/// Its cause, if memory ran out anywhere.
const CAUSE: &str = "ut of memory";
/// Its cause, if a group's limit was reached.
const OF_GROUP: &str = "Memory cgroup out of memory";
/// Words of a panic that is about memory.
const STARVED: [&str; 3] = ["deadlocked on memory", "no killable processes", "Out of memory"];

/// Describes a process that the kernel killed for want of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    /// Holds the name of the process, as the kernel knows it.
    pub process: String,
    /// Holds its number in the guest.
    pub pid: u32,
    /// Says that a group was out of memory, not the machine.
    pub in_group: bool,
}

/// Reads the kills off the kernel's messages, in their order.
pub fn killed(messages: &str) -> Vec<Killed> {
    messages.lines().filter_map(kill).collect()
}

/// Reads `…Out of memory: Killed process 61 (init) total-vm:…`.
fn kill(line: &str) -> Option<Killed> {
    let (cause, rest) = line.split_once(KILLED).filter(|(cause, _)| cause.contains(CAUSE))?;
    let (pid, rest) = rest.split_once(" (")?;
    let end = rest.find(") total-vm").or_else(|| rest.rfind(')'))?;
    let in_group = cause.contains(OF_GROUP);
    Some(Killed { process: rest[..end].to_string(), pid: pid.parse().ok()?, in_group })
}

/// Tells whether a panic is for want of memory.
pub fn is_starved(panic: &str) -> bool {
    STARVED.iter().any(|phrase| panic.contains(phrase))
}

/// Writes the kills as a record holds them, with the group of a process of the workload.
pub fn as_json(killed: &[Killed], workers: &[Ended], layout: &Layout) -> Json {
    let plan = order::workers(layout);
    let kill = |killed: &Killed| {
        let whose = workers.iter().position(|ended| ended.pid == Some(killed.pid));
        let worker = whose.and_then(|at| plan.get(at));
        let of = if killed.in_group { "group" } else { "machine" };
        let mut line = json!({ "process": killed.process, "pid": killed.pid, "out_of_memory": of });
        if let Some(worker) = worker {
            line["group"] = worker.group.clone().into();
            line["tasks"] = worker.tasks.len().into();
        }
        line
    };
    killed.iter().map(kill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_workload::op::{GroupSpec, TaskSpec};

    const MESSAGES: &str = "\
[   12.1] init invoked oom-killer: gfp_mask=0x140dca, order=0, oom_score_adj=0
[   12.2] Out of memory: Killed process 61 (init) total-vm:530000kB, anon-rss:190000kB
[   13.0] Memory cgroup out of memory: Killed process 70 (my (odd) name) total-vm:1kB
";

    #[test]
    fn kills_are_read_with_name_number_and_cause() {
        let kill = |process: &str, pid, in_group| Killed { process: process.into(), pid, in_group };
        assert_eq!(killed(MESSAGES), [kill("init", 61, false), kill("my (odd) name", 70, true)]);
        assert!(killed("no Out of memory: Killed process at all (x)").is_empty());
    }

    #[test]
    fn panics_about_memory_are_distinguished_from_others() {
        let text = "Kernel panic - not syncing: ";
        assert!(is_starved(&format!("{text}System is deadlocked on memory")));
        assert!(is_starved(&format!("{text}Out of memory: compulsory panic_on_oom is enabled")));
        assert!(!is_starved(&format!("{text}No working init found.")));
    }

    #[test]
    fn a_killed_worker_is_named_by_its_group() {
        let task = TaskSpec { mm: 0, group: Some(0), node: None, background: false };
        let layout = Layout {
            groups: vec![GroupSpec { name: "/a".to_string(), parent: None }],
            tasks: vec![task.clone(), task],
            ..Layout::default()
        };
        let ended = Ended { signal: Some(9), pid: Some(61), ..Ended::default() };
        let kills = as_json(&killed(MESSAGES), &[ended], &layout);
        assert_eq!(
            kills[0],
            json!({ "process": "init", "pid": 61, "out_of_memory": "machine", "group": "/a",
                    "tasks": 2 })
        );
        assert_eq!(
            (&kills[1]["out_of_memory"], &kills[1]["group"]),
            (&"group".into(), &Json::Null)
        );
    }
}
