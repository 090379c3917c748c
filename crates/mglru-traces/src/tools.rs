//! Computes what `mglru trace info`, `replay` and `mrc` say. The types here are the JSON documents
//! that the commands print.
//!
//! A replay reads the trace as a stream; the optima need it whole, and sizes given as a share of
//! the distinct pages need a pass that counts them first.

mod capacity;
mod curve;
mod write;

use std::path::Path;

use mglru_workload::trace::{
    Dense, Format, Summary, TraceError, TraceFile, TraceReader, View, trace_name,
};
use serde::{Deserialize, Serialize};

pub use capacity::{BadCapacity, Capacity};
pub use curve::{Counting, Curve, Knee, Point, curve};
pub use write::{Made, Output, Sink, anonymize, convert, import, import_from};

use crate::flat::{Outcome, Policy, Run, replay_stream, replay_whole};

/// Holds the answer of `mglru trace info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceInfo {
    /// Names the trace: its file without folder and suffixes.
    pub trace: String,
    /// Names the format.
    pub format: String,
    /// Counts requests.
    pub requests: u64,
    /// Counts distinct pages (blocks, keys).
    pub unique: u64,
    /// Counts requests that read.
    pub reads: u64,
    /// Counts requests that write.
    pub writes: u64,
}

/// Describes the replay.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// Holds the trace.
    pub file: TraceFile,
    /// Names its format; guessed from name or content where absent.
    pub format: Option<Format>,
    /// Selects the accesses that count as requests.
    pub view: View,
    /// Lists policies.
    pub policies: Vec<Policy>,
    /// Lists sizes; every policy is run at every size.
    pub sizes: Vec<Capacity>,
    /// Seeds random replacement.
    pub seed: u64,
}

/// Holds the answer of `mglru trace replay`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayReport {
    /// Names the trace.
    pub trace: String,
    /// Counts requests.
    pub requests: u64,
    /// Counts distinct pages (blocks, keys).
    pub unique: u64,
    /// Holds one result per policy and size: by policy, then by size, in the order asked for.
    pub results: Vec<ReplayResult>,
}

/// Holds the result of one policy at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// Names the policy.
    pub policy: String,
    /// Holds the size of the cache, pages.
    pub size_pages: u64,
    /// Counts requests for pages that were not in the cache.
    pub misses: u64,
    /// Holds `misses` over the trace's requests.
    pub miss_ratio: f64,
}

impl ReplayResult {
    /// Makes the result of a replay of `requests` requests, at least one.
    pub fn new(policy: impl ToString, size_pages: u64, misses: u64, requests: u64) -> Self {
        let miss_ratio = misses as f64 / requests as f64;
        ReplayResult { policy: policy.to_string(), size_pages, misses, miss_ratio }
    }
}

/// Counts a trace's requests and pages.
///
/// # Errors
/// The trace is missing, of unknown format, truncated, corrupt or empty.
pub fn info(path: &Path, format: Option<Format>) -> Result<TraceInfo, TraceError> {
    let reader = TraceReader::open(path, format, View::Requests)?;
    let format = reader.format().to_string();
    let summary = Summary::of(reader)?;
    Ok(TraceInfo {
        trace: trace_name(path),
        format,
        requests: summary.requests,
        unique: summary.unique.into(),
        reads: summary.requests - summary.writes,
        writes: summary.writes,
    })
}

/// Replays a trace under every policy at every size.
///
/// # Errors
/// The trace is missing, of unknown format, truncated, corrupt, empty or too large.
pub fn replay(request: &ReplayRequest) -> Result<ReplayReport, TraceError> {
    let needs_future = request.policies.iter().any(|policy| policy.bypass().is_some());
    let (runs, outcome) = if needs_future {
        let trace = Dense::load(request.open()?)?;
        let runs = request.runs(trace.unique);
        let outcome = replay_whole(&trace, &runs);
        (runs, outcome)
    } else {
        let runs = request.runs(request.unique()?);
        let outcome = replay_stream(request.open()?, &runs)?;
        (runs, outcome)
    };
    Ok(report(request.file.path(), &runs, &outcome))
}

impl ReplayRequest {
    /// Starts to read the trace from its beginning.
    ///
    /// # Errors
    /// The trace is of another kind, of unknown format, truncated or corrupt.
    pub fn open(&self) -> Result<TraceReader, TraceError> {
        self.file.reader(self.format, self.view)
    }

    /// Distinct pages, where a size depends on them; otherwise they need not be counted first.
    fn unique(&self) -> Result<u32, TraceError> {
        match self.sizes.iter().any(|size| size.is_share()) {
            true => Ok(Summary::of(self.open()?)?.unique),
            false => Ok(0),
        }
    }

    fn runs(&self, unique: u32) -> Vec<Run> {
        let run =
            |policy, size: &Capacity| Run { policy, capacity: size.pages(unique), seed: self.seed };
        let of_policy = |&policy| self.sizes.iter().map(move |size| run(policy, size));
        self.policies.iter().flat_map(of_policy).collect()
    }
}

fn report(path: &Path, runs: &[Run], outcome: &Outcome) -> ReplayReport {
    let results = runs.iter().zip(&outcome.misses);
    ReplayReport {
        trace: trace_name(path),
        requests: outcome.requests,
        unique: outcome.unique.into(),
        results: results
            .map(|(run, &misses)| {
                ReplayResult::new(run.policy, run.capacity, misses, outcome.requests)
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(content: &str) -> tempfile::NamedTempFile {
        let file = tempfile::Builder::new().suffix(".addr").tempfile().unwrap();
        std::fs::write(file.path(), content).unwrap();
        file
    }

    fn request(path: &Path, policies: &[Policy], sizes: &[&str]) -> ReplayRequest {
        ReplayRequest {
            file: TraceFile::open(path).unwrap(),
            format: None,
            view: View::Requests,
            policies: policies.to_vec(),
            sizes: sizes.iter().map(|size| size.parse().unwrap()).collect(),
            seed: 1,
        }
    }

    #[test]
    fn info_is_the_published_document() {
        let file = trace("s 0x1000 1\nl 0x2000 1\nl 0x1004 1\n");
        let info = info(file.path(), None).unwrap();
        let name = trace_name(file.path());
        let expected = format!(
            r#"{{"trace":"{name}","format":"ucsd-address","requests":3,{}}}"#,
            r#""unique":2,"reads":2,"writes":1"#
        );
        assert_eq!(serde_json::to_string(&info).unwrap(), expected);
    }

    #[test]
    fn replay_is_the_published_document() {
        let file = trace("s 0x1000 1\nl 0x2000 1\nl 0x1004 1\nl 0x3000 1\n");
        let asked = request(file.path(), &[Policy::Lru, Policy::Fifo], &["1", "67%"]);
        let report = replay(&asked).unwrap();
        let text = serde_json::to_string(&report).unwrap();
        let (head, results) = text.split_once(r#","results":"#).unwrap();
        let name = trace_name(file.path());
        assert_eq!(head, format!(r#"{{"trace":"{name}","requests":4,"unique":3"#));
        let expected = concat!(
            r#"[{"policy":"lru","size_pages":1,"misses":4,"miss_ratio":1.0},"#,
            r#"{"policy":"lru","size_pages":2,"misses":3,"miss_ratio":0.75},"#,
            r#"{"policy":"fifo","size_pages":1,"misses":4,"miss_ratio":1.0},"#,
            r#"{"policy":"fifo","size_pages":2,"misses":3,"miss_ratio":0.75}]}"#
        );
        assert_eq!(results, expected);
    }

    #[test]
    fn stream_and_whole_agree_and_errors_come_through_both() {
        let lines: String =
            (0..5000).map(|i| format!("l {:#x} 1\n", (i * i % 977) << 12)).collect();
        let file = trace(&lines);
        let online = [Policy::Lru, Policy::Clock, Policy::Sieve, Policy::Arc, Policy::Random];
        let sizes = ["1", "10%", "1MiB"];
        let stream = replay(&request(file.path(), &online, &sizes)).unwrap();
        let with_optimum = [&online[..], &[Policy::Min]].concat();
        let whole = replay(&request(file.path(), &with_optimum, &sizes)).unwrap();
        assert_eq!(stream.results, whole.results[..stream.results.len()]);
        let broken = trace(&(lines + "x\n"));
        for policies in [&online[..], &with_optimum] {
            let error = replay(&request(broken.path(), policies, &["1"])).unwrap_err();
            assert!(error.to_string().contains("line 5001"), "{error}");
        }
        let empty = trace("\n");
        for policies in [&online[..], &with_optimum] {
            let error = replay(&request(empty.path(), policies, &["1"])).unwrap_err();
            assert!(error.to_string().contains("holds no requests; read as"), "{error}");
        }
    }
}
