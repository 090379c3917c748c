//! Measures the compact format of traces: bytes an access, beside the entropy of the accesses, and
//! accesses a second to read on one core.

#![allow(missing_docs)] // The macro's functions have none.

use std::fs;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mglru_workload::rng::Rng;
use mglru_workload::trace::{Event, EventWriter, Head, Operation, TraceReader, View};
use mglru_workload::zipf_table::ZipfTable;

/// Accesses of a trace; `ACCESSES` sets others.
const ACCESSES: u64 = 10_000_000;
const PAGES: u64 = 1 << 20;

fn accesses() -> u64 {
    std::env::var("ACCESSES").ok().and_then(|nr| nr.parse().ok()).unwrap_or(ACCESSES)
}

/// Entropy of one access, in bits, if pages are drawn with weights rank^-exponent.
fn entropy(exponent: f64) -> f64 {
    let weights: Vec<f64> = (1..=PAGES).map(|rank| (rank as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).map(|p| -p * p.log2()).sum()
}

/// Pages with hot ones spread over all numbers; one access in eight writes.
fn zipf(exponent: f64) -> impl FnMut() -> Event {
    let table = ZipfTable::new(PAGES as u32, (exponent * 1e6) as u64, 7).expect("a table");
    let mut rng = Rng::new(1, 0);
    move || {
        let page = u64::from(table.draw(&mut rng)).wrapping_mul(0x9e37_79b1) % PAGES;
        let write = rng.below(8) == 0;
        let operation = if write { Operation::Write } else { Operation::Read };
        Event { operation, page, nr: 1, ..Event::default() }
    }
}

fn scan() -> impl FnMut() -> Event {
    let mut page = 0;
    move || {
        page = (page + 1) % PAGES;
        Event { page, nr: 1, ..Event::default() }
    }
}

fn write(path: &Path, mut draw: impl FnMut() -> Event) {
    let file = std::io::BufWriter::new(fs::File::create(path).expect("a file"));
    let mut writer = EventWriter::new(file, Head::default()).expect("a head");
    (0..accesses()).for_each(|_| writer.event(&draw()).expect("an event"));
    writer.finish().expect("an end");
}

fn read(path: &Path) -> u64 {
    let mut reader = TraceReader::open(path, None, View::Requests).expect("a trace");
    let (mut block, mut sum) = (Vec::new(), 0u64);
    while reader.read_block(&mut block).expect("requests") {
        sum += block.iter().map(|request| request.page).fold(0, u64::wrapping_add);
    }
    sum
}

fn one(c: &mut Criterion, name: &str, bits: f64, draw: impl FnMut() -> Event) {
    let path: PathBuf = std::env::temp_dir().join(format!("{}-{name}.mtr", std::process::id()));
    write(&path, draw);
    let bytes = fs::metadata(&path).expect("it was written").len() as f64;
    println!("{name}: {:.3} bytes an access, entropy {:.3}", bytes / accesses() as f64, bits / 8.0);
    let mut group = c.benchmark_group("compact");
    group.sample_size(10).throughput(Throughput::Elements(accesses()));
    group.bench_function(format!("read/{name}"), |b| b.iter(|| read(&path)));
    group.finish();
    fs::remove_file(&path).expect("it was written");
}

fn compact(c: &mut Criterion) {
    let writes = 0.5436; // Entropy of one write in eight, in bits.
    one(c, "zipf-1.0", entropy(1.0) + writes, zipf(1.0));
    one(c, "zipf-0.8", entropy(0.8) + writes, zipf(0.8));
    one(c, "uniform", 20.0 + writes, zipf(0.0));
    one(c, "scan", 0.0, scan());
}

criterion_group!(benches, compact);
criterion_main!(benches);
