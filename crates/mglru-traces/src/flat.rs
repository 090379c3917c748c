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
pub use stream::{Outcome, Run, replay_stream, replay_whole};

/// A cache of a fixed number of pages that decides by the past alone.
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
