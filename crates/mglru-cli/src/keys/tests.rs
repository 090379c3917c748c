use super::*;
use mglru_lab::backend;
use mglru_lab::plan::Plan;
use mglru_lab::spec::{Experiment, Selection};

/// A plan that is whole but for what a test adds to it.
const PLAN: &str = "name = \"t\"\ntitle = \"t\"\nvariants = [\"classic\"]\n";

/// Keys that the types reading a section say they know, asked by one that they do not.
fn known(section: &str) -> Vec<String> {
    let list = ["published", "expect", "neutral", "indicator", "bound"].contains(&section);
    let table = match section {
        "a plan's own keys" => "qqqqqq = 1\n".to_string(),
        _ if list => format!("[[{section}]]\nqqqqqq = 1\n"),
        "groups" => "[groups.\"/a\"]\nqqqqqq = 1\n".to_string(),
        _ if SINGLE.contains(&section) => format!("[{section}]\nqqqqqq = 1\n"),
        kind => format!("[workload]\nkind = \"{kind}\"\nqqqqqq = 1\n"),
    };
    let backend = if ["kernel", "program"].contains(&section) { "kernel" } else { "sim" };
    let table = match table.contains("[workload]") {
        true => table,
        false => table + "[workload]\nkind = \"touch\"\n",
    };
    let plan = Plan::parse("t", &(PLAN.to_string() + &table), &[]);
    let backend = backend::by_name(backend).unwrap();
    let experiment = plan.and_then(|p| Experiment::new(p, &Selection::default(), backend));
    let error = match experiment {
        Ok(_) => panic!("{section}: an unknown key is taken"),
        Err(error) => error.to_string(),
    };
    let names = error.split_once("(known: ").and_then(|(_, rest)| rest.split_once([')', ';']));
    let (names, _) = names.unwrap_or_else(|| panic!("{section}: {error}"));
    names.split(", ").map(str::to_string).collect()
}

const SINGLE: [&str; 10] = [
    "quick",
    "all",
    "watch",
    "machine",
    "machine.zones",
    "machine.device",
    "machine.swap",
    "machine.dirty",
    "machine.costs",
    "kernel",
];

/// Tables of a plan; the page has sections for what is in them.
const TABLES: [&str; 12] = [
    "bound",
    "control",
    "expect",
    "groups",
    "indicator",
    "kernel",
    "machine",
    "neutral",
    "on",
    "published",
    "reclaim",
    "workload",
];

/// Keys that the section above explains, because they choose the defaults of all others.
const ABOVE: [(&str, &str); 1] = [("machine.device", "preset")];

/// Sections that no type alone reads: a part's keys stand beside those of its kind, and statements
/// of jobs are no keys.
const NO_TYPE: [&str; 2] = ["workload.parts.NAME", "job-language"];

#[test]
fn every_kind_and_every_statement_is_listed() {
    let text = run(&["workload".to_string()], false).unwrap().0;
    for (kind, _) in mglru_workload::WorkloadSpec::kinds() {
        assert!(text.contains(&format!("kind = \"{kind}\"")), "{kind}");
    }
    let text = run(&["job-language".to_string()], false).unwrap().0;
    for (statement, takes, _) in mglru_workload::job::STATEMENTS {
        let row = text.lines().find(|line| line.starts_with(&format!("| {statement} ")));
        assert!(row.is_some_and(|row| row.contains(takes)), "{statement}");
    }
    let text = run(&["workload.parts.NAME".to_string()], false).unwrap().0;
    assert!(mglru_workload::several::Part::KEYS.iter().all(|key| text.contains(key)), "{text}");
}

#[test]
fn the_page_has_the_keys_that_the_types_read() {
    let mut differ = Vec::new();
    for section in sections(PAGE) {
        let name = section.name().to_string();
        if NO_TYPE.contains(&name.as_str()) {
            continue;
        }
        let mut listed: Vec<String> = section.rows.iter().map(|row| row[0].clone()).collect();
        let mut read = known(&name);
        read.retain(|key| key != "kind" || name == "machine.swap");
        read.retain(|key| !ABOVE.contains(&(&name, key)));
        if name == "a plan's own keys" {
            read.retain(|key| !TABLES.contains(&key.as_str()));
        }
        listed.sort();
        read.sort();
        if listed != read {
            differ.push(format!("{name}: the page has {listed:?}, the types read {read:?}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn one_section_is_a_table_with_type_unit_and_default() {
    let (text, status) = run(&["machine.costs".to_string()], false).unwrap();
    assert_eq!(status, 0);
    let line = text.lines().find(|line| line.contains("scan_ns")).unwrap();
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    assert_eq!(cells[1..5], ["scan_ns", "whole number", "ns", "80"]);
    assert!(text.starts_with("[machine.costs]\n") && !text.contains("[machine.swap]"), "{text}");
}

#[test]
fn a_section_that_is_none_is_refused_by_name() {
    let error = run(&["machine.cots".to_string()], false).unwrap_err().to_string();
    assert!(error.starts_with("keys machine.cots: no section of a plan (did you mean"), "{error}");
}

#[test]
fn help_keys_is_a_list() {
    let args = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
    assert_eq!(asked(args("mglru help keys fio")), args("mglru list keys fio"));
    assert_eq!(asked(args("mglru help run")), args("mglru help run"));
}
