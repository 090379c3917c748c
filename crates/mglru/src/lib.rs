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

#[macro_use]
mod ensure;

mod batch;
mod classic;
pub mod config;
pub mod contig;
mod events;
pub mod folio;
pub mod host;
mod inspect;
pub mod judge;
mod mglru;
mod reclaim;
mod shadow;
mod state;
pub mod stats;
mod tiers;
pub mod types;

pub use batch::control::Gfp;
pub use config::Config;
pub use contig::Contig;
pub use events::input::{Created, Input};
pub use events::{Entry, Sizes};
pub use folio::{Bit, FolioKind, Folios};
pub use host::Host;
pub use inspect::dump::GenerationSize;
pub use reclaim::call::{Reclaim, Step, Work};
pub use reclaim::oom::{AllocRetry, ChargeRetry, RetryStep};
pub use reclaim::throttle::Throttle;
pub use shadow::Shadow;
pub use state::Lru;
pub use state::aging::Aging;
pub use state::controller::{TierRate, TierRates};
pub use state::lruvec::{ClassicList, Lruvec};
pub use state::node::Wakes;
pub use stats::{Counter, Counters};
pub use types::*;
