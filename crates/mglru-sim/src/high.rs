//! A group above `memory.high` (cgroup v2): the task that charged the page reclaims before its next
//! operation, and sleeps if that is not enough. `note_high` (`charge.rs`) notes the charge.

use mglru::{Gfp, Reclaim};

use crate::control::{HIGH_GOAL, RETRIES};
use crate::machine::Machine;
use crate::memcg::Event;
use crate::reclaiming::Progress;
use crate::task::{Doing, Flow};

/// A delay below this is not taken.
const MIN_DELAY_NS: u64 = 10_000_000;

impl Machine {
    /// A task that charged above `memory.high` reclaims before it goes on. `Some`: it must wait.
    pub(crate) fn settle_high(&mut self, t: usize) -> Option<Flow> {
        let pages = std::mem::take(&mut self.tasks[t].over_high);
        if pages == 0 {
            return None;
        }
        self.tasks[t].doing = Doing::High { pages, retries: RETRIES };
        self.start_high(t).then_some(Flow::Again)
    }

    /// False: the group is below its limit again.
    fn start_high(&mut self, t: usize) -> bool {
        let Some((group, _)) = self.world.memcgs.over_high(self.tasks[t].memcg) else {
            self.tasks[t].doing = Doing::Nothing;
            return false;
        };
        self.world.memcgs.event(group, Event::High);
        self.begin_reclaim(t, Reclaim::memcg(group, HIGH_GOAL, Gfp::default()));
        true
    }

    /// Continues reclaim above `memory.high`. Where usage stays above, the task sleeps.
    pub(crate) fn high(&mut self, t: usize, pages: u64, retries: u32) -> Flow {
        let reclaimed = match self.reclaim_on(t) {
            Progress::Held(flow) => return flow,
            Progress::Done(reclaimed) => reclaimed,
        };
        let delay = self.world.memcgs.high_delay(self.tasks[t].memcg, pages);
        if delay <= MIN_DELAY_NS || self.is_dying(t) {
            return Flow::Done;
        }
        let retries = if reclaimed > 0 { retries } else { retries - 1 };
        self.tasks[t].doing = Doing::High { pages, retries };
        if retries > 0 {
            return if self.start_high(t) { Flow::Again } else { Flow::Done };
        }
        self.tasks[t].doing = Doing::Nothing;
        self.begin_stall(t);
        Flow::Sleep(self.world.now + delay)
    }
}
