//! The classic LRU: active and inactive lists per type (spec §8).

mod active;
mod balance;
mod custom;
mod isolate;
mod lists;
mod shrink;
mod walk;

pub(crate) use shrink::{ClassicLoop, ClassicPrepared, ClassicStep};
