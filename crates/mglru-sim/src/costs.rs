//! Prices each step of memory management in processor time (experiments §0.4), by name.
//!
//! Whole nanoseconds, except what happens once per page-table entry or per access: picoseconds.
//! Where the default says "counted", it is the mean of instructions that Linux 6.12.117 executed
//! with the classic and the multi-gen LRU, at 3 GHz and one instruction a cycle (`docs/costs.md`).

use mglru::types::Nanos;
use serde::{Deserialize, Serialize};

/// Sets the processor time of each step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// Sets the time of an access that finds its page mapped or cached, ps.
    pub resident_access_ps: u64,
    /// Sets the time of a page fault, without what it has to allocate or wait for, ns.
    pub minor_fault_ns: u64,
    /// Sets the time for each page that fault-around maps besides, ns.
    pub fault_around_page_ns: u64,
    /// Sets the time to allocate a page, ns.
    pub alloc_ns: u64,
    /// Sets the time to judge one folio in reclaim, ns.
    pub scan_ns: u64,
    /// Sets the time to walk the reverse map, per mapping, ns.
    pub rmap_ns: u64,
    /// Sets the time to unmap a folio, with the TLB flush, ns.
    pub unmap_ns: u64,
    /// Sets how long the lock of an lruvec is held, per folio, ns; holds of one lruvec do not
    /// overlap.
    pub lru_lock_ns: u64,
    /// Sets the time to move a page to another node, with the TLB flush, ns.
    pub migrate_ns: u64,
    /// Sets the time to swap a page in or out, besides what the device takes, ns.
    pub swap_ns: u64,
    /// Sets the time to compress a page into zram, ns.
    pub zram_compress_ns: u64,
    /// Sets the time to decompress a page out of zram, ns.
    pub zram_decompress_ns: u64,
    /// Sets the time to recognise or make an all-zero page, ns.
    pub zero_page_ns: u64,
    /// Sets the time to look at a page-table entry in an aging walk, ps.
    pub aging_pte_ps: u64,
    /// Sets the time to clear a young bit, ps.
    pub young_clear_ps: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            resident_access_ps: 0,
            minor_fault_ns: 500,
            // Counted, per page reclaimed, each mapped around once: 175 and 168.
            fault_around_page_ns: 57,
            // Counted, with the charge and without clearing: 749 and 775.
            alloc_ns: 254,
            scan_ns: 80,
            rmap_ns: 400,
            // Counted, with flushes in batches and one address space: 179 and 166.
            unmap_ns: 58,
            lru_lock_ns: 50,
            migrate_ns: 1_500,
            swap_ns: 800,
            zram_compress_ns: 6_000,
            zram_decompress_ns: 2_500,
            zero_page_ns: 300,
            aging_pte_ps: 4_000,
            young_clear_ps: 20_000,
        }
    }
}

impl Costs {
    /// Makes every step free: time passes on devices and in the workload alone.
    pub fn free() -> Self {
        Self {
            resident_access_ps: 0,
            minor_fault_ns: 0,
            fault_around_page_ns: 0,
            alloc_ns: 0,
            scan_ns: 0,
            rmap_ns: 0,
            unmap_ns: 0,
            lru_lock_ns: 0,
            migrate_ns: 0,
            swap_ns: 0,
            zram_compress_ns: 0,
            zram_decompress_ns: 0,
            zero_page_ns: 0,
            aging_pte_ps: 0,
            young_clear_ps: 0,
        }
    }

    /// Lists every cost by its key, in the unit of the key.
    pub fn named(&self) -> [(&'static str, u64); 15] {
        [
            ("resident_access_ps", self.resident_access_ps),
            ("minor_fault_ns", self.minor_fault_ns),
            ("fault_around_page_ns", self.fault_around_page_ns),
            ("alloc_ns", self.alloc_ns),
            ("scan_ns", self.scan_ns),
            ("rmap_ns", self.rmap_ns),
            ("unmap_ns", self.unmap_ns),
            ("lru_lock_ns", self.lru_lock_ns),
            ("migrate_ns", self.migrate_ns),
            ("swap_ns", self.swap_ns),
            ("zram_compress_ns", self.zram_compress_ns),
            ("zram_decompress_ns", self.zram_decompress_ns),
            ("zero_page_ns", self.zero_page_ns),
            ("aging_pte_ps", self.aging_pte_ps),
            ("young_clear_ps", self.young_clear_ps),
        ]
    }

    /// Returns the time of an aging walk over `entries`, `young` of which were cleared; rounded up.
    pub fn aging_walk(&self, entries: u64, young: u64) -> Nanos {
        (entries * self.aging_pte_ps + young * self.young_clear_ps).div_ceil(1_000)
    }

    /// Returns the time of `accesses` that found their page; rounded up.
    pub fn resident(&self, accesses: u64) -> Nanos {
        (accesses * self.resident_access_ps).div_ceil(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cost_can_be_set_by_name() {
        let costs: Costs = toml::from_str("scan_ns = 81").unwrap();
        assert_eq!(costs, Costs { scan_ns: 81, ..Costs::default() });
        let unknown = toml::from_str::<Costs>("scan_nss = 1").unwrap_err().to_string();
        assert!(unknown.contains("scan_nss"), "{unknown}");
    }

    #[test]
    fn names_are_keys() {
        for (key, value) in Costs::default().named() {
            let text = format!("{key} = {}", value + 1);
            let changed: Costs = toml::from_str(&text).unwrap();
            assert!(changed.named().contains(&(key, value + 1)), "{key}");
            assert_ne!(changed, Costs::default());
        }
    }

    /// Instructions counted on Linux 6.12.117, classic and multi-gen; three take a nanosecond.
    #[test]
    fn counted_steps_cost_what_was_counted() {
        let costs = Costs::default();
        let counted = [
            (costs.fault_around_page_ns, [175, 168]),
            (costs.alloc_ns, [749, 775]),
            (costs.unmap_ns, [179, 166]),
        ];
        for (cost, [classic, mglru]) in counted {
            assert_eq!(cost, (classic + mglru + 3) / 6, "{classic} {mglru}");
        }
    }

    #[test]
    fn picoseconds_round_up_once_per_walk() {
        let costs = Costs { aging_pte_ps: 1, young_clear_ps: 1_000, ..Costs::default() };
        assert_eq!(costs.aging_walk(1, 0), 1);
        assert_eq!(costs.aging_walk(1_000, 2), 3);
        assert_eq!(Costs::default().aging_walk(512, 10), 2_248);
        assert_eq!(Costs::free().aging_walk(512, 10) + Costs::free().resident(9), 0);
    }
}
