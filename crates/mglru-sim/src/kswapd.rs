//! kswapd: one thread per node that reclaims from the low to the high watermark (spec §9.3). It
//! has a processor of its own: its time is counted, and takes none from the tasks.

use mglru::types::{Nanos, NodeId};
use mglru::{Reclaim, Step, Throttle};

use crate::agenda::Event;
use crate::machine::Machine;
use crate::physical::compaction::{self, Compaction};
use crate::tracing::{Slept, Who};
use crate::zones::NORMAL;

/// Holds the state of a node's kswapd thread.
#[derive(Debug, Default)]
pub struct Kswapd {
    reclaim: Option<Box<Reclaim>>,
    /// The compaction that it runs after reclaim (or kcompactd, which is not modelled apart).
    compaction: Option<Box<Compaction>>,
    /// The order it was woken for.
    order: u8,
    /// Throttled until then: events before are stale.
    asleep_until: Nanos,
    /// How it sleeps in the middle of reclaim.
    slept: Option<Slept>,
    /// It waits for room in the swap device's queue.
    pub(crate) awaits_swap: bool,
    /// Counts the processor time used, ns.
    pub spent: Nanos,
}

impl Kswapd {
    /// Returns the reclaim that it is in.
    pub(crate) fn under_way(&self) -> Option<&Reclaim> {
        self.reclaim.as_deref()
    }

    /// Tells what it sleeps for in the middle of reclaim.
    pub(crate) fn sleeps_for(&self) -> Option<Throttle> {
        self.slept.as_ref().map(|slept| slept.reason)
    }

    /// Tells whether it compacts memory.
    pub(crate) fn compacts(&self) -> bool {
        self.compaction.is_some()
    }
}

impl Machine {
    /// The node's kswapd goes on until it is done, must wait, or others are due.
    pub(crate) fn run_kswapd(&mut self, node: NodeId) {
        let at = node.index();
        if self.world.now < self.kswapds[at].asleep_until {
            return;
        }
        self.world.acts(Who::Kswapd(node.0));
        if let Some(slept) = self.kswapds[at].slept.take() {
            self.world.trace_throttled(Who::Kswapd(node.0), &slept);
        }
        if let Some(run) = self.kswapds[at].compaction.take() {
            return self.compact_on(node, run);
        }
        let under_way = self.kswapds[at].reclaim.take();
        let mut reclaim = under_way.unwrap_or_else(|| self.start_kswapd(node));
        let resume = loop {
            let began = self.world.now;
            let step = reclaim.step(&mut self.lru, &mut self.world);
            if let Step::Again(work) = step {
                self.pay(work, began);
            }
            self.kswapds[at].spent += self.world.now - began;
            self.wake_throttled();
            match step {
                Step::Again(_) if self.world.takes_no_more_swap() => {
                    self.kswapds[at].reclaim = Some(reclaim);
                    self.kswapds[at].awaits_swap = true;
                    self.kswapds[at].asleep_until = Nanos::MAX;
                    return;
                }
                Step::Again(_) if self.others_first() => break self.world.now,
                Step::Again(_) => {}
                Step::Sleep { reason, at_most } => {
                    let slept = Slept::new(&reclaim, reason, at_most, self.world.now);
                    self.kswapds[at].slept = Some(slept);
                    break self.timeout(at_most);
                }
                Step::Done { reclaimed } => {
                    self.release_removed();
                    return self.kswapd_done(node, reclaimed);
                }
            }
        };
        self.kswapds[at].asleep_until = resume;
        self.kswapds[at].reclaim = Some(reclaim);
        self.world.agenda.push(resume, Event::Kswapd(node));
    }

    /// Those that wait for room in the swap device's queue go on.
    pub(crate) fn wake_swapping_kswapds(&mut self) {
        for at in 0..self.kswapds.len() {
            if std::mem::take(&mut self.kswapds[at].awaits_swap) {
                let now = self.world.now;
                self.kswapds[at].asleep_until = now;
                self.world.agenda.push(now, Event::Kswapd(NodeId(at as u8)));
            }
        }
    }

    fn start_kswapd(&mut self, node: NodeId) -> Box<Reclaim> {
        let order = self.world.take_kswapd_order();
        self.kswapds[node.index()].order = order;
        self.world.trace_kswapd(node, true, order);
        Box::new(Reclaim::kswapd(node, order))
    }

    /// Compacts for the order it was woken for, once there is room.
    fn compact_on(&mut self, node: NodeId, mut run: Box<Compaction>) {
        let at = node.index();
        loop {
            let began = self.world.now;
            let step = self.step_compaction(&mut run);
            self.kswapds[at].spent += self.world.now - began;
            match step {
                compaction::Step::Over(_) => return self.kswapd_sleeps(node, true),
                compaction::Step::Again if self.others_first() => break,
                compaction::Step::Again => {}
            }
        }
        self.kswapds[at].compaction = Some(run);
        self.world.agenda.push(self.world.now, Event::Kswapd(node));
    }

    /// Back to sleep, unless the node is still short and there is hope.
    fn kswapd_done(&mut self, node: NodeId, reclaimed: u64) {
        self.take_all_wakes();
        self.world.end_boost();
        let order = self.kswapds[node.index()].order;
        if let Some(run) = self.world.kswapd_compaction(order) {
            return self.compact_on(node, Box::new(run));
        }
        self.kswapd_sleeps(node, reclaimed > 0);
    }

    fn kswapd_sleeps(&mut self, node: NodeId, hope: bool) {
        self.world.kswapd_slept(node);
        let wanted = self.world.is_kswapd_wanted();
        if wanted || hope && !self.world.zones.is_balanced(node, NORMAL) {
            self.world.wake_kswapd(node);
        } else {
            self.world.trace_kswapd(node, false, 0);
        }
    }
}
