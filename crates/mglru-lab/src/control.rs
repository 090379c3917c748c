//! How far is the model from the real kernel? Jobs measured on a booted Linux are replayed page by
//! page under the same kernel's rules, and each counter is set beside the measured one.
//!
//! [`truth`] reads what was measured, [`replay`] runs it in the model as an experiment like any
//! other (resumable, several at a time), [`verdict`] compares, [`text`] tells.

pub mod answers;
pub mod causes;
pub mod generations;
mod paced;
pub mod program;
pub mod replay;
pub mod text;
pub mod truth;
pub mod verdict;

/// Counters that are compared, under their kernel names.
pub const COUNTERS: [&str; 3] =
    ["workingset_refault_file", "workingset_refault_anon", "pgmajfault"];
