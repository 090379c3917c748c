//! Demotion: what reclaim would take from fast memory moves to slower memory (spec §5.6).
//!
//! A moved folio keeps its owner, its charge and its flags; it leaves one lruvec and joins that of
//! the same group on the other node, and counts as reclaimed from the first. One that could not be
//! moved goes through reclaim instead, unless reclaim was asked for by `memory.reclaim`.

use alloc::vec::Vec;

use crate::batch::control::ScanControl;
use crate::batch::process::{Manner, Processed};
use crate::folio::Bit;
use crate::host::Host;
use crate::state::Lru;
use crate::stats::pgdemote;
use crate::types::{ANON_AND_FILE, FolioId, NodeId, Reclaimer, Zone};

impl Lru {
    /// Where the folios of this batch may be demoted to.
    pub(crate) fn demotion_target(&self, manner: Manner, host: &mut impl Host) -> Option<NodeId> {
        host.demotion_target(self.place(manner.lruvec).node)
    }

    /// Moves what was judged fit for demotion; what stays joins the survivors.
    pub(crate) fn demote(
        &mut self,
        ctl: &mut ScanControl,
        to: NodeId,
        survivors: &mut Vec<FolioId>,
        manner: Manner,
        done: &mut Processed,
        host: &mut impl Host,
    ) {
        let mut batch = core::mem::take(&mut self.scratch.demotions);
        host.demote(&mut self.folios, to, &mut batch);
        let mut failed = Vec::new();
        let mut stolen = [0; ANON_AND_FILE];
        for demotion in batch.drain(..) {
            let id = demotion.folio;
            let Some(zone) = demotion.moved else {
                failed.push(id);
                continue;
            };
            stolen[self.folios[id].lru_type().index()] += self.folios[id].pages();
            self.settle_demoted(id, to, zone);
        }
        self.scratch.demotions = batch;
        let moved = stolen.iter().sum();
        done.freed += moved;
        self.count(manner.lruvec, pgdemote(ctl.who), moved);
        self.count_stolen(ctl, manner.lruvec, stolen);
        if ctl.who != Reclaimer::Proactive {
            done.absorb(self.pass(ctl, &mut failed, manner, false, host));
        }
        survivors.append(&mut failed);
    }

    fn settle_demoted(&mut self, id: FolioId, to: NodeId, zone: Zone) {
        let dirty = self.folios[id].flags.has(Bit::DIRTY);
        self.clean(id);
        let memcg = self.place(self.folios[id].lruvec).memcg;
        self.folios[id].lruvec = self.lruvec_id(memcg, to);
        self.folios[id].flags.set_zone(zone);
        if dirty {
            self.set_dirty(id);
        }
        self.putback(id);
    }
}
