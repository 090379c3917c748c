//! A folder with plans in it, and the program to run there.

use std::path::Path;
use std::process::{Command, Output};

/// Its results are written in it.
pub const MOCK: &str = r#"
name = "mock"
title = "a plan whose results are written in it"
backend = "mock"
base = "before"
variants = ["before", "after"]
seeds = 3
metrics = ["ops_per_s", "pgpgin"]

[groups."/a"]
memory.max = "64MiB"

[workload]
kind = "mock"
ops = 1000
ops_per_s = 100.0
noise = [0.0, 0.01, -0.01]
counters = { pgpgin = 4000 }
factor = { after = 1.25 }

[[published]]
metric = "ops_per_s"
document = "000"
before = 100.0
after = 120.0
"#;

/// A small run of the real machine.
pub const SMALL: &str = r#"
name = "small"
title = "the machine, small"
variants = ["before", "after"]
seeds = 1
metrics = ["ops_per_s"]

[machine]
memory = "64MiB"
cpus = 2

[groups."/touch"]
memory.max = "4MiB"

[workload]
kind = "touch"
engine = "pread"
pages = 4096
operations = 4000
tasks = 2
"#;

pub struct Workdir {
    dir: tempfile::TempDir,
}

impl Workdir {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("mock.toml"), MOCK).unwrap();
        std::fs::write(dir.path().join("small.toml"), SMALL).unwrap();
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_mglru"));
        program.current_dir(self.path()).args(args);
        program
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// stdout of a run that must end with `status` and say nothing on stderr.
    pub fn out(&self, args: &[&str], status: i32) -> String {
        let output = self.run(args);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// stderr of a run that must be refused without a word on stdout.
    pub fn refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path().join(file)).unwrap()
    }
}
