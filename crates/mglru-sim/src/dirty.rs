//! Dirty page cache: which pages are dirty, how much may be, which tasks are slowed and what the
//! flusher writes next (reclaim spec §2.4, §9.5).
//!
//! Nothing here touches a page or a device: the machine reports what happens, asks what to do, and
//! does it. A page is dirty until its writeback starts; what counts against a limit is dirty pages
//! and pages under writeback.

mod bandwidth;
mod files;
mod flusher;
mod pacing;
mod spec;
mod thresholds;

pub use self::bandwidth::Bandwidth;
pub use self::files::{DirtyFiles, FileScan};
pub use self::flusher::{Flusher, Reason, Run};
pub use self::pacing::{MAX_PAUSE, Pacer, Pause};
pub use self::spec::DirtySpec;
pub use self::thresholds::{Thresholds, group_available};

#[cfg(test)]
mod tests;
