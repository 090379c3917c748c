//! An aging pass under way, and its walk of one address space. The multi-gen LRU makes such passes;
//! the classic LRU may be told to.

use crate::host::Va;
use crate::state::evictable::Evictable;
use crate::types::{LruvecId, MmId, Seq};

/// A walk under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    pub(crate) lruvec: LruvecId,
    pub(crate) seq: Seq,
    pub(crate) evictable: Evictable,
    pub(crate) mm: MmId,
    pub(crate) force: bool,
    pub(crate) at: Va,
}

/// Holds the state of an aging pass of one lruvec on behalf of one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aging {
    pub(crate) lruvec: LruvecId,
    pub(crate) seq: Seq,
    pub(crate) evictable: Evictable,
    pub(crate) force: bool,
    pub(crate) walk: Option<Walk>,
    /// A type that is aged by its own clock once this is over.
    pub(crate) next: Option<Evictable>,
    /// All walks were made and this caller makes the generation.
    pub(crate) won: bool,
}

/// Where an aging pass stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgingStep {
    /// Reports a walked slice and the folios handled under the lock.
    Walking {
        /// Counts promoted folios.
        held: u32,
    },
    /// Ends the aging. `aged`: this caller made the new generation.
    Over {
        /// Whether it did.
        aged: bool,
    },
}
