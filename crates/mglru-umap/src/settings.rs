//! What UMap's environment variables say.
//!
//! `UMAP_BUFSIZE` (pages of `UMAP_PAGESIZE`) is the budget of pages; what the pager takes itself
//! comes on top. `UMAP_EVICT_HIGH_WATER_THRESHOLD` is where reclaim begins. A page size of 4096
//! without `UMAP_READ_AHEAD` asks for single pages. Fillers, evictors, the low water mark and fault
//! events are only reported back: here one thread serves a region, one reclaims, and where reclaim
//! ends is the pager's.

use std::sync::OnceLock;

use mglru_pager::{Advice, Group, Limit, Pager, PagerError, PagerOptions};

use crate::regions::PAGE;

/// Counts the bytes that a pager takes for itself: its buffers for writes and their thread.
const PAGER: u64 = 4 << 20;
/// Counts the bytes that a region takes besides its tables: a thread's stack, and 16 reads of 64
/// KiB.
const REGION: u64 = 64 * 1024 + 16 * 65536;
/// Counts the bytes of a page's tables: its state, and what the policy knows of it.
const TABLES: u64 = 16;

/// Holds all settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub page_size: u64,
    pub buffer_pages: u64,
    pub read_ahead: u64,
    pub fillers: u64,
    pub evictors: u64,
    pub low_water: u64,
    pub high_water: u64,
    pub fault_events: u64,
    /// Says what was wrong; the defaults stand for it.
    pub wrong: Option<String>,
    high_water_is_set: bool,
}

/// Returns the settings as the environment has them when this is first called.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        Settings::read(|name| std::env::var(name).ok(), threads, available_memory())
    })
}

impl Settings {
    fn read(get: impl Fn(&str) -> Option<String>, threads: u64, available: u64) -> Self {
        let mut wrong = None;
        let mut number = |name: &str, default: u64, fits: fn(u64) -> bool| {
            let Some(text) = get(name) else { return default };
            let value = text.trim().parse().ok().filter(|&value| fits(value));
            value.unwrap_or_else(|| {
                wrong.get_or_insert(format!("{name}: `{text}` is not a value it takes"));
                default
            })
        };
        let whole_pages = |bytes: u64| bytes > 0 && bytes % PAGE as u64 == 0;
        let page_size = number("UMAP_PAGESIZE", PAGE as u64, whole_pages);
        // Without a size: four fifths of what the system could give.
        let buffer = available / 5 * 4 / page_size;
        let percent = |value: u64| (1..=100).contains(&value);
        let some = |value: u64| value > 0;
        let mut settings = Self {
            page_size,
            buffer_pages: number("UMAP_BUFSIZE", buffer, some),
            read_ahead: number("UMAP_READ_AHEAD", 0, |_| true),
            fillers: number("UMAP_PAGE_FILLERS", threads, some),
            evictors: number("UMAP_PAGE_EVICTORS", threads, some),
            low_water: number("UMAP_EVICT_LOW_WATER_THRESHOLD", 70, percent),
            high_water: number("UMAP_EVICT_HIGH_WATER_THRESHOLD", 90, percent),
            fault_events: number("UMAP_MAX_FAULT_EVENTS", 32, some),
            wrong: None,
            high_water_is_set: get("UMAP_EVICT_HIGH_WATER_THRESHOLD").is_some(),
        };
        settings.wrong = wrong;
        settings
    }

    fn buffer(&self) -> u64 {
        self.buffer_pages.saturating_mul(self.page_size)
    }

    /// Opens a pager without regions.
    pub fn open(&self) -> Result<Pager, PagerError> {
        PagerOptions::new().memory_max(self.buffer().saturating_add(PAGER)).open()
    }

    /// Makes the budget what these regions need: bytes of each.
    pub fn fit(&self, root: &Group, regions: impl Iterator<Item = usize>) {
        let own =
            regions.map(|len| REGION + len as u64 / PAGE as u64 * TABLES).sum::<u64>() + PAGER;
        root.set_limit(Limit::Max, Some(self.buffer().saturating_add(own)));
        if self.high_water_is_set {
            root.set_limit(Limit::High, Some(own + self.buffer() / 100 * self.high_water));
        }
    }

    /// Says how much a fault is to read.
    pub fn advice(&self) -> Advice {
        let single = self.page_size == PAGE as u64 && self.read_ahead == 0;
        if single { Advice::Random } else { Advice::Normal }
    }
}

/// Bytes that the system could give without swapping.
fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(PAGER, |kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Settings {
        let get = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string())
        };
        Settings::read(get, 2, 1 << 30)
    }

    #[test]
    fn the_buffer_is_the_budget() {
        let unset = read(&[]);
        assert_eq!((unset.page_size, unset.buffer() >> 20), (4096, 819));
        assert_eq!(unset.advice(), Advice::Random);
        let set = read(&[("UMAP_PAGESIZE", "65536"), ("UMAP_BUFSIZE", "512")]);
        assert_eq!((set.buffer(), set.advice()), (32 << 20, Advice::Normal));
    }

    #[test]
    fn what_is_wrong_is_named_and_replaced() {
        let set = read(&[("UMAP_PAGESIZE", "5000"), ("UMAP_BUFSIZE", "many")]);
        assert_eq!(set.wrong.as_deref(), Some("UMAP_PAGESIZE: `5000` is not a value it takes"));
        assert_eq!(set.page_size, 4096);
        assert_eq!(read(&[("UMAP_READ_AHEAD", "8")]).wrong, None);
    }
}
