//! `mglru run --trace-events`: trace events of the model in a file.

use std::collections::BTreeMap;

use crate::workdir::Workdir;

/// Events of a file by name, and the sum of one field of one event.
fn counts(text: &str) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(": ").nth(1).unwrap_or_else(|| panic!("no event: {line}"));
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn sum(text: &str, name: &str, field: &str) -> u64 {
    let name = format!(": {name}: ");
    let of = |line: &str| {
        let mut fields = line.split_once(&name)?.1.split(' ');
        fields.find_map(|word| word.strip_prefix(field)?.strip_prefix('=')?.parse::<u64>().ok())
    };
    text.lines().filter_map(of).sum()
}

/// A line's words, six on a line.
fn wrapped(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let rows = words.chunks(6).map(|row| row.join(" ")).enumerate();
    rows.map(|(nth, row)| if nth == 0 { row } else { format!("  {row}") }).collect()
}

fn counter(workdir: &Workdir, out: &str, name: &str) -> u64 {
    let record: serde_json::Value =
        serde_json::from_str(workdir.read(&format!("{out}/records.jsonl")).lines().next().unwrap())
            .unwrap();
    record["counters"][name].as_u64().unwrap()
}

#[test]
fn a_small_run_prints_its_events_as_ftrace_does() {
    let workdir = Workdir::new();
    let run = ["run", "small.toml", "--variant", "after", "--out"];
    workdir.out(&[&run[..], &["a"]].concat(), 0);
    let stdout = workdir.out(&[&run[..], &["b", "--trace-events", "t.txt"]].concat(), 0);
    assert!(stdout.ends_with("\ntrace events: t.txt\n"), "{stdout}");
    assert_eq!(workdir.read("a/records.jsonl"), workdir.read("b/records.jsonl"));
    let text = workdir.read("t.txt");
    assert!(text.starts_with("# tracer: nop\n#\n"));
    let lines = text.lines().skip_while(|line| !line.contains("memcg_reclaim_begin"));
    let first: Vec<String> = lines.take(6).flat_map(wrapped).collect();
    insta::assert_snapshot!(first.join("\n"), @r"
    touch-1000 [000] ..... 0.040094: mm_vmscan_memcg_reclaim_begin: order=0
      gfp_flags=GFP_HIGHUSER_MOVABLE
    touch-1000 [000] ..... 0.040094: mm_vmscan_lru_isolate: classzone=3
      order=0 nr_requested=1 nr_scanned=1 nr_skipped=0 nr_taken=0 lru=inactive_file
    touch-1000 [000] ..... 0.040094: mm_vmscan_lru_isolate: classzone=3
      order=0 nr_requested=2 nr_scanned=2 nr_skipped=0 nr_taken=0 lru=inactive_file
    touch-1000 [000] ..... 0.040095: mm_vmscan_lru_isolate: classzone=3
      order=0 nr_requested=4 nr_scanned=4 nr_skipped=0 nr_taken=2 lru=inactive_file
    touch-1000 [000] ..... 0.040095: mm_filemap_delete_from_page_cache: dev
      259:0 ino c pfn=0x4f ofs=3235840 order=0
    touch-1000 [000] ..... 0.040095: mm_filemap_delete_from_page_cache: dev
      259:0 ino c pfn=0x50 ofs=8994816 order=0
    ");
    let stolen = ["kswapd", "direct"].map(|by| counter(&workdir, "a", &format!("pgsteal_{by}")));
    let shrunk = sum(&text, "mm_vmscan_lru_shrink_inactive", "nr_reclaimed");
    assert_eq!(shrunk, stolen.iter().sum::<u64>());
    let counts = counts(&text);
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    assert_eq!(count("mm_vmscan_memcg_reclaim_begin"), counter(&workdir, "a", "reclaim_calls"));
    assert_eq!(count("mglru_new_generation"), counter(&workdir, "a", "aging_passes"));
}

/// Runs that have their records are made again for their events, and the records stay.
#[test]
fn each_run_has_a_file_and_records_stay() {
    let workdir = Workdir::new();
    let run = ["run", "small.toml", "--out", "a"];
    workdir.out(&run, 0);
    let records = workdir.read("a/records.jsonl");
    let output = workdir.run(&[&run[..], &["--trace-events", "t.pftrace"]].concat());
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(workdir.read("a/records.jsonl"), records);
    for variant in ["before", "after"] {
        let file = format!("t-sim-{variant}-1.pftrace");
        assert!(output.contains(&format!("trace events: {file}\n")), "{output}");
        let trace = std::fs::read(workdir.path().join(file)).unwrap();
        assert!(trace.len() > 10_000 && trace[0] == 0x0a);
    }
}

#[test]
fn what_cannot_be_had_is_refused_in_one_line() {
    let workdir = Workdir::new();
    let refused = |plan: &str, more: &[&str]| {
        let message = workdir.refused(&[&["run", plan, "--trace-events"][..], more].concat());
        assert_eq!(message.lines().count(), 1, "{message}");
        message
    };
    let message = refused("small.toml", &["no/t.txt", "--variant", "after", "--out", "o"]);
    assert!(message.contains("no/t.txt: No such file"), "{message}");
    let message = refused("small.toml", &["/dev/full", "--variant", "after", "--out", "o"]);
    assert!(message.contains("--trace-events: /dev/full: No space left on device"), "{message}");
    let message = refused("mock.toml", &["t.txt"]);
    assert!(message.contains("no run of the backend mock has any"), "{message}");
    assert!(refused("all", &["t.txt"]).contains("--trace-events: name one plan"));
}

/// The page that a task reads first comes for it; what there is not is named.
#[test]
fn the_life_of_a_page_is_explained() {
    let workdir = Workdir::new();
    let run = ["explain", "small.toml", "--variant", "after"];
    let explain = |more: &[&str]| workdir.out(&[&run[..], more].concat(), 0);
    let text = explain(&["file0:0"]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("after seed 1: page file0:0"), "{text}");
    let first = lines.next().unwrap();
    assert!(first.contains("comes into memory, charged to /touch, generation "), "{text}");
    assert!(text.contains(" a device ") && text.contains("its data is there"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&explain(&["file0:0", "--format", "json"])).unwrap();
    let moments = json[0]["moments"].as_array().unwrap();
    assert_eq!(moments.len(), text.lines().count() - 1);
    assert_eq!(moments[0]["event"], "came");
    let refused = |page: &str| workdir.refused(&[&run[..], &[page]].concat());
    let message = refused("log:1");
    assert!(
        message.contains("after seed 1: the workload has no `log` (it has: file0 ("),
        "{message}"
    );
    assert!(refused("file0").contains("want FILE:PAGE"));
    let message = workdir.refused(&["explain", "mock.toml", "file0:1"]);
    assert!(message.contains("only the model knows the life of a page"), "{message}");
}
