//! Sizes of the storage engine and its load: the published set-up as defaults.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::ycsb::{Mix, Population};

use super::{BLOCK_PAGES, DOCUMENTS_PER_BLOCK, INDEX_FRAME_PAGES};

const GIB: f64 = (1u64 << 30) as f64;
const PAGE_BYTES: u64 = 4096;

/// Describes a mongod with its cache, data and clients. Counts, unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WiredTigerParams {
    /// Chooses the YCSB workload: `a`, `b`, `c` or `f`.
    pub mix: Mix,
    /// Counts the documents in the collection.
    pub records: u64,
    /// Counts the measured operations of all clients together, from a cold start.
    pub operations: u64,
    /// Counts further operations, in a phase of their own (`warm`).
    pub warm_operations: u64,
    /// Begins the phase `run.last_half` after half of the measured operations.
    pub split_run: bool,
    /// Counts the client threads, each served by a thread of its own.
    pub threads: u32,
    /// Sets the size of the storage engine's cache, bytes.
    pub cache_bytes: u64,
    /// Sets the size of mongod's memory besides the cache, bytes.
    pub heap_bytes: u64,
    /// Counts the leaf blocks the cache could hold if it were allowed to be 100 % full.
    pub cache_blocks: u32,
    /// Counts the keys in one leaf of the `_id` index.
    pub keys_per_index_leaf: u32,
    /// Sets how many index leaves stay cached, per thousand.
    pub index_cached_per_mille: u32,
    /// Sets the percentage of full at which the eviction workers begin.
    pub full_target: u32,
    /// Sets the percentage of full from which clients evict, too.
    pub full_trigger: u32,
    /// Sets the percentage of dirty at which the eviction workers begin.
    pub dirty_target: u32,
    /// Sets the percentage of dirty from which clients evict, too.
    pub dirty_trigger: u32,
    /// Counts the eviction workers.
    pub eviction_workers: u32,
    /// Sets how often idle eviction workers look, in nanoseconds.
    pub eviction_poll_ns: u64,
    /// Sets the CPU time to evict a clean block, in nanoseconds.
    pub evict_clean_ns: u64,
    /// Sets the CPU time to write a block out, in nanoseconds.
    pub write_block_ns: u64,
    /// Counts the operations between checkpoints.
    pub checkpoint_every: u64,
    /// Sets the size of a journal segment file, bytes.
    pub journal_segment_bytes: u64,
    /// Sets how often the journal is made durable, in nanoseconds.
    pub journal_flush_ns: u64,
    /// Sets the CPU and network time of an operation, in nanoseconds.
    pub cpu_ns: u64,
    /// Names the group it runs in by its path.
    pub group: String,
}

impl Default for WiredTigerParams {
    /// E1: 20 M documents, 6 M operations, cache of 4.5 GiB.
    fn default() -> Self {
        Self {
            mix: Mix::B,
            records: 20_000_000,
            operations: 6_000_000,
            warm_operations: 0,
            split_run: false,
            threads: 32,
            cache_bytes: (4.5 * GIB) as u64,
            heap_bytes: (0.8 * GIB) as u64,
            cache_blocks: 125_000,
            keys_per_index_leaf: 440,
            index_cached_per_mille: 800,
            full_target: 80,
            full_trigger: 95,
            dirty_target: 5,
            dirty_trigger: 20,
            eviction_workers: 4,
            eviction_poll_ns: 1_000_000,
            evict_clean_ns: 2_000,
            write_block_ns: 20_000,
            checkpoint_every: 3_800_000,
            journal_segment_bytes: 100_000_000,
            journal_flush_ns: 100_000_000,
            cpu_ns: 190_000,
            group: "/mongo".to_owned(),
        }
    }
}

impl WiredTigerParams {
    /// Returns the published set-up times `scale`, such as 1/64.
    pub fn at_scale(scale: f64) -> Self {
        Self::default().scaled(scale)
    }

    /// Multiplies data, caches, operations and the distance of checkpoints; blocks, mixes,
    /// percentages, threads and times stay.
    pub fn scaled(&self, scale: f64) -> Self {
        let times = |n: u64| (n as f64 * scale).round() as u64;
        Self {
            records: times(self.records),
            operations: times(self.operations),
            warm_operations: times(self.warm_operations),
            cache_bytes: times(self.cache_bytes),
            heap_bytes: times(self.heap_bytes),
            cache_blocks: times(u64::from(self.cache_blocks)) as u32,
            checkpoint_every: times(self.checkpoint_every),
            journal_segment_bytes: times(self.journal_segment_bytes).max(1 << 20),
            ..self.clone()
        }
    }

    /// Checks every number's range, and that no keys conflict.
    ///
    /// # Errors
    /// Fails if a number is out of range or keys conflict; the error names the key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("wiredtiger.records", self.records, 1000, 1 << 33)?;
        // The cache counts its uses, at most two an operation, in 32 bits.
        in_range("wiredtiger.operations", self.operations, 1, 1 << 30)?;
        in_range("wiredtiger.warm_operations", self.warm_operations, 0, (1 << 30) - 1)?;
        in_range("wiredtiger.threads", self.threads, 1, 4096)?;
        let least = self.threads + self.eviction_workers + 8;
        in_range("wiredtiger.cache_blocks", self.cache_blocks, least, 1 << 28)?;
        in_range("wiredtiger.keys_per_index_leaf", self.keys_per_index_leaf, 1, 100_000)?;
        in_range("wiredtiger.index_cached_per_mille", self.index_cached_per_mille, 1, 1000)?;
        in_range("wiredtiger.eviction_workers", self.eviction_workers, 1, 64)?;
        in_range("wiredtiger.eviction_poll_ns", self.eviction_poll_ns, 1000, 1_000_000_000)?;
        in_range("wiredtiger.checkpoint_every", self.checkpoint_every, 1, 1 << 40)?;
        let segment = self.journal_segment_bytes;
        in_range("wiredtiger.journal_segment_bytes", segment, 1 << 12, 1 << 32)?;
        in_range("wiredtiger.journal_flush_ns", self.journal_flush_ns, 1000, 60_000_000_000)?;
        self.check_percentages()?;
        self.check_combinations()
    }

    fn check_percentages(&self) -> Result<(), WorkloadError> {
        in_range("wiredtiger.full_trigger", self.full_trigger, 2, 100)?;
        in_range("wiredtiger.full_target", self.full_target, 1, self.full_trigger - 1)?;
        in_range("wiredtiger.dirty_trigger", self.dirty_trigger, 2, 100)?;
        in_range("wiredtiger.dirty_target", self.dirty_target, 1, self.dirty_trigger - 1)?;
        Ok(())
    }

    fn check_combinations(&self) -> Result<(), WorkloadError> {
        let conflict = |key, reason| Err(WorkloadError::Conflict { key, reason });
        if self.mix.inserts() || self.mix == Mix::E {
            return conflict("wiredtiger.mix", "must be a, b, c or f: documents are loaded".into());
        }
        let total = (self.cache_bytes.saturating_add(self.heap_bytes)) / PAGE_BYTES;
        let used = self.leaf_pages() + self.index_pages();
        if total < used + u64::from(self.threads) {
            let reason = format!("cache and heap of {total} pages cannot hold {used} pages");
            return conflict("wiredtiger.cache_bytes", reason);
        }
        if total > u64::from(u32::MAX) {
            return conflict("wiredtiger.cache_bytes", "more than 16 TiB with the heap".into());
        }
        Ok(())
    }

    /// Counts the leaf blocks of the collection.
    pub fn blocks(&self) -> u32 {
        self.records.div_ceil(DOCUMENTS_PER_BLOCK) as u32
    }

    /// Counts the leaves of the `_id` index.
    pub fn index_leaves(&self) -> u32 {
        self.records.div_ceil(u64::from(self.keys_per_index_leaf)) as u32
    }

    /// Counts the index leaves that fit the cache.
    pub fn index_frames(&self) -> u32 {
        let frames = u64::from(self.index_leaves()) * u64::from(self.index_cached_per_mille) / 1000;
        frames.max(1) as u32
    }

    /// Counts the pages of memory for leaf blocks.
    pub fn leaf_pages(&self) -> u64 {
        u64::from(self.cache_blocks) * u64::from(BLOCK_PAGES)
    }

    /// Counts the pages of memory for index leaves.
    pub fn index_pages(&self) -> u64 {
        u64::from(self.index_frames()) * u64::from(INDEX_FRAME_PAGES)
    }

    /// Counts the pages of all other memory: heap, and the part of the cache that holds no leaf.
    pub fn other_pages(&self) -> u32 {
        let total = (self.cache_bytes + self.heap_bytes) / PAGE_BYTES;
        (total - self.leaf_pages() - self.index_pages()) as u32
    }

    pub(super) fn population(&self) -> Population {
        let Self { mix, records, threads, .. } = *self;
        Population { mix, records, operations: self.operations + self.warm_operations, threads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_64th_is_as_published() {
        let small = WiredTigerParams::at_scale(1.0 / 64.0);
        small.check().unwrap();
        assert_eq!((small.records, small.operations, small.threads), (312_500, 93_750, 32));
        assert_eq!((small.cache_bytes, small.checkpoint_every), (72 << 20, 59_375));
    }

    #[test]
    fn footprint_and_data_are_as_published() {
        let full = WiredTigerParams::default();
        full.check().unwrap();
        assert_eq!(full.blocks(), 833_334);
        let data = u64::from(full.blocks()) * 28_672;
        assert!((data as f64 / GIB - 22.25).abs() < 0.05);
        let index = f64::from(full.index_leaves()) * 14_336.0 / GIB;
        assert!((0.5..0.7).contains(&index), "{index}");
        let memory = full.leaf_pages() + full.index_pages() + u64::from(full.other_pages());
        assert!((memory as f64 * 4096.0 / GIB - 5.3).abs() < 0.001);
    }

    #[test]
    fn proportions_survive_scaling() {
        let (full, small) = (WiredTigerParams::default(), WiredTigerParams::at_scale(1.0 / 64.0));
        let ratio = |a: u64, b: u64| a as f64 / b as f64;
        for (a, b) in [
            (full.blocks() as u64, small.blocks() as u64),
            (full.leaf_pages(), small.leaf_pages()),
            (full.index_pages(), small.index_pages()),
            (full.other_pages() as u64, small.other_pages() as u64),
        ] {
            assert!((ratio(a, b) / 64.0 - 1.0).abs() < 0.005, "{a} {b}");
        }
    }

    #[test]
    fn wrong_numbers_name_their_key() {
        let error = |params: WiredTigerParams| params.check().unwrap_err().to_string();
        let base = WiredTigerParams::default;
        assert!(error(WiredTigerParams { mix: Mix::D, ..base() }).starts_with("wiredtiger.mix: "));
        let wrong = WiredTigerParams { full_target: 96, ..base() };
        assert_eq!(error(wrong), "wiredtiger.full_target = 96: must be from 1 to 94");
        let wrong = WiredTigerParams { cache_bytes: 1 << 30, ..base() };
        assert!(error(wrong).starts_with("wiredtiger.cache_bytes: "));
    }
}
