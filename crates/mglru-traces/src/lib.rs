//! Traces and flat policies: what a trace holds, how many misses a policy has at a size, curves of
//! misses over sizes, and traces written in another format.
//!
//! [`flat`] has the policies, each a cache of pages without a machine around it; [`tools`] answers
//! the commands of `mglru trace`.

pub mod flat;
pub mod tools;
