//! Many caches over one trace: each block is decoded once, and while the caches work on it in
//! parallel the next one is being decoded. Results do not depend on the number of threads.

use mglru_workload::trace::{Dense, DenseReader, TraceError, TraceReader};
use rayon::prelude::*;

use super::optimal::{NextUses, min_misses};
use super::{Cache, Policy};

/// Requests of a block: large enough that handing it over costs nothing.
const BLOCK_REQUESTS: usize = 1 << 16;

/// Describes one cache to be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Names the policy.
    pub policy: Policy,
    /// Counts pages in the cache, at least one.
    pub capacity: u64,
    /// Seeds [`Policy::Random`].
    pub seed: u64,
}

/// Holds the counts of a replay; misses stand in the order of the runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Counts requests of the trace.
    pub requests: u64,
    /// Counts distinct pages.
    pub unique: u32,
    /// Counts misses of each run.
    pub misses: Vec<u64>,
}

/// Replays a trace as a stream, in memory proportional to its distinct pages.
///
/// # Errors
/// The trace is truncated, corrupt, empty, or has too many distinct pages.
///
/// # Panics
/// A run asks for an optimum: these need [`replay_whole`].
pub fn replay_stream(reader: TraceReader, runs: &[Run]) -> Result<Outcome, TraceError> {
    let cache = |run: &Run| run.policy.cache(run.capacity, run.seed).expect("needs the future");
    replay_caches(reader, runs.iter().map(cache).collect())
}

/// Replays a trace as a stream through caches of whatever kind, the caller's own among them.
///
/// # Errors
/// The trace is truncated, corrupt, empty, or has too many distinct pages.
pub fn replay_caches(
    reader: TraceReader,
    caches: Vec<Box<dyn Cache>>,
) -> Result<Outcome, TraceError> {
    let mut caches: Vec<(Box<dyn Cache>, u64)> =
        caches.into_iter().map(|cache| (cache, 0)).collect();
    let mut reader = DenseReader::new(reader);
    let (mut block, mut next) = (Vec::new(), Vec::new());
    let mut requests = 0;
    let mut more = reader.read(BLOCK_REQUESTS, &mut block)?;
    while more {
        let unique = reader.unique();
        let (read, ()) = rayon::join(
            || reader.read(BLOCK_REQUESTS, &mut next),
            || {
                caches.par_iter_mut().for_each(|(cache, misses)| {
                    *misses += cache.replay(unique, &block);
                });
            },
        );
        requests += block.len() as u64;
        more = read?;
        std::mem::swap(&mut block, &mut next);
    }
    if requests == 0 {
        return Err(reader.no_requests());
    }
    let misses = caches.into_iter().map(|(_, misses)| misses).collect();
    Ok(Outcome { requests, unique: reader.unique(), misses })
}

/// Replays a trace held in memory under any policies.
pub fn replay_whole(trace: &Dense, runs: &[Run]) -> Outcome {
    let needs_future = runs.iter().any(|run| run.policy.bypass().is_some());
    let uses = needs_future.then(|| NextUses::of(trace));
    let misses = runs
        .par_iter()
        .map(|run| match (run.policy.bypass(), &uses) {
            (Some(bypass), Some(uses)) => min_misses(trace, uses, run.capacity, bypass),
            _ => {
                let cache = run.policy.cache(run.capacity, run.seed);
                cache.expect("not an optimum").replay(trace.unique, &trace.ids)
            }
        })
        .collect();
    Outcome { requests: trace.ids.len() as u64, unique: trace.unique, misses }
}
