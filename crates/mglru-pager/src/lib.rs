//! Page reclaim on real memory: mappings whose resident pages obey a byte budget, on a stock
//! Linux kernel, with the policies of the `mglru` crate deciding what stays.
//!
//! ```no_run
//! use mglru_pager::{PagerOptions, SwapOptions};
//!
//! let pager = PagerOptions::new()
//!     .memory_max(64 << 20)
//!     .swap(SwapOptions::in_memory(64 << 20))
//!     .open()?;
//! let mut table = pager.root().map_anon(1 << 30)?;
//! table[12_345] = 7; // a plain store; a gigabyte of them would stay within 64 MiB
//! # Ok::<(), mglru_pager::PagerError>(())
//! ```
//!
//! A hit is a plain load or store. A miss is served by the mapping's handler thread through
//! userfaultfd; room is made by one policy thread a pager. `ARCHITECTURE.md` has the whole
//! picture, the module `pages` the invariant that keeps every store.

mod account;
mod arena;
mod baseline;
mod children;
pub mod control;
mod engine;
mod error;
pub mod events;
mod faults;
mod files;
mod forks;
mod frames;
mod group;
mod handler;
mod heap;
pub mod launch;
mod mapping;
mod pager;
mod pages;
mod policy;
mod pressure;
mod probe;
mod region;
mod round_trip;
mod running;
mod service;
mod shared;
mod sigbus;
mod slices;
mod store;
mod swap;
#[allow(unsafe_code)]
mod sys;
pub mod threads;
mod withheld;

pub use arena::FaultStat;
pub use engine::FaultEngine;
pub use error::{Failure, PagerError};
pub use files::unmanaged::set_unmanaged_source;
pub use files::{GroupFile, files};
pub use group::{Group, GroupStat, Limit, Map};
pub use heap::{ForkPolicy, Heap};
pub use mapping::{Advice, Pin};
pub use pager::{Pager, PagerOptions};
pub use policy::distance::refaults_within;
pub use probe::{Fact, KEPT_BITS, probe};
pub use shared::SharedMapping;
pub use slices::{Mapping, MappingMut};
pub use store::{FileStore, Queue, Store};
pub use swap::{Codec, SwapOptions};
pub use sys::held;
pub use withheld::Withholding;

/// Holds what benchmarks set the pager beside: no part of its interface, it may change at any time.
#[doc(hidden)]
pub mod yardsticks {
    pub use crate::baseline::FifoPager;
    pub use crate::round_trip::{on_first_processor, raw_round_trip};
}
