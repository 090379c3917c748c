//! `mglru capture` and `mglru compare` of captures: what people post, right or refused by its line.

use std::fs;

use crate::workdir::Workdir;

const VMSTAT: &str = "nr_free_pages 1000\nnr_dirty 7\npgpgin 4000\npgscan_direct 120\noom_kill 0\n";
const STAT: &str = "anon 4096\nfile 8192\nfile_mapped 0\npgscan 9\nworkingset_refault_file 3\n";
const PRESSURE: &str = "some avg10=0.12 avg60=0.00 avg300=0.00 total=7700\n\
    full avg10=0.00 avg60=0.00 avg300=0.00 total=120\n";
const LRU_GEN: &str = concat!(
    "memcg     5 /job\n node     0\n          8       6124          1           2 \n",
    "                     0        10r        20e         0p         3r         4e         5p\n",
    "          9       5100         30         400 \n",
);

fn write(workdir: &Workdir, name: &str, text: &str) {
    fs::write(workdir.path().join(name), text).unwrap();
}

#[test]
fn repetitions_give_intervals_in_each_form() {
    let workdir = Workdir::new();
    for (name, scanned) in [("a1", 1000), ("a2", 1010), ("a3", 990), ("b1", 500), ("b2", 504)] {
        let text = VMSTAT.replace("pgscan_direct 120", &format!("pgscan_direct {scanned}"));
        write(&workdir, name, &text);
    }
    let of = |form: &str| workdir.out(&["compare", "a1,a2,a3", "b1,b2", "--format", form], 0);
    assert!(of("table").contains("| pgscan_direct | A a1…a3 | B b1…b2 |"), "{}", of("table"));
    assert!(of("letter").contains("pgscan_direct                  1000        502   -49.8 % ["));
    assert!(of("mmtests").contains("*  49.80%*"), "{}", of("mmtests"));
    let json: serde_json::Value = serde_json::from_str(&of("json")).unwrap();
    let found = json["comparisons"].as_array().unwrap();
    assert_eq!((found.len(), found[0]["mean"].as_f64()), (1, Some(502.0)));
    let all = workdir.out(&["compare", "a1,a2,a3", "b1,b2", "--all"], 0);
    assert!(all.contains("| nr_dirty "), "{all}");
}

#[test]
fn a_capture_made_by_hand_is_read_as_one_of_ours() {
    let workdir = Workdir::new();
    let sample = |at: u32, scanned: u32| {
        let vmstat = VMSTAT.replace("pgscan_direct 120", &format!("pgscan_direct {scanned}"));
        format!("time: {at}\n==> /proc/vmstat <==\n{vmstat}\n==> /g/memory.stat <==\n{STAT}\n")
    };
    write(&workdir, "hand", &(sample(10, 100) + &sample(12, 160)));
    write(&workdir, "other", &(sample(10, 100) + &sample(14, 220)));
    let found = workdir.out(&["compare", "hand", "other", "--metric", "pgscan_direct/seconds"], 0);
    assert!(found.contains("|        30 |   30 | 1.000 |"), "{found}");
    let args = ["capture", "--out", "ours.capture", "--every", "50ms", "--", "sleep", "0.2"];
    assert_eq!(workdir.run(&args).status.code(), Some(0));
    let found = workdir.out(&["compare", "hand", "ours.capture", "--metric", "seconds"], 0);
    assert!(found.contains("| A hand | B ours ") && found.contains("|         2 | 0."), "{found}");
    let status = workdir.run(&["capture", "--", "sh", "-c", "exit 7"]).status.code();
    assert_eq!(status, Some(7));
}

#[test]
fn what_is_no_capture_is_refused_by_file_and_line() {
    let workdir = Workdir::new();
    write(&workdir, "good", VMSTAT);
    write(&workdir, "bad", "pgpgin 1\nhello world again\n");
    write(&workdir, "stat", STAT);
    write(&workdir, "records.jsonl", "{}\n");
    fs::create_dir(workdir.path().join("empty")).unwrap();
    for (a, b, want) in [
        ("good", "bad", "bad:2: `hello world again` is no counter"),
        ("good", "stat", "good and stat have no counter in common"),
        ("good", "records.jsonl", "good holds captures, records.jsonl records"),
        ("good", "empty", "empty: holds neither capture nor record"),
        ("good,none", "good", "none: No such file or directory (os error 2)"),
    ] {
        assert_eq!(workdir.refused(&["compare", a, b]), format!("mglru: error: {want}\n"));
    }
    let message = workdir.refused(&["capture", "--group", "/none", "--for", "10ms"]);
    assert_eq!(message, "mglru: error: --group /none: no such group of memory\n");
    assert!(workdir.refused(&["capture", "--every", "3x", "--", "true"]).contains("unit `x`"));
}

/// Each mutated file is answered right or refused with one line and status 2, and never panics.
#[test]
fn damaged_captures_are_answered_or_refused() {
    let workdir = Workdir::new();
    let text = [VMSTAT, "\n", PRESSURE, LRU_GEN, "time: 3\n", VMSTAT].concat();
    write(&workdir, "whole", &text);
    let mut random = 0x9e37_79b9_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % below
    };
    for _ in 0..200 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=next(4) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes[at] = next(256) as u8,
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, b"\n \t9-.=\xff"[next(8)]),
                _ => _ = bytes.remove(at),
            }
            bytes.push(b'\n');
        }
        fs::write(workdir.path().join("damaged"), &bytes).unwrap();
        let output = workdir.run(&["compare", "whole", "damaged"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => assert!(stderr.is_empty(), "{stderr}"),
            Some(2) => assert_eq!(stderr.lines().count(), 1, "{stderr}"),
            other => panic!("{other:?}: {stderr}"),
        }
    }
}

#[test]
fn advice_follows_from_a_capture_or_a_trace_and_says_why() {
    let workdir = Workdir::new();
    let sample = |at: u32| {
        format!(
            "time: {at}\n==> memory.current <==\n{}\n==> memory.stat <==\n{STAT}\n\
             ==> memory.pressure <==\n{PRESSURE}\n==> lru_gen <==\n{LRU_GEN}\n",
            64 << 20
        )
    };
    write(&workdir, "job.capture", &(sample(10) + &sample(20)));
    let found = workdir.out(&["advise", "job.capture", "--cold", "5s"], 0);
    assert!(found.contains("memory.high         67096576 (64.0 MiB)"), "{found}");
    assert!(found.contains("memory.reclaim now  12288 (12.0 KiB)"), "{found}");
    let json = workdir.out(&["advise", "job.capture", "--format", "json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["high"].as_u64(), json["current"].as_u64()), (None, Some(64 << 20)));
    write(&workdir, "t.csv", "op,page\nr,1\nr,2\nr,1\nr,2\n");
    let found = workdir.out(&["advise", "t.csv"], 0);
    assert!(
        found.contains("memory.high  8192 (8.0 KiB)") && !found.contains("pressure"),
        "{found}"
    );
    write(&workdir, "machine", "time: 1\npgscan 5\n");
    let message = workdir.refused(&["advise", "machine"]);
    assert!(
        message.contains("machine: no memory.current in it: capture with --group"),
        "{message}"
    );
    assert!(workdir.refused(&["advise", "none"]).contains("none: "));
    assert!(workdir.refused(&["advise", "t.csv", "--pressure", "0"]).contains("0.001 to 100"));
}

#[test]
fn a_signal_ends_the_command_and_the_capture_with_a_last_sample() {
    let workdir = Workdir::new();
    let script = "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.02; done";
    let args = ["capture", "--out", "c", "--", "sh", "-c", script];
    assert_eq!(workdir.run(&args).status.code(), Some(9));
    let kept = fs::read_to_string(workdir.path().join("c")).unwrap();
    assert_eq!(kept.matches("\ntime: ").count(), 2, "{kept}");
}

#[test]
fn a_command_that_does_not_start_leaves_an_earlier_capture() {
    let workdir = Workdir::new();
    assert_eq!(workdir.run(&["capture", "--out", "c", "--", "true"]).status.code(), Some(0));
    let before = workdir.read("c");
    assert!(workdir.refused(&["capture", "--out", "c", "--", "./none"]).contains("`./none`"));
    assert_eq!(workdir.read("c"), before);
    workdir.refused(&["capture", "--out", "new/c", "--", "touch", "started"]);
    assert!(!workdir.path().join("started").exists());
}
