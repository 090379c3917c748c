//! A deterministic simulated machine for page reclaim.

pub mod bit_tree;
pub mod costs;
pub mod device;
pub mod dirty;
pub mod event;
pub mod memcg;
pub mod spec;
pub mod stall;
pub mod swap;
pub mod zones;
