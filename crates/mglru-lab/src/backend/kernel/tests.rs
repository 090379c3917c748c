use toml::Table;

use super::*;
use crate::limits;

fn prepare(machine: &str, workload: &str, kernel: &str, variant: &str) -> String {
    let table = |text: &str| text.parse::<Table>().unwrap();
    let limits = limits::parse(&table("\"memory.max\" = \"64MiB\""), 1.0).unwrap();
    let sections = Sections {
        machine: table(machine),
        groups: [("/job".to_string(), limits)].into_iter().collect(),
        workload: table(workload),
        reclaim: Table::new(),
        kernel: table(kernel),
        scale: 1.0,
    };
    let prepared = Kernel.prepare(&sections, &Variant::parse(variant).unwrap());
    prepared.map(|_| String::new()).unwrap_or_else(|e| e.to_string())
}

const JOB: &str = "kind = \"job\"\ntext = \"region kind=anon pages=2\\n\
    stream region=0 gen=seq n=2 base=0 wr=0\\nphase p ops=1 mix=0:1\"";

#[test]
fn a_missing_kernel_is_named_before_anything_runs() {
    let error = prepare("", JOB, "image = \"no/bzImage\"", "k6.12");
    assert_eq!(error, "backend kernel: no/bzImage: no kernel there");
    let error = prepare("", JOB, "", "k6.12+image=no/other");
    assert_eq!(error, "backend kernel: no/other: no kernel there");
}

#[test]
fn a_program_that_is_not_here_is_named_before_anything_runs() {
    let error = prepare("", JOB, "programs = [\"no-such\"]", "k6.12");
    let kernel = "backend kernel: no kernel";
    assert!(
        error.starts_with("kernel.programs: no-such is not installed") || error.starts_with(kernel)
    );
}
