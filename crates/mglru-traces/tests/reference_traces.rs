//! The reference traces: counts and digests of the manifest, and every verified miss count of the
//! reference table, to the last request.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use mglru_traces::flat::{Policy, Run, replay_stream, replay_whole};
use mglru_traces::tools::{Capacity, info};
use mglru_workload::trace::{Dense, Format, TraceReader, View};
use rayon::prelude::*;
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[path = "support/folder.rs"]
mod traces;

#[derive(Deserialize)]
struct Trace {
    name: String,
    file: String,
    format: String,
    requests: u64,
    unique: u64,
    sha256_raw: String,
}

struct Row {
    trace: String,
    run: Run,
    fraction: String,
    requests: u64,
    misses: u64,
}

fn manifest(folder: &Path) -> Vec<Trace> {
    let traces: Vec<Trace> =
        serde_json::from_reader(File::open(folder.join("manifest.json")).unwrap()).unwrap();
    assert!(!traces.is_empty());
    traces
}

fn policy(name: &str) -> Option<Policy> {
    match name {
        "LRU" => Some(Policy::Lru),
        "FIFO" => Some(Policy::Fifo),
        "CLOCK" => Some(Policy::Clock),
        "SIEVE" => Some(Policy::Sieve),
        "Belady" => Some(Policy::Min),
        _ => None,
    }
}

/// The verified rows of the reference table.
fn verified(folder: &Path) -> Vec<Row> {
    let table = std::fs::read_to_string(folder.join("reference-missratios.csv")).unwrap();
    let mut lines = table.lines();
    let header = "trace,policy,cache_size_blocks,fraction,requests,misses,miss_ratio,version,note";
    assert_eq!(lines.next(), Some(header));
    let fields = lines.map(|line| line.split(',').collect::<Vec<_>>());
    fields.filter(|row| row[8] == "verified").map(|row| parse(&row)).collect()
}

fn parse(row: &[&str]) -> Row {
    let policy = policy(row[1]).unwrap_or_else(|| panic!("no policy for {row:?}"));
    let capacity = row[2].parse().unwrap();
    Row {
        trace: row[0].to_string(),
        run: Run { policy, capacity, seed: 0 },
        fraction: row[3].to_string(),
        requests: row[4].parse().unwrap(),
        misses: row[5].parse().unwrap(),
    }
}

fn sha256(path: &Path) -> String {
    let mut raw = zstd::Decoder::new(File::open(path).unwrap()).unwrap();
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match std::io::Read::read(&mut raw, &mut buffer).unwrap() {
            0 => break,
            nr => digest.update(&buffer[..nr]),
        }
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_trace_is_read_as_the_manifest_counts_it() {
    let Some(folder) = traces::folder() else { return };
    manifest(&folder).par_iter().for_each(|trace| {
        let path = folder.join(&trace.file);
        assert_eq!(sha256(&path), trace.sha256_raw, "{}", trace.file);
        let info = info(&path, None).unwrap();
        let format: Format = trace.format.parse().unwrap();
        let counted = (info.trace, info.format, info.requests, info.unique);
        let expected = (trace.name.clone(), format.to_string(), trace.requests, trace.unique);
        assert_eq!(counted, expected);
    });
}

#[test]
fn reads_and_writes_are_distinguished() {
    let Some(folder) = traces::folder() else { return };
    let writes = |file: &str| info(&folder.join(file), None).unwrap().writes;
    assert_eq!(writes("cloudphysics_io.csv.zst"), 66_898);
    assert_eq!(writes("ucsd_gzip.addr.zst"), 160_603);
    assert_eq!(writes("ucsd_mcf.addr.zst"), 721_258);
}

#[test]
fn every_verified_miss_count_is_met_exactly() {
    let Some(folder) = traces::folder() else { return };
    let rows = verified(&folder);
    let mut by_trace: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| by_trace.entry(&row.trace).or_default().push(row));
    let traces = manifest(&folder);
    assert_eq!(by_trace.len(), traces.len(), "every trace has verified rows");
    let failures: Vec<String> = traces
        .par_iter()
        .flat_map(|trace| check(&folder.join(&trace.file), trace, &by_trace[&trace.name[..]]))
        .collect();
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), rows.len());
    println!("{} verified rows met", rows.len());
}

/// Differences of one trace: the optima on the trace as a whole, the others on it as a stream.
fn check(path: &Path, trace: &Trace, rows: &[&Row]) -> Vec<String> {
    let policies: BTreeSet<&str> = rows.iter().map(|row| row.run.policy.name()).collect();
    assert_eq!(policies.len(), 5, "{}: all five policies have rows", trace.name);
    let open = || TraceReader::open(path, None, View::Requests).unwrap();
    let (optima, online): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.run.policy.bypass().is_some());
    let runs = |rows: &[&Row]| rows.iter().map(|row| row.run).collect::<Vec<_>>();
    let whole = replay_whole(&Dense::load(open()).unwrap(), &runs(&optima));
    let stream = replay_stream(open(), &runs(&online)).unwrap();
    let misses = whole.misses.iter().chain(&stream.misses);
    let both = optima.iter().chain(&online).zip(misses);
    both.filter_map(|(row, &misses)| difference(row, trace, misses)).collect()
}

fn difference(row: &Row, trace: &Trace, misses: u64) -> Option<String> {
    let percent = row.fraction.parse::<f64>().unwrap() * 100.0;
    let share: Capacity = format!("{percent:.4}%").parse().unwrap();
    let size = share.pages(trace.unique as u32);
    let ours = (misses, size, trace.requests);
    let theirs = (row.misses, row.run.capacity, row.requests);
    let what = || format!("{} {:?}: {ours:?}, reference {theirs:?}", row.trace, row.run);
    (ours != theirs).then(what)
}
