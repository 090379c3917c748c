//! Cost of simulated accesses: hits through page tables, and a group that holds a tenth of what
//! it reads. `examples/throughput.rs` measures the same at true scale.

#![allow(missing_docs)] // what `criterion_group!` makes has none

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mglru::Config;
use mglru_sim::{MachineSpec, run};
use mglru_workload::rng::Rng;
use mglru_workload::{
    FileSpec, GroupSpec, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec, Workload,
};

const PAGES: u32 = 1 << 16;
const ACCESSES: u64 = 1 << 20;

/// Uniform accesses by one task: stores to anonymous memory, or reads of a file.
struct Uniform {
    anon: bool,
    rng: Rng,
    left: u64,
}

impl Workload for Uniform {
    fn layout(&self) -> Layout {
        let region = RegionSpec::plain(0, RegionKind::Anon, PAGES);
        Layout {
            groups: vec![GroupSpec { name: "/g".to_owned(), parent: None }],
            files: vec![FileSpec { name: "f".to_owned(), bytes: u64::from(PAGES) * 4096 }],
            regions: vec![region],
            tasks: vec![TaskSpec { mm: 0, group: Some(0), node: None, background: false }],
            ..Layout::default()
        }
    }

    fn next(&mut self, _task: TaskId) -> Op {
        if self.left == 0 {
            return Op::Done;
        }
        self.left -= 1;
        let page = self.rng.below(u64::from(PAGES));
        match self.anon {
            true => Op::Touch { region: 0, page: page as u32, write: true },
            false => Op::Read { file: 0, off: page * 4096, len: 4096 },
        }
    }

    fn fill(&mut self, task: TaskId, out: &mut Vec<Op>) {
        out.extend((0..64).map(|_| self.next(task)));
    }

    fn string_hash(&self) -> u64 {
        0
    }
}

fn simulate(anon: bool, limit: &str, variant: &str) {
    let workload = Uniform { anon, rng: Rng::new(1, 0), left: ACCESSES };
    let mut spec = MachineSpec { readahead_kb: 0, cpus: 1, ..MachineSpec::default() };
    let mut group = spec.group("/g");
    group.max = limit.parse().expect("a size");
    spec.groups.insert("/g".to_owned(), group);
    let config = Config::variant(variant).expect("a variant");
    run(&spec, config, Box::new(workload), 1, None).expect("it runs");
}

fn accesses(c: &mut Criterion) {
    let mut group = c.benchmark_group("access");
    group.sample_size(10).throughput(Throughput::Elements(ACCESSES));
    group.bench_function("hits", |b| b.iter(|| simulate(true, "max", "after")));
    for variant in ["classic", "after"] {
        let name = format!("uniform-10%-{variant}");
        group.bench_function(name, |b| b.iter(|| simulate(false, "26MiB", variant)));
    }
    group.finish();
}

criterion_group!(benches, accesses);
criterion_main!(benches);
