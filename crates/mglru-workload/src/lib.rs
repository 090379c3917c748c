//! Workloads: generators, job files, application models and traces, all as streams of [`Op`].
//!
//! ```
//! use mglru_workload::{Op, WorkloadSpec};
//!
//! let load = "kind = \"touch\"\nengine = \"mmap\"\npages = 4096\noperations = 1000";
//! let load: WorkloadSpec = toml::from_str(load)?;
//! let mut load = load.build(1, 1.0)?;
//! println!("{} tasks", load.layout().tasks.len());
//! assert_ne!(load.next(0), Op::Done);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod android;
pub mod chrome_node;
pub mod dd;
pub mod error;
pub mod fairness;
pub mod fio;
pub mod fsmark;
pub mod gray_zipf;
pub mod highalloc;
pub mod job;
pub mod kernel_build;
pub mod lognormal;
pub mod memcached;
pub mod mixed_pressure;
pub mod op;
pub mod pages;
pub mod permutation;
pub mod postmark;
pub mod reads_only;
pub mod rng;
pub mod sampler;
pub mod scrambled;
pub mod script;
pub mod several;
pub mod spec;
pub mod string_hash;
pub mod sysbench;
pub mod touch;
pub mod trace;
pub mod wiredtiger;
pub mod ycsb;
pub mod zipf_table;

pub use error::WorkloadError;
pub use op::*;
pub use reads_only::ReadsOnly;
pub use spec::WorkloadSpec;
