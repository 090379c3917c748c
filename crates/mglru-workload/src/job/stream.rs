//! A stream of a job: a pattern over a range of a region's pages, with its own random numbers and
//! position for the whole job.

use crate::rng::Rng;
use crate::sampler::{Sampler, is_write};

/// Tells how a stream chooses pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Chooses uniformly.
    Uniform,
    /// Chooses in order, cyclically.
    Sequential {
        /// Holds the offset of the first page drawn.
        start: u32,
    },
    /// Chooses by popularity rank.
    Zipf {
        /// Holds the exponent in millionths.
        theta_micro: u64,
        /// Numbers the permutation of ranks over pages; 0: none.
        scatter: u64,
    },
}

/// Describes a stream as the job's text gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// Numbers the task that draws from it.
    pub task: u32,
    /// Numbers the region that it draws from.
    pub region: usize,
    /// Says how it chooses pages.
    pub pattern: Pattern,
    /// Counts the pages that it chooses among.
    pub pages: u32,
    /// Holds the first of them.
    pub base: u32,
    /// Counts writes per thousand accesses; from 1000 on all are.
    pub write_per_mille: u64,
}

/// Describes one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Numbers the region of the job.
    pub region: usize,
    /// Holds the page in the region.
    pub page: u32,
    /// Says that the access is a write.
    pub write: bool,
}

/// A stream while it runs.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    spec: StreamSpec,
    sampler: Sampler,
    rng: Rng,
}

impl Stream {
    pub(super) fn new(spec: &StreamSpec, sampler: Sampler, rng: Rng) -> Self {
        Self { spec: *spec, sampler, rng }
    }

    /// The page first, then the decision to write.
    pub(super) fn draw(&mut self) -> Draw {
        let page = self.spec.base + self.sampler.draw(&mut self.rng);
        let write = is_write(&mut self.rng, self.spec.write_per_mille);
        Draw { region: self.spec.region, page, write }
    }
}
