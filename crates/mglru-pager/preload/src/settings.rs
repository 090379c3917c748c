//! What the launcher asked for, in the environment.

use mglru_pager::{Pager, PagerError, PagerOptions, launch};

/// A shorter mapping is left to the kernel, bytes.
pub fn least() -> usize {
    number(launch::ENV_LEAST).map_or(launch::LEAST, |n| n as usize)
}

/// The pager of this process.
pub fn open() -> Result<Pager, PagerError> {
    let mut options = PagerOptions::new();
    if let Some(bytes) = number(launch::ENV_MAX) {
        options = options.memory_max(bytes);
    }
    if let Some(bytes) = number(launch::ENV_HIGH) {
        options = options.memory_high(bytes);
    }
    options.open()
}

/// The launcher wrote it: what is not a number is not set.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
