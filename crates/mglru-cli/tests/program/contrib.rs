//! The files beside the program, used as their heads say.

use std::path::Path;
use std::process::{Command, Output};

fn entrypoint(variables: &[(&str, &str)], args: &[&str]) -> Output {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/container/entrypoint.sh");
    let program = Path::new(env!("CARGO_BIN_EXE_mglru")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.arg(script).args(args).env("PATH", path).env("MGLRU_CGROUP", "/nonexistent");
    command.env_remove("MGLRU_BUDGET").env_remove("MGLRU_METRICS");
    command.envs(variables.iter().copied()).output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_container_runs_its_service_under_a_budget_or_says_why_not() {
    let (status, out, error) = said(&entrypoint(&[], &["sh", "-c", "echo up; exit 7"]));
    assert_eq!((status, out.as_str()), (Some(7), "up\n"));
    assert!(error.contains("no limit and no MGLRU_BUDGET: sh runs without a budget"), "{error}");
    let budget = [("MGLRU_BUDGET", "64MiB")];
    let (status, out, error) = said(&entrypoint(&budget, &["sh", "-c", "echo up; exit 7"]));
    assert_eq!((status, out.as_str()), (Some(7), "up\n"), "{error}");
    let (status, out, error) = said(&entrypoint(&budget, &[]));
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert_eq!(error, "mglru-entrypoint: name the service to run\n");
}

#[test]
fn a_containers_own_limit_is_budget_enough() {
    let group = tempfile::tempdir().unwrap();
    std::fs::write(group.path().join("memory.high"), "max\n").unwrap();
    std::fs::write(group.path().join("memory.max"), "134217728\n").unwrap();
    let group = group.path().display().to_string();
    let lacks = [("MGLRU_CGROUP", group.as_str()), ("MGLRU_METRICS", "no address")];
    let (status, _, error) = said(&entrypoint(&lacks, &["true"]));
    if error.contains("does not allow the pager") {
        return println!("skipped: needs the pager");
    }
    assert_eq!(status, Some(2), "{error}");
    assert!(error.contains("no address"), "{error}");
}

/// No container runtime is needed to see that the file is well-formed and copies what there is.
#[test]
fn the_containerfile_copies_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("contrib/container/Containerfile")).unwrap();
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let instructions: Vec<Vec<&str>> = lines.map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(instructions[0][0], "FROM");
    let known = ["FROM", "WORKDIR", "COPY", "RUN", "ENTRYPOINT", "CMD"];
    for words in &instructions {
        assert!(known.contains(&words[0]), "{words:?}");
        if words[0] == "COPY" && !words[1].starts_with("--from") {
            assert!(
                words[1..words.len() - 1].iter().all(|from| root.join(from).exists()),
                "{words:?}"
            );
        }
    }
    let last = |name| instructions.iter().rfind(|words| words[0] == name).map(|words| words[1]);
    assert_eq!((last("ENTRYPOINT"), last("CMD")), (Some("[\"mglru\"]"), Some("[\"--help\"]")));
}
