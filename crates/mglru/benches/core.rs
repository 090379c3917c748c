//! What the core costs by itself, the machine beneath it aside: list operations, accesses, arrivals
//! and refaults, and a batch of evictions. Figures are per folio.

#![allow(missing_docs)] // What criterion generates has none.

#[path = "../tests/toy/toy.rs"]
mod toy;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use mglru::{Entry, FolioId, FolioKind, Lru, MemcgId, Seq, Zone};

use toy::{NODE, NORMAL, World};

/// Folios per measurement.
const N: usize = 4096;

fn world(folios: usize) -> (World, MemcgId, Vec<FolioId>) {
    let mut world = World::variant("after");
    world.checks_steps = false;
    let g = world.group(MemcgId::ROOT);
    let folios = world.files(g, folios);
    (world, g, folios)
}

fn lists(c: &mut Criterion) {
    let mut group = c.benchmark_group("lists");
    group.throughput(Throughput::Elements(N as u64));
    group.bench_function("unlink and push", |b| {
        let mut folios = mglru::Folios::default();
        let list = folios.new_list();
        let ids: Vec<FolioId> = (0..N as u32)
            .map(|i| folios.alloc(FolioKind::File, mglru::LruvecId(0), Zone(2), 0, [i, 0]))
            .collect();
        ids.iter().for_each(|&id| folios.push_head(list, id));
        b.iter(|| {
            for _ in 0..N {
                let tail = folios.tail(list).expect("never empty");
                folios.unlink(tail);
                folios.push_head(list, tail);
            }
        });
    });
    group.bench_function("remove and add", |b| {
        let (mut world, _, ids) = world(N);
        b.iter(|| {
            for &id in &ids {
                world.lru.remove(id);
                world.lru.add(id, Entry::Plain);
            }
        });
    });
    group.finish();
}

fn accesses(c: &mut Criterion) {
    let mut group = c.benchmark_group("accesses");
    group.throughput(Throughput::Elements(N as u64));
    group.bench_function("accessed", |b| {
        let (mut world, _, ids) = world(N);
        b.iter(|| ids.iter().for_each(|&id| world.lru.accessed(black_box(id))));
    });
    group.finish();
}

/// A folio of a slot that held this shadow arrives and goes.
fn come_and_go(lru: &mut Lru, g: MemcgId, shadow: mglru::Shadow) {
    let id = lru.new_folio(FolioKind::File, g, NODE, NORMAL, 0, [0, 0]);
    lru.refault(id, shadow, false);
    lru.add(id, Entry::Plain);
    lru.remove(id);
    lru.free_folio(id);
}

fn refaults(c: &mut Criterion) {
    let mut group = c.benchmark_group("refaults");
    group.throughput(Throughput::Elements(N as u64));
    group.bench_function("new, refault, add, remove, free", |b| {
        let (mut world, g, _) = world(N);
        world.evict(g, 64);
        let shadow = world.toy.freed[0].shadow;
        b.iter(|| (0..N).for_each(|_| come_and_go(&mut world.lru, g, black_box(shadow))));
    });
    group.finish();
}

fn evictions(c: &mut Criterion) {
    let mut group = c.benchmark_group("evictions");
    group.throughput(Throughput::Elements(N as u64));
    for (name, accesses) in [("clean file, batches of 64", 0), ("sorted only", 5)] {
        let (mut prepared, g, ids) = world(N);
        for &id in &ids {
            (0..accesses).for_each(|_| prepared.lru.accessed(id));
        }
        let lruvec = prepared.lru.lruvec_id(g, NODE);
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || prepared.clone(),
                |w| w.lru.debug_evict(lruvec, Seq(0), 60, N as u64, &mut w.toy),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, lists, accesses, refaults, evictions);
criterion_main!(benches);
