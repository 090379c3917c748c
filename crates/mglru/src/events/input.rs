//! The one door in, as data: every event outside of reclaim as a value. Tests, tapes and fuzzers
//! use it; a machine that runs millions of events a second calls the methods themselves.

use crate::events::Entry;
use crate::folio::FolioKind;
use crate::shadow::Shadow;
use crate::state::Lru;
use crate::types::{FolioId, MemcgId, MmId, Nanos, NodeId, Zone};

/// Describes an event that happens to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Creates a group.
    AddMemcg {
        /// Below this one.
        parent: MemcgId,
        /// When.
        now: Nanos,
    },
    /// Removes a group.
    OfflineMemcg(MemcgId),
    /// Adds an address space.
    AddMm(MemcgId),
    /// Removes an address space.
    RemoveMm(MmId),
    /// Switches in a task of the address space.
    MmRan(MmId, NodeId),
    /// Allocates a folio, accounts it as a refault if its slot held a shadow, and lists it.
    NewFolio {
        /// Its kind.
        kind: FolioKind,
        /// Charged to.
        memcg: MemcgId,
        /// On this node.
        node: NodeId,
        /// In this zone.
        zone: Zone,
        /// log2 of its pages.
        order: u8,
        /// The host's key.
        owner: [u32; 2],
        /// The shadow that its slot held.
        shadow: Option<Shadow>,
        /// How it comes onto the lists.
        entry: Entry,
    },
    /// Accesses a folio through a descriptor.
    Accessed(FolioId),
    /// Dirties a folio.
    Dirtied(FolioId),
    /// Starts writeback: the folio is clean.
    WritebackStarted(FolioId),
    /// Ends writeback.
    WritebackEnded(FolioId),
    /// Locks the folio in memory, or releases it.
    Mlocked(FolioId, bool),
    /// Advises that the folio is cold.
    Deactivated(FolioId),
    /// Advises that the folio may be freed.
    LazilyFreed(FolioId),
    /// Frees the folio: it is truncated or its owner exits.
    Freed(FolioId),
}

/// Names the thing that an input created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// Names nothing: the input created nothing.
    Nothing,
    /// Names a group.
    Memcg(MemcgId),
    /// Names an address space.
    Mm(MmId),
    /// Names a folio.
    Folio(FolioId),
}

impl Lru {
    /// Lets it happen.
    pub fn apply(&mut self, input: &Input) -> Created {
        match *input {
            Input::AddMemcg { parent, now } => return Created::Memcg(self.add_memcg(parent, now)),
            Input::AddMm(memcg) => return Created::Mm(self.add_mm(memcg)),
            Input::NewFolio { .. } => return Created::Folio(self.apply_new_folio(input)),
            Input::OfflineMemcg(memcg) => self.offline_memcg(memcg),
            Input::RemoveMm(mm) => self.remove_mm(mm),
            Input::MmRan(mm, node) => self.mm_ran(mm, node),
            Input::Accessed(folio) => self.accessed(folio),
            Input::Dirtied(folio) => self.set_dirty(folio),
            Input::WritebackStarted(folio) => {
                self.clean(folio);
                self.start_writeback(folio);
            }
            Input::WritebackEnded(folio) => self.end_writeback(folio),
            Input::Mlocked(folio, locked) => self.set_mlocked(folio, locked),
            Input::Deactivated(folio) => self.deactivate(folio),
            Input::LazilyFreed(folio) => self.lazyfree(folio),
            Input::Freed(folio) => {
                self.remove(folio);
                self.free_folio(folio);
            }
        }
        Created::Nothing
    }

    fn apply_new_folio(&mut self, input: &Input) -> FolioId {
        let Input::NewFolio { kind, memcg, node, zone, order, owner, shadow, entry } = *input
        else {
            unreachable!("called for new folios only")
        };
        let folio = self.new_folio(kind, memcg, node, zone, order, owner);
        if let Some(shadow) = shadow {
            self.refault(folio, shadow, entry == Entry::Fault { recency: true });
        }
        self.add(folio, entry);
        folio
    }
}
