//! Reclaim calls, from the demand of a task, a group or kswapd down to the visits of nodes.

pub(crate) mod call;
mod kswapd;
mod node_visit;
pub(crate) mod oom;
mod page_out;
mod reparent;
mod shrink;
pub(crate) mod throttle;
mod visit;
