//! Shrinking one lruvec of the classic LRU, 32 pages of one list at a time (spec §8 "Loop").

use alloc::vec::Vec;

use super::balance::{Balance, Scene, balance, inactive_is_low, share_of};
use super::isolate::trace_isolated;
use crate::batch::control::ScanControl;
use crate::batch::process::{Manner, Processed};
use crate::batch::protection::Protection;
use crate::config::Algorithm;
use crate::contig::Mode;
use crate::host::{Host, TraceEvent};
use crate::state::Lru;
use crate::state::aging::Aging;
use crate::state::lruvec::ClassicList;
use crate::stats::{Counter, by_type, pgscan};
use crate::types::{
    DEF_PRIORITY, FolioId, LruType, LruvecId, MAX_NR_ZONES, NodeId, Reclaimer, SWAP_CLUSTER_MAX,
    Zone,
};

/// Holds what is decided once per node visit, from the lruvec of the reclaim target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassicPrepared {
    may_deactivate: [bool; 2],
    cache_trim: bool,
    file_is_tiny: bool,
    cost: [u64; 2],
}

/// The loop over the lists of one lruvec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassicLoop {
    lruvec: LruvecId,
    prepared: ClassicPrepared,
    targets: [u64; 4],
    left: [u64; 4],
    next: usize,
    adjusted: bool,
    reclaimed_before: u64,
    can_swap: bool,
    /// A walk of page tables that comes before the lists.
    walk: Option<Aging>,
}

/// Says how one step of the loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClassicStep {
    /// A list was shrunk.
    Shrunk {
        /// Folios handled under the lock.
        held: u32,
        /// Folios judged.
        judged: u32,
        /// Folios that must be waited for.
        waiting: Vec<FolioId>,
        /// The reclaimer must wait for writeback itself.
        throttle: bool,
    },
    /// Too many pages are isolated by others: wait, once.
    TooManyIsolated,
    /// The lruvec is done.
    Over,
}

impl Lru {
    /// Takes stock at the start of a node visit.
    pub(crate) fn prepare_classic(
        &self,
        ctl: &ScanControl,
        node: NodeId,
        host: &mut impl Host,
    ) -> ClassicPrepared {
        let target = &self.lruvecs[self.lruvec_id(ctl.top(), node).index()];
        let size = |list| self.subtree_size(ctl.top(), node, list);
        let may_deactivate = LruType::ALL.map(|t| {
            let refaulted =
                target.activation_stat()[t.index()] != target.classic.refault_snapshot[t.index()];
            let low =
                inactive_is_low(size(ClassicList::of(t, false)), size(ClassicList::of(t, true)));
            ctl.force_deactivate || refaulted || low
        });
        let inactive_file = size(ClassicList::InactiveFile) >> ctl.priority;
        let custom = self.config.lru == Algorithm::Custom;
        // All file folios lie on the one list of a custom policy, used or not: it says nothing
        // about files that are read once.
        let cache_trim = inactive_file != 0 && !may_deactivate[1] && !custom;
        let file_is_tiny =
            !ctl.is_cgroup() && !may_deactivate[0] && self.file_is_tiny(ctl, node, host);
        ClassicPrepared { may_deactivate, cache_trim, file_is_tiny, cost: target.classic.cost }
    }

    /// Is the whole node's page cache too small to be worth reclaiming?
    fn file_is_tiny(&self, ctl: &ScanControl, node: NodeId, host: &mut impl Host) -> bool {
        let zones = (0..MAX_NR_ZONES as u8).map(|z| host.zone(node, Zone(z)));
        let (mut free, mut high) = (0, 0);
        for zone in zones {
            free += zone.free;
            high += zone.high;
        }
        let file = self.nodes[node.index()].lru_pages[LruType::File.index()];
        let anon = self.subtree_size(ctl.top(), node, ClassicList::InactiveAnon);
        file + free <= high && anon >> ctl.priority != 0
    }

    /// Starts the loop over one lruvec.
    pub(crate) fn start_classic(
        &self,
        ctl: &mut ScanControl,
        id: LruvecId,
        prepared: ClassicPrepared,
        protection: &Protection,
    ) -> ClassicLoop {
        let can_swap = protection.can_swap && ctl.may_swap;
        let scene = Scene {
            can_swap,
            is_cgroup: ctl.is_cgroup(),
            swappiness: protection.swappiness,
            priority: ctl.priority,
            file_is_tiny: prepared.file_is_tiny,
            cache_trim: prepared.cache_trim,
            cost: prepared.cost,
        };
        let decided = balance(&scene);
        let targets =
            ClassicList::ALL.map(|list| self.classic_target(ctl, id, list, decided, protection));
        ClassicLoop {
            lruvec: id,
            prepared,
            targets,
            left: targets,
            next: 0,
            adjusted: ctl.who == Reclaimer::Direct
                && !ctl.is_cgroup()
                && ctl.priority == DEF_PRIORITY,
            reclaimed_before: ctl.reclaimed,
            can_swap,
            walk: self.start_classic_walk(id, can_swap),
        }
    }

    fn classic_target(
        &self,
        ctl: &mut ScanControl,
        id: LruvecId,
        list: ClassicList,
        decided: Balance,
        protection: &Protection,
    ) -> u64 {
        let lruvec = &self.lruvecs[id.index()];
        let size = lruvec.classic_size_upto(list, ctl.reclaim_idx);
        let mut scan = protection.protect(ctl, size) >> ctl.priority;
        if scan == 0 && !self.memcgs[lruvec.memcg].online {
            scan = size.min(SWAP_CLUSTER_MAX);
        }
        share_of(decided, list, scan)
    }

    /// Shrinks the next list that has pages left to scan.
    pub(crate) fn step_classic(
        &mut self,
        ctl: &mut ScanControl,
        work: &mut ClassicLoop,
        host: &mut impl Host,
    ) -> ClassicStep {
        if let Some(held) = self.step_classic_walk(&mut work.walk, host) {
            return ClassicStep::Shrunk { held, judged: 0, waiting: Vec::new(), throttle: false };
        }
        let [inactive_anon, _, inactive_file, active_file] = work.left;
        if work.next == 0 {
            if inactive_anon == 0 && active_file == 0 && inactive_file == 0 {
                return self.finish_classic(ctl, work, host);
            }
            if !work.adjusted && ctl.reclaimed - work.reclaimed_before >= ctl.goal {
                if self.adjust_targets(work) {
                    return self.finish_classic(ctl, work, host);
                }
                work.adjusted = true;
            }
        }
        let list = ClassicList::ALL[work.next];
        work.next = (work.next + 1) % 4;
        let pages = work.left[list.index()].min(SWAP_CLUSTER_MAX);
        if pages == 0 {
            return ClassicStep::Shrunk {
                held: 0,
                judged: 0,
                waiting: Vec::new(),
                throttle: false,
            };
        }
        work.left[list.index()] -= pages;
        self.shrink_list(ctl, work, list, pages, host)
    }

    /// The goal is met: stop scanning the smaller type, and the larger one at the same completed
    /// share. True when a type has nothing left: all is done.
    fn adjust_targets(&self, work: &mut ClassicLoop) -> bool {
        let left = |t: LruType| {
            work.left[ClassicList::of(t, false).index()]
                + work.left[ClassicList::of(t, true).index()]
        };
        let target = |t: LruType| {
            work.targets[ClassicList::of(t, false).index()]
                + work.targets[ClassicList::of(t, true).index()]
        };
        if LruType::ALL.into_iter().any(|t| left(t) == 0) {
            return true;
        }
        let smaller =
            if left(LruType::File) > left(LruType::Anon) { LruType::Anon } else { LruType::File };
        let percentage = left(smaller) * 100 / (target(smaller) + 1);
        let larger = smaller.other();
        for active in [false, true] {
            work.left[ClassicList::of(smaller, active).index()] = 0;
            let list = ClassicList::of(larger, active).index();
            let scanned = work.targets[list] - work.left[list];
            let keep = work.targets[list] * (100 - percentage) / 100;
            work.left[list] = keep - scanned.min(keep);
        }
        false
    }

    fn finish_classic(
        &mut self,
        ctl: &mut ScanControl,
        work: &mut ClassicLoop,
        host: &mut impl Host,
    ) -> ClassicStep {
        let lruvec = &self.lruvecs[work.lruvec.index()];
        let low = inactive_is_low(
            lruvec.classic_stat(ClassicList::InactiveAnon),
            lruvec.classic_stat(ClassicList::ActiveAnon),
        );
        if work.can_swap && low {
            self.shrink_active(ctl, work.lruvec, LruType::Anon, SWAP_CLUSTER_MAX, host);
        }
        ClassicStep::Over
    }

    fn shrink_list(
        &mut self,
        ctl: &mut ScanControl,
        work: &ClassicLoop,
        list: ClassicList,
        pages: u64,
        host: &mut impl Host,
    ) -> ClassicStep {
        if !list.is_active() {
            return self.shrink_inactive(ctl, work.lruvec, list, pages, host);
        }
        let mut held = 0;
        if work.prepared.may_deactivate[list.lru_type().index()] {
            held = self.shrink_active(ctl, work.lruvec, list.lru_type(), pages, host);
        } else {
            ctl.skipped_deactivate = true;
        }
        ClassicStep::Shrunk { held, judged: 0, waiting: Vec::new(), throttle: false }
    }

    fn shrink_inactive(
        &mut self,
        ctl: &mut ScanControl,
        id: LruvecId,
        list: ClassicList,
        pages: u64,
        host: &mut impl Host,
    ) -> ClassicStep {
        if self.too_many_isolated(ctl, id, list) {
            return ClassicStep::TooManyIsolated;
        }
        self.choose_mode(ctl);
        let (mut taken, skipped) = if self.config.lru == Algorithm::Random {
            (self.isolate_at_random(id, list, pages, host), 0)
        } else if self.config.lru == Algorithm::Custom {
            self.isolate_named(ctl, id, list, pages, host)
        } else if ctl.mode != Mode::Single && self.config.contig.takes_blocks() {
            (self.isolate_blocks(ctl, id, list, pages, host), 0)
        } else {
            self.isolate_classic(ctl, id, list, pages)
        };
        let n: u64 = taken.iter().map(|&f| self.folios[f].pages()).sum();
        let lru_type = list.lru_type();
        let by = by_type(lru_type, Counter::PgscanAnon, Counter::PgscanFile);
        self.count(id, pgscan(ctl.who), n);
        self.count(id, by, n);
        self.turn_list(id, list, n);
        trace_isolated(ctl, list, [pages, n, skipped], host);
        let judged = taken.len() as u32;
        let ignore_references = self.config.ignores_accesses();
        let manner = Manner { lruvec: id, walking: false, ignore_references };
        let mut done = self.process(ctl, &mut taken, manner, host);
        let event = done.event(ctl, self.place(id), n, lru_type);
        host.trace(TraceEvent::ShrunkInactive(event));
        let mut waiting = core::mem::take(&mut done.waiting);
        if self.repeats_batch(ctl, n, done.freed) {
            waiting.append(&mut taken);
            ctl.sync = true;
        }
        self.return_classic(&mut taken);
        self.scratch.isolated = taken;
        let throttle = self.account_inactive(ctl, id, lru_type, n, &done, host);
        ClassicStep::Shrunk { held: judged, judged, waiting, throttle }
    }

    /// Counts the turns of an inactive list: one is over once as many pages were scanned as it had.
    fn turn_list(&mut self, id: LruvecId, list: ClassicList, scanned: u64) {
        let lruvec = &mut self.lruvecs[id.index()];
        let (t, size) = (list.lru_type().index(), lruvec.classic_size(list));
        lruvec.mg.scanned_since[0] += scanned;
        let left = &mut lruvec.classic.turn_left[t];
        *left = left.saturating_sub(scanned);
        if *left == 0 {
            *left = size;
            lruvec.classic.turn[t] += 1;
        }
    }

    fn account_inactive(
        &mut self,
        ctl: &mut ScanControl,
        id: LruvecId,
        lru_type: LruType,
        taken: u64,
        done: &Processed,
        host: &mut impl Host,
    ) -> bool {
        ctl.reclaimed += done.freed;
        let cost = SWAP_CLUSTER_MAX * done.stats.pageout + (taken - done.freed.min(taken));
        self.add_cost(id, lru_type, cost);
        let mut stats = done.stats;
        stats.taken = taken;
        stats.file_taken = if lru_type == LruType::File { taken } else { 0 };
        ctl.nr.add(&stats);
        if taken > 0 && stats.unqueued_dirty == taken {
            self.wake_flusher(id, host);
            return ctl.is_cgroup() && !self.config.sane_throttling;
        }
        false
    }

    /// Others hold more isolated pages than the list has.
    fn too_many_isolated(&self, ctl: &ScanControl, id: LruvecId, list: ClassicList) -> bool {
        let exempt = ctl.is_kswapd() || ctl.is_cgroup() && !self.config.sane_throttling;
        if exempt {
            return false;
        }
        let lruvec = &self.lruvecs[id.index()];
        let inactive = lruvec.classic_size(list);
        let isolated = lruvec.classic.isolated[list.lru_type().index()];
        let limit = if ctl.gfp.io && ctl.gfp.fs { inactive >> 3 } else { inactive };
        isolated > limit
    }

    /// Runs after the priority loop: later refaults are distinguished from those seen so far.
    pub(crate) fn snapshot_refaults(&mut self, ctl: &ScanControl) {
        for node in 0..self.config.nr_nodes {
            let id = self.lruvec_id(ctl.top(), NodeId(node));
            let lruvec = &mut self.lruvecs[id.index()];
            lruvec.classic.refault_snapshot = lruvec.activation_stat();
        }
    }
}
