use mglru_sim::{Live, MachineSpec};
use mglru_workload::WorkloadSpec;

use super::*;
use crate::policy;
use crate::variant::Variant;

fn refused(text: &str) -> String {
    text.parse::<Break>().unwrap_err()
}

#[test]
fn a_condition_is_read_and_written_the_same() {
    for text in ["oom_kill>0", "pgscan_direct>=1000", "/a/b:file_dirty<=4096", "invariants"] {
        assert_eq!(text.parse::<Break>().unwrap().to_string(), text);
    }
    assert_eq!(" nr_dirty == 7 ".parse::<Break>(), "nr_dirty=7".parse());
    assert_eq!("/a: anon < 1".parse::<Break>().unwrap().to_string(), "/a:anon<1");
}

#[test]
fn a_mistake_is_named() {
    for (text, problem) in [
        ("oom_kill", "want COUNTER>N"),
        ("oom_kil>0", "oom_kil: no such counter (did you mean oom_kill"),
        ("/a:pgpgin>0", "pgpgin: no such counter"),
        ("oom_kill>-1", "\"-1\" is no whole number"),
        ("oom_kill>1GiB", "\"1GiB\" is no whole number"),
        ("", "want COUNTER>N"),
        (">5", ": no such counter"),
    ] {
        assert!(refused(text).contains(problem), "{text}: {}", refused(text));
    }
}

fn live() -> Live {
    let text = "kind = \"fio\"\njobs = 1\nblocks = 4096\nengine = \"mmap-random\"\n\
                distribution = \"uniform\"\nramp_operations = 0\noperations = 20000\n\
                group = \"/fio\"";
    let spec: WorkloadSpec = toml::from_str(text).unwrap();
    let machine: MachineSpec =
        toml::from_str("memory = \"256MiB\"\n[groups.\"/fio\"]\n\"memory.max\" = \"4MiB\"")
            .unwrap();
    let config = policy::config(&toml::Table::new(), &Variant::named("after")).unwrap();
    Live::new(&machine, config, spec.build(1, 1.0).unwrap(), 1).unwrap()
}

#[test]
fn a_condition_stops_where_it_begins_to_hold() {
    let mut live = live();
    let stop: Break = "/fio:pgsteal_file>=100".parse().unwrap();
    while stop.reached(&live).unwrap().is_none() {
        assert!(live.turn().unwrap(), "it is reached before the end");
    }
    let why = stop.reached(&live).unwrap().unwrap();
    assert!(why.starts_with("/fio:pgsteal_file>=100: pgsteal_file is 1"), "{why}");
    assert_eq!(Break::Invariants.reached(&live), Ok(None));
    let missing: Break = "/x:anon>0".parse().unwrap();
    let why = missing.reached(&live).unwrap_err();
    assert_eq!(why, "--break /x: the workload has no such group (it has: /, /fio)");
}
