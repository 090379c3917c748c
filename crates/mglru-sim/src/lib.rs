//! A deterministic simulated machine for page reclaim.
//!
//! [`run()`] takes a machine ([`MachineSpec`]), the rules of reclaim ([`mglru::Config`]) and a
//! workload, and yields an [`Outcome`]: the same bytes for the same seed, everywhere. Time is
//! virtual; processors, devices and the kernel's own work are priced by the machine's description.

mod address_space;
mod agenda;
pub mod bit_tree;
mod blocks;
mod buffered_io;
mod cache_slot;
mod charge;
mod control;
pub mod costs;
mod debug;
pub mod device;
pub mod dirty;
mod disk;
pub mod error;
pub mod event;
mod fault;
mod fill;
mod flusher;
mod journal;
mod kswapd;
pub mod machine;
pub mod memcg;
mod oom;
mod operations;
pub mod outcome;
mod page_cache;
mod page_stack;
mod page_table;
pub mod physical;
pub mod readahead;
mod reclaiming;
pub mod run;
mod sched;
mod shadows;
pub mod spec;
pub mod stall;
pub mod swap;
mod task;
mod unmap;
mod waiting;
mod world;
mod writeback;
pub mod zones;

pub use error::SimError;
pub use machine::Machine;
pub use outcome::Outcome;
pub use run::{Progress, run};
pub use spec::MachineSpec;
