//! A deterministic simulated machine for page reclaim.
//!
//! [`run()`] takes a machine ([`MachineSpec`]), the rules of reclaim ([`mglru::Config`]) and a
//! workload, and yields an [`Outcome`]: the same bytes for the same seed, everywhere. Time is
//! virtual; processors, devices and the kernel's own work are priced by the machine's description.
//!
//! ```
//! use mglru::Config;
//! use mglru_sim::{MachineSpec, run};
//! use mglru_workload::WorkloadSpec;
//!
//! let machine = r#"
//!     memory = "2GiB"
//!     cpus = 4
//!     device = "nvme"
//!     groups."/touch"."memory.max" = "8MiB"
//! "#;
//! let machine: MachineSpec = toml::from_str(machine)?;
//! let load = r#"
//!     kind = "touch"
//!     engine = "mmap"
//!     pages = 4096
//!     operations = 20000
//! "#;
//! let load: WorkloadSpec = toml::from_str(load)?;
//! let outcome = run(&machine, Config::variant("after")?, load.build(1, 1.0)?, 1, None)?;
//! assert!(outcome.counter("pgsteal_direct") > Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address_space;
mod advice;
mod agenda;
pub mod bit_tree;
mod blocks;
mod buffered_io;
mod cache_slot;
mod charge;
mod control;
pub mod costs;
pub mod counted;
pub mod custom;
mod debug;
pub mod device;
pub mod dirty;
mod disk;
pub mod error;
pub mod event;
pub mod explain;
mod fault;
mod fill;
mod flusher;
mod high;
mod journal;
mod kswapd;
mod large;
pub mod live;
pub mod machine;
pub mod memcg;
mod oom;
mod operations;
mod orders;
pub mod outcome;
mod page_cache;
mod page_stack;
mod page_table;
pub mod physical;
pub mod readahead;
mod reclaiming;
mod removal;
pub mod run;
pub mod samples;
mod sched;
mod shadows;
pub mod spec;
pub mod stall;
pub mod swap;
mod swap_readahead;
mod task;
pub mod tracing;
mod unmap;
mod waiting;
mod world;
mod writeback;
pub mod zones;

pub use error::SimError;
pub use live::Live;
pub use machine::Machine;
pub use outcome::Outcome;
pub use run::{Progress, run, run_explained, run_sampled, run_traced};
pub use spec::MachineSpec;
