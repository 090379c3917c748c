//! Looks at the state and checks it: the text of lru_gen, its commands, the invariants.

mod check;
mod debug;
pub(crate) mod dump;
