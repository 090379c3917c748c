//! Moving folios on to the next generation, at the size of a large group: four million folios that
//! lie in memory in another order than on their list, one by one and with each step of the batching
//! series (spec §11). Aging moves all of them again and again. Figures are per folio.

#![allow(missing_docs)] // What criterion generates has none.

#[path = "../tests/toy/toy.rs"]
mod toy;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mglru::{Entry, FolioId, FolioKind, LruvecId, MemcgId};

use toy::{NODE, NORMAL, World};

/// Folios: 16 GiB of pages.
const N: usize = 1 << 22;
/// Odd, so that multiplying by it permutes the numbers below a power of two; near its golden
/// section, so that neighbours on the list lie far apart.
const STRIDE: usize = 2_592_097;

fn world(settings: &[(&str, &str)]) -> (World, LruvecId) {
    let mut world = World::with("after", settings);
    let g = world.group(MemcgId::ROOT);
    let ids: Vec<FolioId> = (0..N).map(|_| world.unlisted(FolioKind::File, g, NORMAL, 0)).collect();
    (0..N).for_each(|i| world.lru.add(ids[i * STRIDE % N], Entry::Plain));
    let lruvec = world.lru.lruvec_id(g, NODE);
    (world, lruvec)
}

fn pushed_out(c: &mut Criterion) {
    let mut group = c.benchmark_group("pushed out, 4 M folios");
    group.throughput(Throughput::Elements(N as u64));
    group.sample_size(10);
    let steps: [(&str, &[(&str, &str)]); 4] = [
        ("one by one", &[]),
        ("counters in bulk", &[("bulk_counters", "true")]),
        ("and moves", &[("bulk_counters", "true"), ("bulk_moves", "true")]),
        (
            "and prefetch",
            &[("bulk_counters", "true"), ("bulk_moves", "true"), ("bulk_prefetch", "true")],
        ),
    ];
    for (name, settings) in steps {
        let (mut world, lruvec) = world(settings);
        group.bench_function(name, |b| {
            b.iter(|| assert!(world.lru.debug_age(lruvec, 60, true, &mut world.toy)));
        });
    }
    group.finish();
}

fn lists(c: &mut Criterion) {
    let mut group = c.benchmark_group("lists, 4 M folios");
    group.throughput(Throughput::Elements(N as u64));
    group.sample_size(10);
    for (name, run) in [("one by one", 1), ("runs of 64", 64), ("runs of 4096", 4096)] {
        let mut folios = mglru::Folios::default();
        let (mut from, mut to) = (folios.new_list(), folios.new_list());
        let alloc = |_| folios.alloc(FolioKind::File, LruvecId(0), NORMAL, 0, [0, 0]);
        let ids: Vec<FolioId> = (0..N).map(alloc).collect();
        (0..N).for_each(|i| folios.push_head(from, ids[i * STRIDE % N]));
        group.bench_function(name, |b| {
            b.iter(|| {
                while let Some(near) = folios.tail(from) {
                    let ahead = |far| folios.before(from, far).unwrap_or(far);
                    let far = (1..run).fold(near, |far, _| ahead(far));
                    folios.splice(near, far, to, true);
                }
                std::mem::swap(&mut from, &mut to);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, lists, pushed_out);
criterion_main!(benches);
