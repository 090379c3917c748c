//! The lab: plans in, records out, and what they say about each other.
//!
//! A plan (TOML) expands to runs, a backend turns each run into a record (a line of
//! `records.jsonl`), and pure functions compare records and render the result. Nothing flows back.
//!
//! ```no_run
//! use std::path::Path;
//!
//! for record in mglru_lab::store::load(Path::new("mglru-runs/quickstart-227c664ae8c1fa7e"))? {
//!     println!("{} {:?}", record.variant, record.metric("pgpgin/ops"));
//! }
//! # Ok::<(), mglru_error::Error>(())
//! ```

pub mod ablation;
mod absent;
pub mod advise;
pub mod answers;
pub mod backend;
pub mod capture;
pub mod check;
pub mod chosen;
pub mod compare;
pub mod counters;
pub mod custom;
pub mod diverge;
pub mod dotted;
pub mod explain;
pub mod fit;
pub mod indicator;
pub mod judge;
pub mod limits;
pub mod pace;
pub mod plan;
pub mod plans;
pub mod policy;
pub mod profile;
pub mod record;
pub mod render;
pub mod report;
pub mod runner;
pub mod samples;
pub mod scale;
pub mod sides;
pub mod spec;
pub mod start_cost;
pub mod stats;
pub mod store;
pub mod sweep;
pub mod task;
pub mod trace_events;
pub mod trace_machine;
pub mod typed;
pub mod variant;
pub mod watch;
