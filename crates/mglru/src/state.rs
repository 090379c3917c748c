//! The state of reclaim: folios, lruvecs, groups, nodes, counters. What changes it lies in rooms
//! above, which it does not know.

pub(crate) mod address_spaces;
pub(crate) mod aging;
pub(crate) mod bloom;
pub(crate) mod controller;
pub(crate) mod evictable;
pub(crate) mod generations;
mod isolated;
pub(crate) mod lruvec;
pub(crate) mod memcg;
pub(crate) mod memcg_lru;
pub(crate) mod node;
pub(crate) mod parked;
pub(crate) mod scratch;

use alloc::vec::Vec;

use crate::config::Config;
use crate::folio::{Flags, Folios};
use crate::host::ListEvent;
use crate::shadow::Place;
use crate::state::address_spaces::Mms;
use crate::state::generations::Span;
use crate::state::lruvec::{ClassicList, Lruvec};
use crate::state::memcg::MemcgTree;
use crate::state::node::Node;
use crate::state::parked::Parked;
use crate::state::scratch::Scratch;
use crate::stats::{Counter, Counters};
use crate::tiers;
use crate::types::{LruvecId, MemcgId, Nanos, NodeId, Tier};

/// Holds the whole state of reclaim.
#[derive(Clone, Debug)]
pub struct Lru {
    pub(crate) config: Config,
    pub(crate) folios: Folios,
    pub(crate) lruvecs: Vec<Lruvec>,
    pub(crate) memcgs: MemcgTree,
    pub(crate) mms: Mms,
    pub(crate) nodes: Vec<Node>,
    pub(crate) counters: Counters,
    pub(crate) scratch: Scratch,
    pub(crate) parked: Parked,
    /// Changes of lists that a host's own policy has not heard of.
    pub(crate) list_events: Vec<ListEvent>,
}

impl Lru {
    /// Creates an empty machine: the root memcg with one lruvec per node.
    pub fn new(config: Config, now: Nanos) -> Self {
        let nr_nodes = usize::from(config.nr_nodes);
        let mut folios = Folios::default();
        folios.spares_unlisted = config.is_mglru() && config.version().spares_unlisted;
        let mut lru = Self {
            config,
            folios,
            lruvecs: Vec::new(),
            memcgs: MemcgTree::new(nr_nodes),
            mms: Mms::default(),
            nodes: (0..nr_nodes).map(|_| Node::default()).collect(),
            counters: Counters::default(),
            scratch: Scratch::default(),
            parked: Parked::default(),
            list_events: Vec::new(),
        };
        lru.add_lruvecs(MemcgId::ROOT, now);
        lru
    }

    /// Returns the rules in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns all folios.
    pub fn folios(&self) -> &Folios {
        &self.folios
    }

    /// Returns all folios, for the fields that belong to the host: mapcount, host word, locks and
    /// pins.
    pub fn folios_mut(&mut self) -> &mut Folios {
        &mut self.folios
    }

    /// Returns the counters of the whole machine.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the counters of one memcg, descendants not included.
    pub fn memcg_counters(&self, memcg: MemcgId) -> &Counters {
        &self.memcgs[memcg].counters
    }

    pub(crate) fn add_lruvecs(&mut self, memcg: MemcgId, now: Nanos) {
        for node in 0..self.config.nr_nodes {
            let place = (memcg, NodeId(node));
            let span = Span::of(&self.config);
            self.lruvecs.push(Lruvec::new(&mut self.folios, place, span, now));
            self.nodes[usize::from(node)].memcg_lru.add(memcg);
        }
    }

    /// Returns the lruvec of a (memcg, node) pair.
    pub fn lruvec_id(&self, memcg: MemcgId, node: NodeId) -> LruvecId {
        LruvecId(memcg.0 * u32::from(self.config.nr_nodes) + u32::from(node.0))
    }

    /// Like [`Self::lruvec_id`], for a pair that may not exist (any more).
    pub(crate) fn lruvec_of(&self, memcg: MemcgId, node: NodeId) -> Option<LruvecId> {
        let exists = memcg.index() < self.memcgs.len() && node.0 < self.config.nr_nodes;
        exists.then(|| self.lruvec_id(memcg, node))
    }

    pub(crate) fn place(&self, lruvec: LruvecId) -> Place {
        let Lruvec { memcg, node, .. } = self.lruvecs[lruvec.index()];
        Place { memcg, node }
    }

    pub(crate) fn count(&mut self, lruvec: LruvecId, counter: Counter, n: u64) {
        let memcg = self.lruvecs[lruvec.index()].memcg;
        self.memcgs[memcg].counters[counter] += n;
        self.counters[counter] += n;
    }

    /// Returns the tier of a folio with these flags, as far as tiers are distinguished.
    #[inline]
    pub(crate) fn tier(&self, flags: Flags) -> Tier {
        self.config.cap_tier(tiers::tier(flags, self.config.refs_model))
    }

    /// Pages of one list in a memcg and all its descendants, as their statistics have it.
    pub(crate) fn subtree_size(&self, memcg: MemcgId, node: NodeId, list: ClassicList) -> u64 {
        let members = self.memcgs.subtree(memcg);
        members.map(|m| self.lruvecs[self.lruvec_id(m, node).index()].classic_stat(list)).sum()
    }
}
