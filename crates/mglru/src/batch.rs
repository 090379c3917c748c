//! What both LRUs do with isolated folios, and under which orders: judge, evict, demote, protect.

mod blocks;
pub(crate) mod control;
mod demotion;
pub(crate) mod process;
pub(crate) mod protection;
mod settle;

pub(crate) use blocks::views;
