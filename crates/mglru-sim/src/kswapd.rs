//! kswapd: one thread per node that reclaims from the low to the high watermark (spec §9.3). It
//! has a processor of its own: its time is counted, and takes none from the tasks.

use mglru::types::{Nanos, NodeId};
use mglru::{Reclaim, Step};

use crate::agenda::Event;
use crate::machine::Machine;
use crate::zones::NORMAL;

/// A node's thread.
#[derive(Debug, Default)]
pub struct Kswapd {
    reclaim: Option<Box<Reclaim>>,
    /// Throttled until then: events before are stale.
    asleep_until: Nanos,
    /// Processor time used, ns.
    pub spent: Nanos,
}

impl Machine {
    /// The node's kswapd goes on until it is done, must wait, or others are due.
    pub(crate) fn run_kswapd(&mut self, node: NodeId) {
        let at = node.index();
        if self.world.now < self.kswapds[at].asleep_until {
            return;
        }
        let under_way = self.kswapds[at].reclaim.take();
        let mut reclaim = under_way.unwrap_or_else(|| Box::new(Reclaim::kswapd(node, 0)));
        let resume = loop {
            let began = self.world.now;
            let step = reclaim.step(&mut self.lru, &mut self.world);
            if let Step::Again(work) = step {
                self.pay(work, began);
            }
            self.kswapds[at].spent += self.world.now - began;
            self.wake_throttled();
            match step {
                Step::Again(_) if self.others_first() => break self.world.now,
                Step::Again(_) => {}
                Step::Sleep { at_most, .. } => break self.world.now + at_most,
                Step::Done { reclaimed } => return self.kswapd_done(node, reclaimed),
            }
        };
        self.kswapds[at].asleep_until = resume;
        self.kswapds[at].reclaim = Some(reclaim);
        self.world.agenda.push(resume, Event::Kswapd(node));
    }

    /// Back to sleep, unless the node is still short and there is hope.
    fn kswapd_done(&mut self, node: NodeId, reclaimed: u64) {
        self.take_all_wakes();
        self.world.kswapd_slept(node);
        if reclaimed > 0 && !self.world.zones.is_balanced(node, NORMAL) {
            self.world.wake_kswapd(node);
        }
    }
}
