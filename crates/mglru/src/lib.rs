//! The Linux page reclaim policies as a library: multi-gen LRU and classic LRU, memory cgroups,
//! workingset detection, throttling and the out-of-memory decision.
//!
//! The policy knows no world: no clock, thread, file, float or hash order. What it must know it
//! asks a [`Host`]; what happens outside comes in through the methods of [`Lru`]; a reclaim call is
//! a [`Reclaim`] value that is stepped, one bounded unit at a time.
//!
//! The rules in force are a [`Config`]: a named variant, and switches put on it.
//!
//! ```
//! use mglru::Config;
//!
//! let mut rules = Config::variant("before")?;
//! rules.set("p10", "true")?;
//! assert!(rules.patches.p10 && !rules.patches.p09);
//! assert!(rules.set("p10", "perhaps").is_err());
//! # Ok::<(), mglru::config::ConfigError>(())
//! ```
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod aging;
mod bloom;
mod bulk;
mod check;
mod classic;
pub mod config;
pub mod contig;
mod controller;
mod debug;
mod demotion;
mod dump;
mod eviction;
pub mod folio;
mod generations;
pub mod host;
mod input;
pub mod judge;
mod kswapd;
mod look_around;
mod lru;
mod lruvec;
mod memcg;
mod memcg_lru;
mod mglru_loop;
mod mm_list;
mod node;
mod node_visit;
mod oom;
mod parked;
mod process;
mod protection;
mod reclaim_control;
mod scan;
mod shrink;
mod sort;
mod split;
pub mod stats;
mod throttle;
mod tiers;
pub mod types;
mod walk;
mod workingset;

pub use aging::Aging;
pub use config::Config;
pub use contig::Contig;
pub use controller::{TierRate, TierRates};
pub use dump::GenerationSize;
pub use folio::{Bit, FolioKind, Folios};
pub use host::Host;
pub use input::{Created, Input};
pub use lru::{Entry, Lru, Sizes};
pub use lruvec::{ClassicList, Lruvec};
pub use node::Wakes;
pub use oom::{AllocRetry, ChargeRetry, RetryStep};
pub use reclaim_control::Gfp;
pub use shrink::{Reclaim, Step, Work};
pub use stats::{Counter, Counters};
pub use throttle::Throttle;
pub use types::*;
pub use workingset::Shadow;
