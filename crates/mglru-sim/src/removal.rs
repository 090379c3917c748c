//! A group is removed (`rmdir`): what it holds becomes its parent's, or lingers (spec §K71.7).

use mglru::types::MemcgId;
use mglru_workload::{Control, GroupId, Op};

use crate::error::SimError;
use crate::machine::Machine;
use crate::task::Flow;

impl Machine {
    /// Removes a group without tasks and groups below it. Pages that are just being written are
    /// waited for.
    pub(crate) fn remove_group(&mut self, t: usize, group: GroupId) -> Flow {
        let memcg = self.group(group);
        if !self.world.memcgs.is_online(memcg) || self.is_in_use(memcg) {
            let name = self.recorder.group_name(memcg).to_owned();
            return self.fail(SimError::GroupInUse { task: t as u32, name });
        }
        if self.lru.memcg_write(memcg).1 > 0 {
            self.push_op(t, Op::Control(Control::Remove { group }));
            return Flow::Sleep(self.world.now + self.tick());
        }
        (0..self.tasks.len()).for_each(|t| self.drain_stock(t));
        self.world.memcgs.offline(memcg);
        if self.lru.remove_memcg(memcg, self.world.now) {
            self.world.move_up(memcg);
        } else {
            self.removed.push(memcg);
        }
        self.release_removed();
        Flow::Done
    }

    fn is_in_use(&self, memcg: MemcgId) -> bool {
        let memcgs = &self.world.memcgs;
        let mut tasks = self.tasks.iter().filter(|task| !task.has_ended());
        let mut groups = self.groups.iter().filter(|&&other| other != memcg);
        tasks.any(|task| memcgs.is_under(task.memcg, memcg))
            || groups.any(|&other| memcgs.is_online(other) && memcgs.is_under(other, memcg))
    }

    /// Forgets removed groups of which nothing is left.
    pub(crate) fn release_removed(&mut self) {
        if !self.removed.is_empty() {
            let lru = &mut self.lru;
            self.removed.retain(|&memcg| !lru.release_if_empty(memcg));
        }
    }
}
