//! Buffers that passes over a batch borrow and give back, so that reclaim allocates nothing.

use alloc::vec::Vec;

use crate::host::{Demotion, Eviction, Harvest, RmapHarvest};
use crate::types::FolioId;

/// Keeps buffers for their capacity; all are empty between passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) harvest: Harvest,
    pub(crate) rmap: RmapHarvest,
    pub(crate) evictions: Vec<Eviction>,
    pub(crate) demotions: Vec<Demotion>,
    pub(crate) isolated: Vec<FolioId>,
    pub(crate) skipped: Vec<FolioId>,
    pub(crate) retry: Vec<FolioId>,
}
