//! The active list is shrunk: its folios go to the inactive one, programs in use aside (spec §8).

use super::balance::inactive_is_low;
use super::isolate::trace_isolated;
use crate::batch::control::ScanControl;
use crate::folio::Bit;
use crate::host::{Host, RmapHarvest, ShrunkActive, TraceEvent, Window};
use crate::state::Lru;
use crate::state::lruvec::ClassicList;
use crate::stats::Counter;
use crate::types::{FolioId, LruType, LruvecId, NodeId, SWAP_CLUSTER_MAX};

impl Lru {
    /// Active folios go to the inactive list, executable file folios in use aside. Returns the
    /// folios handled.
    pub(super) fn shrink_active(
        &mut self,
        ctl: &ScanControl,
        id: LruvecId,
        lru_type: LruType,
        pages: u64,
        host: &mut impl Host,
    ) -> u32 {
        let list = ClassicList::of(lru_type, true);
        let (mut taken, skipped) = self.isolate_classic(ctl, id, list, pages);
        let n: u64 = taken.iter().map(|&f| self.folios[f].pages()).sum();
        self.count(id, Counter::Pgrefill, n);
        trace_isolated(ctl, list, [pages, n, skipped], host);
        let mut rmap = core::mem::take(&mut self.scratch.rmap);
        let mut rotated = 0;
        for &folio in &taken {
            let pages = self.folios[folio].pages();
            if self.is_program_in_use(folio, lru_type, &mut rmap, host) {
                rotated += pages;
            } else {
                let flags = &mut self.folios[folio].flags;
                flags.clear(Bit::ACTIVE);
                flags.set(Bit::WORKINGSET);
                self.count(id, Counter::Pgdeactivate, pages);
            }
        }
        self.scratch.rmap = rmap;
        if rotated > 0 {
            self.add_cost(id, lru_type, rotated);
        }
        host.trace(TraceEvent::ShrunkActive(ShrunkActive {
            node: self.place(id).node,
            taken: n,
            kept: rotated,
            deactivated: n - rotated,
            priority: ctl.priority,
            lru_type,
        }));
        let held = taken.len() as u32;
        self.return_classic(&mut taken);
        self.scratch.isolated = taken;
        held
    }

    fn is_program_in_use(
        &mut self,
        id: FolioId,
        lru_type: LruType,
        rmap: &mut RmapHarvest,
        host: &mut impl Host,
    ) -> bool {
        if !self.folios[id].is_mapped() {
            return false;
        }
        rmap.clear();
        host.harvest_rmap(id, Window::ONE, &self.folios, rmap);
        let program = rmap.exec && lru_type == LruType::File;
        let used = self.take_walked(id) || rmap.referenced > 0;
        program && used && self.config.mechanisms.exec_protection
    }

    /// kswapd's own aging: every memcg whose inactive anon is low loses 32 active pages to it.
    pub(crate) fn age_active_anon(
        &mut self,
        ctl: &ScanControl,
        node: NodeId,
        host: &mut impl Host,
    ) {
        let size = |list| self.subtree_size(crate::types::MemcgId::ROOT, node, list);
        let low = inactive_is_low(size(ClassicList::InactiveAnon), size(ClassicList::ActiveAnon));
        if !low {
            return;
        }
        for memcg in self.memcgs.ids() {
            let id = self.lruvec_id(memcg, node);
            self.shrink_active(ctl, id, LruType::Anon, SWAP_CLUSTER_MAX, host);
        }
    }
}
