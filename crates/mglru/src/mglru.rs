//! The multi-gen LRU: generations, aging by walks of page tables, eviction by tiers.

pub(crate) mod aging;
mod bulk;
mod bump;
pub(crate) mod eviction;
pub(crate) mod generations;
mod look_around;
mod mm_list;
mod scan;
mod sort;
pub(crate) mod turns;
mod walk;
