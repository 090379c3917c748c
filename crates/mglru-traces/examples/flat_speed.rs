//! Seconds of one flat replay, opening, decoding and numbering included: the part of
//! `bench/flat_vs_libcachesim.py` that is ours.
//!
//! `flat_speed TRACE POLICY SIZE` prints `{"seconds", "requests", "misses"}`. The number of
//! threads is rayon's (`RAYON_NUM_THREADS`).

use std::time::Instant;

use mglru_traces::tools::{ReplayRequest, replay};
use mglru_workload::trace::{TraceFile, View};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [trace, policy, size] = arguments.as_slice() else {
        return Err("usage: flat_speed TRACE POLICY SIZE".into());
    };
    let request = ReplayRequest {
        file: TraceFile::open(trace)?,
        format: None,
        view: View::Requests,
        policies: vec![policy.parse()?],
        sizes: vec![size.parse()?],
        seed: 1,
    };
    let start = Instant::now();
    let report = replay(&request)?;
    let seconds = start.elapsed().as_secs_f64();
    let misses = report.results[0].misses;
    let requests = report.requests;
    println!(r#"{{"seconds":{seconds},"requests":{requests},"misses":{misses}}}"#);
    Ok(())
}
