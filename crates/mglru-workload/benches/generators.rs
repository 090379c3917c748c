//! What a draw costs, and what a whole operation of the application models costs.

#![allow(missing_docs)] // The macro's functions have none.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mglru_workload::fio::{BlockChoice, FioParams};
use mglru_workload::gray_zipf::GrayZipf;
use mglru_workload::rng::Rng;
use mglru_workload::scrambled::Scrambled;
use mglru_workload::wiredtiger::{WiredTigerParams, WiredTigerWorkload};
use mglru_workload::zipf_table::ZipfTable;
use mglru_workload::{Op, Workload};

fn draws(c: &mut Criterion) {
    let mut group = c.benchmark_group("draw");
    let mut rng = Rng::new(1, 0);
    group.bench_function("below", |b| b.iter(|| rng.below(black_box(1 << 20))));
    for theta in [800_000, 990_000, 1_200_000] {
        let table = ZipfTable::new(1 << 20, theta, 7).unwrap();
        let name = format!("zipf_table/1M/{theta}");
        group.bench_function(&name, |b| b.iter(|| table.draw(&mut rng)));
    }
    let gray = GrayZipf::new(1 << 20, 1.2);
    group.bench_function("gray_zipf/1M/1.2", |b| b.iter(|| gray.draw(&mut rng)));
    let scrambled = Scrambled::new(20_000_000, 0);
    group.bench_function("scrambled/20M", |b| b.iter(|| scrambled.draw(&mut rng, 19_999_999)));
    let mut fio = BlockChoice::new(&FioParams::default(), 1, 0);
    group.bench_function("fio/E7", |b| b.iter(|| fio.draw(&mut rng)));
    group.finish();
}

fn tables(c: &mut Criterion) {
    let mut group = c.benchmark_group("build");
    group.sample_size(10);
    group.bench_function("zipf_table/1M/0.99", |b| {
        b.iter(|| ZipfTable::new(black_box(1 << 20), 990_000, 7));
    });
    group.finish();
}

/// Hands out whole operations, the tasks in turn, as a machine without delays would.
struct Turns {
    workload: WiredTigerWorkload,
    task: u32,
    tasks: u32,
}

impl Turns {
    /// After the first `skip` operations.
    fn new(params: &WiredTigerParams, skip: u64) -> Self {
        let workload = WiredTigerWorkload::new(params, 1).unwrap();
        let tasks = workload.layout().tasks.len() as u32;
        let mut turns = Self { workload, task: 0, tasks };
        (0..skip).for_each(|_| turns.operation());
        turns
    }

    fn operation(&mut self) {
        while !self.turn() {}
    }

    /// Whether the turn ended an operation.
    fn turn(&mut self) -> bool {
        self.task = (self.task + 1) % self.tasks;
        loop {
            match self.workload.next(self.task) {
                Op::End { .. } => return true,
                Op::Think { .. } | Op::Barrier { .. } | Op::Fsync { .. } => return false,
                Op::Done => panic!("the benchmark needs more operations"),
                op => _ = black_box(op),
            }
        }
    }
}

fn wiredtiger(c: &mut Criterion) {
    let mut group = c.benchmark_group("operation");
    group.throughput(Throughput::Elements(1));
    let full = WiredTigerParams { operations: 1 << 29, ..WiredTigerParams::default() };
    let mut turns = Turns::new(&full, 300_000);
    group.bench_function("wiredtiger/20M", |b| b.iter(|| turns.operation()));
    group.finish();
}

criterion_group!(benches, draws, tables, wiredtiger);
criterion_main!(benches);
