//! What a host with a replacement policy of its own is asked and hears: which list, which folio,
//! what became of it.

use crate::types::{FolioId, LruType, MemcgId, NodeId};

/// Names the list of one group, node and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListId {
    /// Names the group.
    pub memcg: MemcgId,
    /// Names the node.
    pub node: NodeId,
    /// Separates anonymous memory from files.
    pub lru_type: LruType,
}

/// Names what happened to a folio of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListChange {
    /// It came onto the list: it is new, or it was isolated and could not be evicted. It may also
    /// have been on the list already, when only its place changed.
    Inserted {
        /// It was read or written by the request that brought it, or used since it was isolated.
        accessed: bool,
    },
    /// It was accessed through a descriptor. Accesses through mappings show in [`Self::Inserted`].
    Accessed,
    /// It left the list for another reason than that the policy named it.
    Removed,
    /// It should go soon: its write ended for which reclaim had put it off, or its program says
    /// that it is cold.
    Cold,
}

/// Reports a change of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListEvent {
    /// Names the list.
    pub list: ListId,
    /// Names the folio. Its number passes to another one once it was freed.
    pub folio: FolioId,
    /// Holds the host's own key of the folio.
    pub owner: [u32; 2],
    /// Names the change.
    pub change: ListChange,
}
