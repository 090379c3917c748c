//! A running program seen and steered from outside: `mglru ctl`, `mglru top`, `exec --mount` and
//! `--metrics`. Needs what the pager needs; where that is refused a test says so and is skipped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use mglru_pager::control::{Client, is_stale};
use mglru_pager::launch::{ENV_CONTROL, malloc, socket_of};
use mglru_pager::probe;

/// A host that lacks something says what; the test is skipped.
pub(crate) fn lacking(optional: &[&str]) -> bool {
    let lack = probe()
        .into_iter()
        .find(|fact| !fact.ok && (fact.required || optional.contains(&fact.what)));
    lack.is_some_and(|fact| {
        println!("skipped: {} ({})", fact.detail, fact.fix);
        true
    })
}

/// A program that holds some memory until its input ends, under a budget, and its socket's folder.
struct Program {
    child: Child,
    folder: tempfile::TempDir,
}

const HOLDS: &str = "m = bytearray(b'x' * (48 << 20)); s = sum(m[::4096]); print('up', flush=True)
import sys
sys.stdin.read()
print(sum(m[::4096]) == s, flush=True)";

impl Program {
    /// `None`, with the reason printed: it cannot run here.
    fn start(options: &[&str]) -> Option<Self> {
        Self::start_with(HOLDS, options)
    }

    /// As [`Self::start`], of another program.
    fn start_with(program: &str, options: &[&str]) -> Option<Self> {
        let python = Command::new("python3").arg("--version").output().is_ok();
        if lacking(&["UFFDIO_MOVE and fork events"]) || malloc().is_none() || !python {
            println!("skipped: needs the pager, libjemalloc2 and python3");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = mglru(folder.path(), &["exec", "--memory.max", "32M"]);
        command.args(options).args(["--swap-dir".as_ref(), folder.path().as_os_str()]);
        command.args(["--", "python3", "-c", program]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        assert_eq!(first, "up\n");
        Some(Self { child, folder })
    }

    fn ctl(&self, args: &[&str]) -> Output {
        mglru(self.folder.path(), args).output().unwrap()
    }

    /// Returns what a command prints; it must succeed.
    fn stdout(&self, args: &[&str]) -> String {
        let output = self.ctl(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The one line that a command is refused with.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.ctl(args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        said.trim_start_matches("mglru: error: ").trim().to_string()
    }

    fn socket(&self) -> PathBuf {
        socket_of(self.folder.path(), self.child.id())
    }

    /// Lets the program end; it must have kept its memory.
    fn end(mut self) -> tempfile::TempDir {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        assert_eq!(rest, "True\n");
        self.folder
    }
}

fn mglru(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mglru"));
    command.env(ENV_CONTROL, folder).args(args);
    command
}

#[test]
fn a_running_program_is_read_and_steered() {
    let Some(program) = Program::start(&[]) else { return };
    let pid = program.child.id().to_string();
    let listed = program.stdout(&["ctl", "ls"]);
    assert!(listed.contains(&pid) && listed.contains("python3"), "{listed}");
    assert_eq!(program.stdout(&["ctl", "get", "memory.max"]), "33554432\n");
    program.stdout(&["ctl", "set", "memory.high", "24M"]);
    assert_eq!(program.stdout(&["ctl", "--pid", &pid, "get", "memory.high"]), "25165824\n");
    program.stdout(&["ctl", "mkdir", "/side"]);
    assert!(program.stdout(&["ctl", "ls", "/"]).starts_with("side/\ncgroup.controllers\n"));
    assert!(program.stdout(&["ctl", "ls", "/"]).contains("\nmemory.unmanaged\n"));
    assert!(!program.stdout(&["ctl", "ls", "/side"]).contains("memory.unmanaged"));
    program.stdout(&["ctl", "rmdir", "/side"]);
    program.stdout(&["ctl", "reclaim", "1M"]);
    let stat = program.stdout(&["ctl", "get", "memory.stat"]);
    assert!(stat.lines().any(|line| line.starts_with("pgsteal_proactive ")), "{stat}");
    let unmanaged = program.stdout(&["ctl", "get", "memory.unmanaged"]);
    assert!(unmanaged.starts_with("total ") && unmanaged.contains("\nno_heap 0\n"), "{unmanaged}");
    let what_if = program.stdout(&["ctl", "what-if", "--factor", "2", "--format", "json"]);
    let what_if: serde_json::Value = serde_json::from_str(&what_if).unwrap();
    assert_eq!(what_if[0]["factor"], 2.0);
    let page = program.stdout(&["ctl", "what-if", "--factor", "2", "--format", "html"]);
    assert!(page.starts_with("<!doctype html>") && page.contains("\"asked\":[{"), "{}", page.len());
    let top = program.stdout(&["top", "--once", "--interval", "0.1", "--format", "json"]);
    let top: serde_json::Value = serde_json::from_str(&top).unwrap();
    assert_eq!((&top[0]["group"], &top[0]["max"]), (&"/".into(), &33_554_432.into()));
    let table = program.stdout(&["top", "--once", "--interval", "0.1"]);
    assert!(top[0]["outside"].is_u64() && table.contains("outside"), "{table}");
    assert!(table.contains("refault/s") && table.contains("32.0M"), "{table}");

    let refused = |args: &[&str]| program.refused(args);
    assert_eq!(
        refused(&["ctl", "set", "memory.max", "lots"]),
        "/: memory.max: `lots` is not a value"
    );
    assert_eq!(
        refused(&["ctl", "get", "memory.maxx"]),
        "/: there is no file `memory.maxx` in a group"
    );
    assert_eq!(refused(&["ctl", "rmdir", "/side"]), "/side: there is no group `/side`");
    assert!(
        refused(&["ctl", "--pid", "1", "get", "memory.max"])
            .contains("no pager runs in process 1;")
    );
    assert!(refused(&["top", "/none", "--once", "--interval", "0.1"]).contains("no group `/none`"));
    let socket = program.socket();
    assert!(Client::connect(&socket).is_ok());
    let folder = program.end();
    assert!(is_stale(&socket), "it is taken away at the end");
    let after = mglru(folder.path(), &["ctl", "get", "memory.max"]).output().unwrap();
    let said = String::from_utf8(after.stderr).unwrap();
    assert!(said.starts_with("mglru: error: no pager runs "), "{said}");
}

#[test]
fn a_socket_goes_with_its_program_however_that_ends() {
    let Some(mut program) = Program::start(&[]) else { return };
    let socket = program.socket();
    assert!(Client::connect(&socket).is_ok());
    program.child.kill().unwrap();
    program.child.wait().unwrap();
    let names = std::fs::read_to_string("/proc/net/unix").unwrap();
    assert!(!names.contains(socket.to_str().unwrap()), "killed");
    let listed = program.stdout(&["ctl", "ls"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let left = program.folder.path().read_dir().unwrap().count();
    assert_eq!(left, 0, "no swap file either");
}

#[test]
fn a_lower_limit_is_reached_or_said_not_to_be() {
    let Some(program) = Program::start(&[]) else { return };
    program.stdout(&["ctl", "set", "memory.max", "24M"]);
    let current: u64 = program.stdout(&["ctl", "get", "memory.current"]).trim().parse().unwrap();
    assert!(current <= 24 << 20, "{current}");
    program.end();
    const NOISE: &str = "import os, sys
m = os.urandom(12 << 20); print('up', flush=True); sys.stdin.read()";
    let Some(program) = Program::start_with(NOISE, &["--swap", "0"]) else { return };
    let output = program.ctl(&["ctl", "set", "memory.max", "4M"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(0), 1), "{said}");
    assert!(said.starts_with("mglru: /: memory.max is 4194304, but "), "{said}");
}

#[test]
fn the_groups_are_a_directory_like_a_cgroups() {
    if lacking(&["fuse"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let Some(program) = Program::start(&["--mount", at]) else { return };
    let path = |file: &str| dir.path().join(file);
    let read = |file: &str| std::fs::read_to_string(path(file)).unwrap();
    assert_eq!(read("memory.max"), "33554432\n");
    assert!(read("memory.unmanaged").starts_with("total "));
    assert!(read("memory.pressure").starts_with("some avg10="));
    // As a controller does: read pressure and usage, lower memory.high, see it taken.
    let current: u64 = read("memory.current").trim().parse().unwrap();
    std::fs::write(path("memory.high"), format!("{}\n", current - (1 << 20))).unwrap();
    let high: u64 = read("memory.high").trim().parse().unwrap();
    assert!(high <= current - (1 << 20) && high > current - (2 << 20));
    std::fs::write(path("memory.high"), "max").unwrap();
    let errno = |result: std::io::Result<()>| result.unwrap_err().raw_os_error();
    assert_eq!(errno(std::fs::write(path("memory.max"), "lots")), Some(22));
    assert_eq!(errno(std::fs::write(path("memory.current"), "1")), Some(13));
    std::fs::create_dir(path("web")).unwrap();
    std::fs::create_dir(path("web/cache")).unwrap();
    assert!(!path("web/memory.unmanaged").exists());
    std::fs::write(path("web/cache/memory.max"), "8M").unwrap();
    assert_eq!(program.stdout(&["ctl", "get", "memory.max", "/web/cache"]), "8388608\n");
    assert_eq!(errno(std::fs::remove_dir(path("web"))), Some(16));
    assert_eq!(errno(std::fs::create_dir(path("web"))), Some(17));
    std::fs::remove_dir(path("web/cache")).unwrap();
    std::fs::remove_dir(path("web")).unwrap();
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().any(|name| name == "memory.stat"));
    program.end();
    // Its server sees the end of the program and takes the mount away.
    let mounted = || std::fs::read_to_string("/proc/mounts").unwrap().contains(at);
    while mounted() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn memory_is_held_to_a_pressure_while_the_program_runs() {
    let Some(program) = Program::start(&["--auto=50"]) else { return };
    let reclaimed = || {
        let text = program.stdout(&["ctl", "get", "memory.stat"]);
        let line = text.lines().find_map(|line| line.strip_prefix("pgsteal_proactive "));
        line.and_then(|n| n.parse::<u64>().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let begun = std::time::Instant::now();
    while reclaimed() == 0 {
        // Two looks, six seconds apart, decide.
        assert!(begun.elapsed().as_secs() < 60, "nothing was reclaimed");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    program.end();
}

#[test]
fn metrics_are_scraped() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let Some(program) = Program::start(&["--metrics", &free]) else { return };
    let mut stream = TcpStream::connect(&free).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\nmglru_memory_max_bytes{group=\"/\"} 33554432\n"), "{answer}");
    assert!(answer.contains("\nmglru_memory_unmanaged_bytes{reason=\"brk\"} "), "{answer}");
    assert!(answer.contains("\nmglru_faults_total{group=\"/\",kind=\"minor\"} "), "{answer}");
    program.end();
}

#[test]
fn metrics_for_other_hosts_are_said_to_be() {
    if lacking(&[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let said = |address: &str| {
        let args = ["exec", "--memory.max", "16M", "--metrics", address, "--", "true"];
        let output = mglru(folder.path(), &args).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let open = said("0.0.0.0:0");
    assert!(open.starts_with("mglru: metrics are served to other hosts at http://0.0.0.0:"));
    assert_eq!(open.lines().count(), 1, "{open}");
    assert_eq!(said("127.0.0.1:0"), "");
}

#[test]
fn what_cannot_be_served_is_refused_before_the_program_starts() {
    if lacking(&[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str]| {
        let command = [&["exec", "--memory.max", "16M"], args, &["--", "echo", "ran"]].concat();
        let output = mglru(folder.path(), &command).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--metrics", "nowhere"]).contains("nowhere: "));
    assert!(refused(&["--mount", "/no/such/folder"]).contains("/no/such/folder: "));
}
