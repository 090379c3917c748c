//! Isolates whole blocks, and hands reclaim over to compaction, as the rules of
//! [`Contig`](crate::Contig) say (experiments §17).

use alloc::vec::Vec;

use crate::batch::control::ScanControl;
use crate::contig::{Mode, Tried};
use crate::folio::Bit;
use crate::host::{Host, ListChange, Neighbour, OrderView};
use crate::state::Lru;
use crate::state::lruvec::ClassicList;
use crate::types::{FolioId, LruType, LruvecId, MAX_NR_ZONES, MemcgId, NodeId, Zone};

impl Lru {
    /// Does this batch go for whole blocks? Called at the start of each.
    pub(crate) fn choose_mode(&self, ctl: &mut ScanControl) {
        ctl.mode = self.config.contig.mode(ctl.order, ctl.priority);
        ctl.sync = false;
    }

    /// Takes at least `pages` pages: folios from the tail, and the rest of the block each lies in.
    /// Every page taken counts.
    pub(crate) fn isolate_blocks(
        &mut self,
        ctl: &ScanControl,
        id: LruvecId,
        list: ClassicList,
        pages: u64,
        host: &mut impl Host,
    ) -> Vec<FolioId> {
        let mut taken = core::mem::take(&mut self.scratch.isolated);
        let mut block = Vec::new();
        let mut n = 0;
        while n < pages {
            let head = self.lruvecs[id.index()].classic.lists[list.index()];
            let Some(target) = self.folios.tail(head) else { break };
            n += self.take_isolated(target, &mut taken);
            block.clear();
            host.neighbours(target, ctl.order, &mut block);
            for &neighbour in &block {
                match neighbour {
                    Neighbour::Free => {}
                    Neighbour::Folio(folio) if folio == target => {}
                    Neighbour::Folio(folio) if self.may_take(ctl, id, list, folio, host) => {
                        n += self.take_isolated(folio, &mut taken);
                    }
                    Neighbour::Folio(_) | Neighbour::Other => break,
                }
            }
        }
        taken
    }

    fn take_isolated(&mut self, folio: FolioId, taken: &mut Vec<FolioId>) -> u64 {
        self.note_change(folio, ListChange::Removed);
        self.remove_classic(folio);
        self.folios[folio].flags.clear(Bit::ACTIVE);
        taken.push(folio);
        self.folios[folio].pages()
    }

    /// May a neighbour be isolated? Otherwise the walk over the block ends at it.
    fn may_take(
        &self,
        ctl: &ScanControl,
        id: LruvecId,
        list: ClassicList,
        folio: FolioId,
        host: &mut impl Host,
    ) -> bool {
        let entry = &self.folios[folio];
        let flags = entry.flags;
        if entry.lruvec != id || !flags.has(Bit::LRU) || flags.has(Bit::UNEVICTABLE) {
            return false;
        }
        let same_list = ClassicList::of(entry.lru_type(), flags.has(Bit::ACTIVE)) == list;
        if flags.has(Bit::PINNED) || ctl.mode == Mode::Compaction && !same_list {
            return false;
        }
        let needs_slot = entry.lru_type() == LruType::Anon && !flags.has(Bit::SWAPCACHE);
        !needs_slot || host.memcg(MemcgId::ROOT).swap_left > 0
    }

    /// A folio of the batch stays: is the block lost?
    pub(crate) fn note_kept(&self, ctl: &mut ScanControl) {
        if self.config.contig.gives_up_early() {
            ctl.mode = Mode::Single;
        }
    }

    /// Is the batch to be done again, now waiting for what is being written?
    pub(crate) fn repeats_batch(&self, ctl: &ScanControl, taken: u64, freed: u64) -> bool {
        let missed = freed < taken && !ctl.is_kswapd();
        self.config.contig.repeats(ctl.mode, ctl.order, ctl.priority, missed)
    }

    /// Is the node worth another visit at this priority?
    pub(crate) fn continues(
        &self,
        ctl: &ScanControl,
        node: NodeId,
        visit: (u64, u64),
        host: &mut impl Host,
    ) -> bool {
        let contig = self.config.contig;
        if ctl.is_cgroup() || !contig.hands_over(ctl.order, ctl.priority) {
            return false;
        }
        let sum = |list| self.subtree_size(ctl.top(), node, list);
        let swap = host.memcg(MemcgId::ROOT).swap_left > 0;
        let anon = if swap { sum(ClassicList::InactiveAnon) } else { 0 };
        let inactive = sum(ClassicList::InactiveFile) + anon;
        let (scanned, reclaimed) = visit;
        let tried = Tried { scanned, reclaimed, total: ctl.reclaimed, inactive };
        contig.goes_on(ctl.order, ctl.repeat, &tried, &views(node, ctl.order, host))
    }

    /// Is it compaction's turn before this node is reclaimed from?
    pub(crate) fn is_compaction_ready(
        &self,
        ctl: &ScanControl,
        node: NodeId,
        host: &mut impl Host,
    ) -> bool {
        let contig = self.config.contig;
        let ready = |zone: &OrderView| contig.is_compaction_ready(ctl.order, zone);
        ctl.order > 0 && !ctl.is_cgroup() && views(node, ctl.order, host).iter().any(ready)
    }
}

/// The zones of a node as a request of this order sees them.
pub(crate) fn views(node: NodeId, order: u8, host: &mut impl Host) -> [OrderView; MAX_NR_ZONES] {
    core::array::from_fn(|zone| host.order_view(node, Zone(zone as u8), order))
}
