//! Dirty limits and the flusher's times, as a plan says them.

use serde::{Deserialize, Serialize};

use crate::spec::{SpecError, contradiction, in_range};

/// Sets the dirty limits and the flusher's times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DirtySpec {
    /// Percent of available memory from which on the flusher writes.
    pub background_ratio: u32,
    /// Percent of available memory that is never exceeded.
    pub ratio: u32,
    /// Age from which on dirty data is written anyway, ms.
    pub expire_ms: u64,
    /// How often the flusher looks for such data, ms.
    pub wake_ms: u64,
    /// Longest request of the flusher, KiB.
    pub request_kb: u32,
    /// Groups have dirty limits of their own, by their own available memory.
    pub per_group: bool,
    /// Those limits see what a group held dirty, under writeback and cached when its statistics
    /// were last summed up (`stat_flush_ms`), as Linux 6.12 and later do; otherwise what it holds
    /// now.
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
            summed: true,
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
