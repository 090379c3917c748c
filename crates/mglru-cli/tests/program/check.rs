//! `mglru check` and `mglru kernel`: statuses, build farms' forms, and what is refused.

use std::fs;
use std::process::{Command, Stdio};

use crate::booted::{can_boot, plan};
use crate::workdir::{MOCK, Workdir};

/// Bounds on what the mock backend answers: one that holds on every variant, one that holds on one.
const BOUNDS: &str = "
[[bound]]
name = \"reads & <more>\"
metric = \"pgpgin / ops\"
at_most = 4
[[bound]]
metric = \"ops_per_s\"
at_least = 120
variant = \"after\"
";

fn workdir(bounds: &str) -> Workdir {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("p.toml"), format!("{MOCK}{bounds}")).unwrap();
    workdir
}

fn refused(workdir: &Workdir, args: &str) -> String {
    let args: Vec<&str> = args.split(' ').collect();
    let message = workdir.refused(&args);
    let message =
        message.strip_prefix("mglru: error: ").unwrap_or_else(|| panic!("{args:?}: {message}"));
    assert_eq!(message.matches('\n').count(), 1, "{args:?}: {message}");
    message.trim_end().to_string()
}

#[test]
fn bounds_that_hold_are_status_0_and_broken_ones_1() {
    let workdir = workdir(BOUNDS);
    insta::assert_snapshot!(workdir.out(&["check", "p.toml", "--seeds", "1"], 0), @r"
    ok       before: reads & <more>: 4 (at most 4)
    ok       after: reads & <more>: 3.200 (at most 4)
    ok       after: ops_per_s: 126.2 (at least 120)
    mock: 3 of 3 bounds hold
    ");
    let broken = ["check", "p.toml", "--set", "workload.factor.after=0.5", "--variant", "after"];
    let stdout = workdir.out(&broken, 1);
    assert!(stdout.contains("BROKEN   after: reads & <more>: 8 (at most 4)"), "{stdout}");
    assert!(!workdir.path().join("mglru-runs").exists(), "records are kept only with --out");
    workdir.out(&["check", "p.toml", "--out", "o"], 0);
    assert_eq!(workdir.read("o/records.jsonl").lines().count(), 6);
}

#[test]
fn build_farms_can_read_both_forms() {
    let workdir = workdir(BOUNDS);
    let set = ["--set", "workload.factor.after=0.5", "--seeds", "1"];
    let args = [&["check", "p.toml", "--tap", "--junit", "j.xml"][..], &set].concat();
    let stdout = workdir.out(&args, 1);
    assert!(stdout.starts_with("TAP version 13\n1..3\nok 1 - before: reads"), "{stdout}");
    assert!(
        stdout.contains("\nnot ok 2 - after: reads & <more>\n  ---\n  found: '8'\n"),
        "{stdout}"
    );
    let counted = stdout.lines().filter(|line| line.starts_with("ok") || line.starts_with("not"));
    assert_eq!(counted.count(), 3);
    xml(&workdir, 3, 2, 0);
    let unbooted =
        ["check", "p.toml", "--junit", "j.xml", "--set", "workload.unbooted='<no> boot'"];
    assert!(
        workdir.out(&unbooted, 125).starts_with("unjudged mock: p.toml: before seed 1: <no> boot")
    );
    xml(&workdir, 1, 0, 1);
}

/// Has another program read the file.
fn xml(workdir: &Workdir, tests: u32, failures: u32, errors: u32) {
    let text = workdir.read("j.xml");
    let want = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&want), "{text}");
    let reader = "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])";
    let mut python = Command::new("python3");
    python.args(["-c", reader, "j.xml"]).current_dir(workdir.path());
    match python.stderr(Stdio::null()).status() {
        Ok(status) => assert!(status.success(), "{text}"),
        Err(e) => println!("skipped: python3: {e}"),
    }
}

#[test]
fn a_machine_that_fails_is_passed_over_and_a_mistake_is_not() {
    let workdir = workdir(BOUNDS);
    let machine = ["check", "p.toml", "--tap", "--set", "workload.unbooted='it hangs'"];
    for bisect in [&[][..], &["--bisect"]] {
        let stdout = workdir.out(&[&machine[..], bisect].concat(), 125);
        assert_eq!(stdout, "TAP version 13\nBail out! p.toml: before seed 1: it hangs\n");
    }
    let message = refused(&workdir, "check p.toml --set workload.fail=nothing --junit j.xml");
    assert_eq!(message, "p.toml: before seed 1: nothing");
    assert!(!workdir.path().join("j.xml").exists(), "nothing is written of what was not judged");
}

/// Lists a user's mistakes, and how the line about each begins.
const MISTAKES: [(&str, &str); 10] = [
    ("mock.toml", "mock.toml: has no [[bound]]: nothing to check"),
    (
        "typo.toml",
        "typo.toml: bound[0].metric = pgpgn: no figure of that name (did you mean pgpgin?",
    ),
    ("phase.toml", "phase.toml: bound[0].phase = late: no phase late"),
    ("key.toml", "key.toml: bound[0].metrc: unknown key (did you mean metric?)"),
    ("record.toml", "record.toml: bound[0].record = r.jsonl: No such file"),
    ("p.toml --junit no/j.xml", "no/j.xml: No such file"),
    ("p.toml --no-such", "unexpected argument '--no-such'"),
    ("p.toml --kernel 9.9.9", "invalid value '9.9.9' for '--kernel <[NAME=]IMAGE>': 9.9.9 is not"),
    ("nowhere.toml", "nowhere.toml: No such file"),
    ("p.toml --set workload.fail=lost", "p.toml: before seed 1: lost"),
];

#[test]
fn a_mistake_is_one_line_and_stops_git_bisect() {
    let workdir = workdir(BOUNDS);
    for (name, bound) in [
        ("typo", "metric = \"pgpgn\"\nat_most = 1"),
        ("phase", "metric = \"pgpgin\"\nphase = \"late\"\nat_most = 1"),
        ("key", "metrc = \"pgpgin\"\nat_most = 1"),
        ("record", "metric = \"pgpgin\"\nrecord = \"r.jsonl\"\nwithin = \"5%\""),
    ] {
        let text = format!("{MOCK}\n[[bound]]\n{bound}\n");
        fs::write(workdir.path().join(format!("{name}.toml")), text).unwrap();
    }
    for (args, want) in MISTAKES {
        let message = refused(&workdir, &format!("check {args}"));
        assert!(message.starts_with(want), "{args}: {message}");
        let command: Vec<&str> = ["check", "--bisect"].into_iter().chain(args.split(' ')).collect();
        let stopped = workdir.run(&command);
        assert_eq!(stopped.status.code(), Some(255), "{args}");
        assert_eq!(String::from_utf8_lossy(&stopped.stdout), "", "{args}");
    }
    assert!(!workdir.path().join("mglru-runs").exists(), "a refused run leaves nothing behind");
}

#[test]
fn kernels_that_are_none_are_named() {
    let workdir = Workdir::new();
    fs::write(workdir.path().join("text"), "no kernel").unwrap();
    plan(&workdir);
    let image = "is no kernel to boot: a bzImage, such as arch/x86/boot/bzImage";
    for (args, want) in [
        ("kernel path 9.9.9", "9.9.9 is not there; mglru kernel fetch 9.9.9"),
        ("kernel check 9.9.9", "9.9.9 is not there; mglru kernel fetch 9.9.9"),
        ("kernel check nowhere", "nowhere: No such file or directory (os error 2)"),
        ("kernel check text", &format!("text: {image}")),
        ("kernel check text --modules none", "--modules none: no folder there"),
        ("run booted.toml --kernel text", &format!("booted.toml: backend kernel: text: {image}")),
        ("check booted.toml --kernel text", "booted.toml: backend kernel: text: is no kernel"),
    ] {
        let message = refused(&workdir, args);
        assert!(message.starts_with(want), "{args}: {message}");
    }
}

#[test]
fn without_a_mirror_a_fetch_says_so() {
    if Command::new("apt-get").arg("--version").output().is_err() {
        println!("skipped: no apt-get here");
        return;
    }
    let workdir = Workdir::new();
    let at = |name: &str| workdir.path().join(name).display().to_string();
    fs::create_dir_all(at("state/lists/partial")).unwrap();
    fs::write(at("sources"), "deb [trusted=yes] http://127.0.0.1:9/debian trixie main\n").unwrap();
    let state = at("state");
    let config = format!(
        "Dir::Etc::sourcelist \"{}\"; Dir::Etc::sourceparts \"-\"; Dir::State \"{state}\"; \
         Dir::Cache \"{state}\"; Acquire::Retries \"0\";\n",
        at("sources")
    );
    fs::write(at("apt.conf"), config).unwrap();
    for args in [&["kernel", "fetch", "9.9.9"][..], &["kernel", "list"]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_mglru"));
        program.args(args).env("APT_CONFIG", at("apt.conf")).env("XDG_CACHE_HOME", at("cache"));
        let output = program.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("mglru: error: ") && last.contains("mirror"), "{stderr}");
        let errors = stderr.lines().filter(|line| line.contains("error:"));
        assert_eq!(errors.count(), 1, "{stderr}");
    }
    assert!(!workdir.path().join("cache/mglru/kernels").exists(), "nothing is half there");
}

#[test]
fn the_options_of_a_kernel_are_a_fragment() {
    let text = Workdir::new().out(&["kernel", "config"], 0);
    let is_setting = |line: &str| line.starts_with("CONFIG_") && line.ends_with("=y");
    let other = text.lines().find(|l| !l.is_empty() && !l.starts_with('#') && !is_setting(l));
    assert_eq!(other, None);
    assert!(text.contains("\nCONFIG_LRU_GEN=y\n"), "{text}");
}

/// Lists what lies in a folder for temporary files.
fn files(workdir: &Workdir) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(workdir.path().join("tmp")).unwrap().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

#[test]
fn a_kernel_that_cannot_be_judged_leaves_nothing_behind() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let text = workdir.read("booted.toml") + "\n[[bound]]\nno_oom_kill = true\n";
    fs::write(workdir.path().join("b.toml"), text).unwrap();
    fs::create_dir(workdir.path().join("tmp")).unwrap();
    let huge = "kernel.memory=1TiB";
    let check = ["check", "b.toml", "--backend", "kernel", "--variant", "k6.12", "--bisect"];
    for (args, status, want) in [
        (&["--append", "rdinit=/none root=/dev/none"][..], 125, "the guest panicked: Kernel panic"),
        (&["--set", "kernel.timeout_s=1"], 125, "not over after 1 s (kernel.timeout_s)"),
        (&["--set", "kernel.load=[\"no_such\"]"], 255, "module no_such: not in "),
        (&["--set", huge], 255, "does not fit in this host's free memory"),
    ] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_mglru"));
        program.current_dir(workdir.path()).args(check).args(args);
        let output = program.env("TMPDIR", workdir.path().join("tmp")).output().unwrap();
        let text = [&output.stdout[..], &output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
        assert!(text.contains(want) && text.lines().count() == 1, "{args:?}: {text}");
        assert!(!text.contains("console:"), "a file that is gone is named: {text}");
        assert_eq!(files(&workdir), [""; 0], "{args:?}");
    }
}

#[test]
fn a_host_without_qemu_says_what_to_install() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    if ["/usr/sbin", "/sbin", "/usr/local/sbin"]
        .iter()
        .any(|dir| fs::exists(format!("{dir}/qemu-system-x86_64")).unwrap_or(false))
    {
        println!("skipped: QEMU lies where it is found without PATH");
        return;
    }
    plan(&workdir);
    let mut program = Command::new(env!("CARGO_BIN_EXE_mglru"));
    program.current_dir(workdir.path()).args(["run", "booted.toml", "--backend", "kernel"]);
    let output = program.env("PATH", workdir.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    let want = "booted.toml: backend kernel: qemu-system-x86_64 is not installed; `mglru doctor";
    assert!(stderr.contains(want) && stderr.lines().count() == 1, "{stderr}");
    assert!(!workdir.path().join("mglru-runs").exists(), "nothing is left behind");
}
