//! Flat caches: one set of equal pages and a replacement rule, the world of the cache literature.
//! They are exact, work from one page up and see dense page numbers only (`mglru_workload::trace`),
//! so that the request path indexes arrays and never hashes.
//!
//! Caches that need only the past are fed block by block ([`Cache`]); the two optima
//! ([`min_misses`]) need the whole trace.

mod arc;
mod clock;
mod distances;
mod fifo;
mod lists;
mod lru;
mod optimal;
mod policy;
mod random;
mod s3fifo;
mod sieve;
mod stream;
#[cfg(test)]
mod tests;

pub use arc::Arc;
pub use clock::Clock;
pub use distances::{Distances, Estimate, SLICES, Sampled};
pub use fifo::Fifo;
pub use lru::Lru;
pub use optimal::{Bypass, NextUses, min_misses};
pub use policy::{Policy, UnknownPolicy};
pub use random::Random;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;
pub use stream::{Outcome, Run, replay_caches, replay_stream, replay_whole};

/// Simulates a cache of a fixed number of pages that decides by the past alone. A policy of one's
/// own is one, and is replayed beside the others:
///
/// ```
/// use mglru_traces::flat::{Cache, Lru, replay_caches};
/// use mglru_workload::trace::{TraceReader, View};
///
/// /// Keeps the first pages that come and no other.
/// struct FirstCome {
///     room: usize,
///     pages: Vec<u32>,
/// }
///
/// impl Cache for FirstCome {
///     fn grow(&mut self, _: u32) {}
///
///     fn access(&mut self, page: u32) -> bool {
///         let hit = self.pages.contains(&page);
///         if !hit && self.pages.len() < self.room {
///             self.pages.push(page);
///         }
///         hit
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("loop.txt");
/// # std::fs::write(&path, "1\n2\n3\n".repeat(100))?;
/// let trace = TraceReader::open(&path, None, View::Requests)?;
/// let own = FirstCome { room: 2, pages: Vec::new() };
/// let found = replay_caches(trace, vec![Box::new(own), Box::new(Lru::new(2))])?;
/// assert_eq!(found.misses, [102, 300]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Cache: Send {
    /// Pages numbered below `unique` may be asked for from now on.
    fn grow(&mut self, unique: u32);

    /// Asks for a page, which is in the cache afterwards; true if it was there before.
    fn access(&mut self, page: u32) -> bool;

    /// Asks for many pages, all below `unique`; returns how many were missing.
    fn replay(&mut self, unique: u32, pages: &[u32]) -> u64 {
        self.grow(unique);
        pages.iter().map(|&page| u64::from(!self.access(page))).sum()
    }
}
