//! Batches of new folios on their way onto the lists.

use alloc::vec::Vec;

use crate::types::FolioId;

/// Holds the batches of all processors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parked {
    pub(crate) batches: Vec<Vec<FolioId>>,
    /// The processor that runs.
    pub(crate) cpu: usize,
}
