//! Out of memory: the address space that holds most in the group is killed (spec §9.6).
//!
//! Its anonymous memory is freed at once; its tasks end as soon as they come out of reclaim.

use mglru::types::MemcgId;

use crate::machine::Machine;
use crate::memcg::Event;
use crate::reclaiming::Progress;
use crate::task::{Flow, State};

impl Machine {
    /// Kills the largest address space with tasks in the group. False: there is none left.
    pub(crate) fn kill_largest(&mut self, scope: MemcgId) -> bool {
        let candidates = (0..self.world.spaces.nr_mms()).filter(|&mm| self.is_killable(mm, scope));
        let victim = candidates.max_by_key(|&mm| (self.world.spaces.footprint(mm), !mm));
        let Some(mm) = victim else { return false };
        let first = self.members(mm).next();
        let group = first.map_or(scope, |t| self.tasks[t].memcg);
        self.world.memcgs.event(group, Event::OomKill);
        self.oom_kills += 1;
        if let Some(t) = first {
            self.trace_victim(t, mm);
        }
        self.kill_mm(mm);
        true
    }

    fn is_killable(&self, mm: u32, scope: MemcgId) -> bool {
        let in_scope = |t: usize| self.world.memcgs.is_under(self.tasks[t].memcg, scope);
        !self.world.spaces.mm(mm).dead && self.members(mm).any(in_scope)
    }

    fn members(&self, mm: u32) -> impl Iterator<Item = usize> + '_ {
        let alive = move |&t: &usize| self.tasks[t].mm == mm && !self.tasks[t].has_ended();
        (0..self.tasks.len()).filter(alive)
    }

    fn kill_mm(&mut self, mm: u32) {
        self.world.spaces.mm_mut(mm).dead = true;
        self.unmap_all(mm);
        for t in self.members(mm).collect::<Vec<_>>() {
            if self.tasks[t].state == State::Blocked {
                self.wake(t);
            }
        }
    }

    /// The task was killed: it ends once it is out of reclaim, whatever it reclaimed for.
    pub(crate) fn die(&mut self, t: usize) -> Flow {
        if self.tasks[t].reclaim.is_some() {
            if let Progress::Held(flow) = self.reclaim_on(t) {
                return flow;
            }
        }
        self.end_task(t)
    }

    /// Is the task to end as soon as it can?
    #[inline]
    pub(crate) fn is_dying(&self, t: usize) -> bool {
        self.world.spaces.mm(self.tasks[t].mm).dead
    }
}
