//! `mglru run --until … --gdb`: a debugger at the moment, by the protocol it speaks.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::booted::{can_boot, plan};
use crate::workdir::Workdir;

const RUN: [&str; 8] =
    ["run", "booted.toml", "--backend", "kernel", "--variant", "k6.12", "--seeds", "1"];

/// A run that stands still, and the lines it said so far.
struct Held {
    child: Child,
    out: BufReader<ChildStdout>,
    said: String,
}

impl Held {
    fn start(workdir: &Workdir, out: &str, moment: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mglru"));
        command
            .current_dir(workdir.path())
            .args(RUN)
            .args(["--out", out, "--until", moment, "--gdb"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut held = Self { child, out, said: String::new() };
        while !held.said.contains("Ctrl-C here does") {
            if held.out.read_line(&mut held.said).unwrap() == 0 {
                let mut why = String::new();
                let _ = held.child.stderr.take().unwrap().read_to_string(&mut why);
                panic!("{}{why}", held.said);
            }
        }
        held
    }

    fn debugger(&self) -> Debugger {
        let (_, rest) = self.said.split_once("target remote ").unwrap();
        let address = rest.split('\'').next().unwrap();
        let line = TcpStream::connect(address).unwrap();
        line.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Debugger(line)
    }

    /// Returns its output once the debugger has left.
    fn ended(mut self) -> (String, i32) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code().unwrap())
    }
}

/// The other end of gdb's remote protocol.
struct Debugger(TcpStream);

impl Debugger {
    fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        self.0.write_all(format!("${packet}#{sum:02x}").as_bytes()).unwrap();
    }

    fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.answer()
    }

    fn answer(&mut self) -> String {
        let mut text = Vec::new();
        let mut byte = [0];
        while self.0.read_exact(&mut byte).is_ok() && byte != *b"#" {
            if byte != *b"+" && byte != *b"$" {
                text.push(byte[0]);
            }
        }
        self.0.read_exact(&mut [0; 2]).unwrap();
        self.0.write_all(b"+").unwrap();
        String::from_utf8(text).unwrap()
    }
}

fn kept(workdir: &Workdir, out: &str, file: &str) -> String {
    let folder = fs::read_dir(workdir.path().join(out).join("until")).unwrap().flatten().next();
    fs::read_to_string(folder.unwrap().path().join(file)).unwrap()
}

#[test]
fn a_debugger_without_a_moment_a_port_or_a_kernel_is_refused() {
    let workdir = Workdir::new();
    plan(&workdir);
    let message = workdir.refused(&["run", "booted.toml", "--gdb"]);
    assert!(message.contains("--until <ACCESSES|TIME|EVENT>"), "{message}");
    let message = workdir.refused(&["run", "booted.toml", "--until", "5", "--gdb=70000"]);
    assert!(message.contains("invalid value '70000' for '--gdb"), "{message}");
    let message = workdir.refused(&["run", "small.toml", "--until", "5", "--gdb"]);
    assert!(
        message.contains("--until ends booted runs of a workload (--backend kernel)"),
        "{message}"
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--gdb={}", taken.local_addr().unwrap().port());
    let message = workdir.refused(&["run", "booted.toml", "--until", "5", &port]);
    assert!(message.starts_with(&format!("mglru: error: {port}: 127.0.0.1:")), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    if !can_boot(&workdir) {
        return;
    }
    let message =
        workdir.refused(&["run", "booted.toml", "--backend", "kernel", "--until", "5", "--gdb"]);
    assert!(message.contains("2 runs; --gdb holds one: one --variant and one seed"), "{message}");
}

#[test]
fn a_debugger_finds_the_machine_as_the_same_run_without_it_ends() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    workdir.out(&[&RUN[..], &["--out", "plain", "--until", "3000"]].concat(), 0);
    let held = Held::start(&workdir, "held", "3000");
    for file in ["vmstat", "lru_gen", "touch.memory.stat", "f0.pages", "trace"] {
        assert_eq!(kept(&workdir, "held", file), kept(&workdir, "plain", file), "{file}");
    }
    let mut debugger = held.debugger();
    let features = debugger.ask("qSupported:xmlRegisters=i386");
    assert!(features.contains("PacketSize="), "{features}");
    let stopped = debugger.ask("?");
    assert!(stopped.starts_with('T') || stopped.starts_with('S'), "{stopped}");
    let registers = debugger.ask("g");
    assert!(registers.len() > 24 * 16, "{registers}");
    assert_eq!(registers, debugger.ask("g"), "it stands still");
    assert_eq!(debugger.ask("D"), "OK");
    drop(debugger);
    assert_eq!(held.ended(), ("the machine is ended\n".to_string(), 0));
}

#[test]
fn the_work_goes_on_when_the_debugger_says_so() {
    let workdir = Workdir::new();
    if !can_boot(&workdir) {
        return;
    }
    plan(&workdir);
    let held = Held::start(&workdir, "held", "200");
    let mut debugger = held.debugger();
    debugger.ask("qSupported:xmlRegisters=i386");
    debugger.ask("?");
    debugger.send("c");
    // The guest ends its work and the machine with it.
    let mut rest = Vec::new();
    let _ = debugger.0.read_to_end(&mut rest);
    let rest = String::from_utf8_lossy(&rest).into_owned();
    assert!(rest.contains("$W00#") || rest.is_empty() || rest == "+", "{rest}");
    assert_eq!(held.ended().1, 0);
}
