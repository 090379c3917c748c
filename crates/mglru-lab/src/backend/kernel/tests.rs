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
fn a_guest_larger_than_the_host_is_refused() {
    let error = fits(1 << 60).unwrap_err();
    assert!(error.starts_with("a guest of 1048576TiB does not fit"), "{error}");
    assert_eq!(fits(1 << 20), Ok(()));
}

#[test]
fn jobs_travel_as_text_and_traces_as_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.job");
    std::fs::write(&path, "seed 1\n").unwrap();
    let table = |kind: &str| {
        let text = format!("kind = \"{kind}\"\npath = {:?}\ncache = 5", path.display().to_string());
        text.parse::<Table>().unwrap()
    };
    let (job, packed) = carried(&table("job")).unwrap();
    assert_eq!((word(&job, "text"), packed.len()), (Some("seed 1\n"), 0));
    assert!(!job.contains_key("path") && !job.contains_key("cache"));
    let (trace, packed) = carried(&table("trace")).unwrap();
    assert_eq!(word(&trace, "path"), Some("/traces/a.job"));
    assert_eq!(packed, [(path.clone(), "/traces/a.job".to_string())]);
}
