//! Dirty limits and the flusher's times, as a plan says them.

use serde::{Deserialize, Serialize};

use crate::spec::{SpecError, contradiction, in_range};

/// Sets the dirty limits and the flusher's times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DirtySpec {
    /// Sets the percentage of available memory from which on the flusher writes.
    pub background_ratio: u32,
    /// Sets the percentage of available memory that dirty data never exceeds.
    pub ratio: u32,
    /// Sets the age from which on dirty data is written anyway, ms.
    pub expire_ms: u64,
    /// Sets how often the flusher looks for such data, ms.
    pub wake_ms: u64,
    /// Bounds the length of the flusher's requests, KiB.
    pub request_kb: u32,
    /// Gives groups dirty limits of their own, by their own available memory.
    pub per_group: bool,
    /// Has those limits see what a group held dirty, under writeback and cached when its statistics
    /// were last summed up (`stat_flush_ms`), as booted kernels do when dd fills a small group;
    /// otherwise what it holds now, which is nearer to kernels under MongoDB.
    pub summed: bool,
}

impl Default for DirtySpec {
    fn default() -> Self {
        Self {
            background_ratio: 10,
            ratio: 20,
            expire_ms: 30_000,
            wake_ms: 5_000,
            request_kb: 1_280,
            per_group: true,
            summed: false,
        }
    }
}

impl DirtySpec {
    /// Returns the length of the flusher's longest request, pages.
    pub fn request_pages(&self) -> u64 {
        u64::from(self.request_kb / 4).max(1)
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        in_range("dirty.ratio", self.ratio, 1, 100)?;
        in_range("dirty.background_ratio", self.background_ratio, 0, 100)?;
        in_range("dirty.expire_ms", self.expire_ms, 1, 3_600_000)?;
        in_range("dirty.wake_ms", self.wake_ms, 1, 3_600_000)?;
        in_range("dirty.request_kb", self.request_kb, 4, 65_536)?;
        if self.background_ratio < self.ratio {
            return Ok(());
        }
        let problem = format!("not below dirty.ratio ({})", self.ratio);
        contradiction("dirty.background_ratio", self.background_ratio, problem)
    }
}
