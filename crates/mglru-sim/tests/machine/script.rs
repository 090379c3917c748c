//! A workload written out: what each task does, in order.

use std::collections::VecDeque;

use mglru::Config;
use mglru_sim::{Machine, MachineSpec, Outcome};
use mglru_workload::{
    FileSpec, GroupSpec, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec, Workload,
};

pub const PAGE: u64 = 4096;
pub const MIB: u64 = 1 << 20;

/// A script under construction.
#[derive(Clone, Default)]
pub struct Script {
    pub layout: Layout,
    pub ops: Vec<VecDeque<Op>>,
}

impl Script {
    pub fn file(&mut self, bytes: u64) -> u32 {
        let name = format!("file{}", self.layout.files.len());
        self.layout.files.push(FileSpec { name, bytes });
        self.layout.files.len() as u32 - 1
    }

    pub fn group(&mut self, name: &str, parent: Option<u32>) -> u32 {
        self.layout.groups.push(GroupSpec { name: name.to_owned(), parent });
        self.layout.groups.len() as u32 - 1
    }

    pub fn region(&mut self, mm: u32, kind: RegionKind, pages: u32) -> u32 {
        self.layout.regions.push(RegionSpec::plain(mm, kind, pages));
        self.layout.regions.len() as u32 - 1
    }

    pub fn anon(&mut self, mm: u32, pages: u32) -> u32 {
        self.region(mm, RegionKind::Anon, pages)
    }

    pub fn task(&mut self, mm: u32, group: Option<u32>, ops: Vec<Op>) -> u32 {
        self.layout.tasks.push(TaskSpec { mm, group, node: None, background: false });
        self.ops.push(ops.into());
        self.ops.len() as u32 - 1
    }

    pub fn phase(&mut self, name: &str) -> Op {
        self.layout.phases.push(name.to_owned());
        Op::Mark { phase: self.layout.phases.len() as u32 - 1 }
    }

    pub fn machine(&self, spec: &MachineSpec, variant: &str) -> Machine {
        let config = config(variant);
        Machine::new(spec, config, Box::new(self.clone()), 1).unwrap()
    }

    /// The machine after the run, and what it says.
    pub fn end(&self, spec: &MachineSpec, variant: &str) -> (Machine, Outcome) {
        let mut machine = self.machine(spec, variant);
        machine.run(None).unwrap();
        machine.lru.check();
        let outcome = machine.outcome();
        (machine, outcome)
    }

    pub fn run(&self, spec: &MachineSpec, variant: &str) -> Outcome {
        self.end(spec, variant).1
    }
}

impl Workload for Script {
    fn layout(&self) -> Layout {
        self.layout.clone()
    }

    fn next(&mut self, task: TaskId) -> Op {
        self.ops[task as usize].pop_front().unwrap_or(Op::Done)
    }

    fn string_hash(&self) -> u64 {
        0
    }
}

/// `k7.1` or `k7.1+lru=classic`.
pub fn config(variant: &str) -> Config {
    let mut parts = variant.split('+');
    let mut config = Config::variant(parts.next().unwrap_or_default()).unwrap();
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        config.set(key, value).unwrap();
    }
    config
}

pub fn spec(text: &str) -> MachineSpec {
    toml::from_str(text).unwrap()
}

pub fn touch(region: u32, page: u32, write: bool) -> Op {
    Op::Touch { region, page, write }
}

pub fn touch_all(region: u32, pages: u32, write: bool) -> Vec<Op> {
    (0..pages).map(|page| touch(region, page, write)).collect()
}

pub fn read(file: u32, page: u64, pages: u32) -> Op {
    Op::Read { file, off: page * PAGE, len: pages * PAGE as u32 }
}

pub fn write(file: u32, page: u64, pages: u32) -> Op {
    Op::Write { file, off: page * PAGE, len: pages * PAGE as u32 }
}

/// Pseudo-random page numbers below `n`, the same every time.
pub fn pages(seed: u64, n: u64, count: usize) -> Vec<u32> {
    let mut rng = mglru_workload::rng::Rng::new(seed, 0);
    (0..count).map(|_| rng.below(n) as u32).collect()
}
