//! Workloads: generators, job files, application models and traces, all as streams of [`Op`].

pub mod error;
pub mod fio;
pub mod gray_zipf;
pub mod job;
pub mod op;
pub mod pages;
pub mod permutation;
pub mod reads_only;
pub mod rng;
pub mod sampler;
pub mod scrambled;
pub mod spec;
pub mod string_hash;
pub mod touch;
pub mod trace;
pub mod wiredtiger;
pub mod ycsb;
pub mod zipf_table;

pub use error::WorkloadError;
pub use op::*;
pub use reads_only::ReadsOnly;
pub use spec::WorkloadSpec;
