//! Commands of an administrator.

use mglru::types::MemcgId;
use mglru::{Gfp, Reclaim};
use mglru_workload::{ANON_ONLY, Control, FileId, GroupId, Knob};

use crate::machine::Machine;
use crate::memcg::Event;
use crate::reclaiming::Progress;
use crate::spec::PAGE_SIZE;
use crate::task::{Doing, Flow, Sync};

/// Attempts at bringing a group below a limit that was lowered, or below `memory.high`.
pub(crate) const RETRIES: u32 = mglru::types::MAX_RECLAIM_RETRIES;
/// Pages asked for at a time when a limit was lowered or `memory.high` is exceeded.
pub(crate) const HIGH_GOAL: u64 = 32;

impl Machine {
    /// Begins a command.
    pub(crate) fn begin_control(&mut self, t: usize, control: Control) -> Flow {
        match control {
            Control::Sync => {
                let files = 0..self.world.files.len() as FileId;
                self.tasks[t].doing = Doing::Sync(Sync { files, started: false });
                Flow::Again
            }
            Control::DropCaches => {
                self.lru.drain_parked();
                (0..self.world.files.len()).for_each(|file| self.drop_caches(file as FileId));
                Flow::Done
            }
            Control::Reclaim { swappiness: Some(ANON_ONLY), .. } if self.lru.config().is_k612() => {
                // 6.12 knows no `swappiness=max`, and says so.
                self.refused_commands += 1;
                Flow::Done
            }
            Control::Reclaim { group, bytes, swappiness } => {
                let memcg = group.map_or(MemcgId::ROOT, |group| self.group(group));
                let reclaim = Reclaim::proactive(memcg, bytes / PAGE_SIZE, swappiness);
                self.command(t, control, reclaim)
            }
            Control::Remove { group } => self.remove_group(t, group),
            Control::Set { group, knob, value } => self.set_knob(t, control, group, knob, value),
            Control::Age { group, can_swap, force } => {
                let memcg = self.group(group);
                self.age(memcg, can_swap, force)
            }
            Control::Evict { group, offset, swappiness, nr } => {
                let memcg = self.group(group);
                self.evict_generation(memcg, offset, swappiness, nr)
            }
        }
    }

    /// The administrator's own reclaim: nobody stalls for it.
    fn command(&mut self, t: usize, control: Control, reclaim: Reclaim) -> Flow {
        self.tasks[t].reclaim = Some(Box::new(reclaim));
        self.tasks[t].doing = Doing::Control { control, retries: RETRIES };
        Flow::Again
    }

    /// Goes on with a command that reclaims.
    pub(crate) fn control(&mut self, t: usize, control: Control, retries: u32) -> Flow {
        let reclaimed = match self.reclaim_on(t) {
            Progress::Held(flow) => return flow,
            Progress::Done(reclaimed) => reclaimed,
        };
        match control {
            Control::Set { group, knob: Knob::MemoryMax, value } => {
                self.lower_max(t, control, group, value, reclaimed, retries)
            }
            Control::Reclaim { bytes, .. } => {
                self.short_requests += u64::from(reclaimed < bytes / PAGE_SIZE);
                Flow::Done
            }
            _ => Flow::Done,
        }
    }

    fn set_knob(
        &mut self,
        t: usize,
        control: Control,
        group: GroupId,
        knob: Knob,
        value: u64,
    ) -> Flow {
        let memcg = self.group(group);
        let pages = if value == u64::MAX { u64::MAX } else { value / PAGE_SIZE };
        let limits = self.world.memcgs.limits_mut(memcg);
        match knob {
            Knob::MemoryMin => limits.min = pages,
            Knob::MemoryLow => limits.low = pages,
            Knob::MemoryHigh => limits.high = pages,
            Knob::MemoryMax => limits.max = pages,
            Knob::MemorySwapMax => limits.swap_max = pages,
            Knob::Swappiness => limits.swappiness = value.min(200) as u8,
        }
        let usage = self.world.memcgs.usage(memcg).current;
        match knob {
            Knob::MemoryMax | Knob::MemoryHigh if usage > pages => {
                let reclaim = Reclaim::memcg(memcg, usage - pages, Gfp::default());
                self.command(t, control, reclaim)
            }
            _ => Flow::Done,
        }
    }

    /// `memory.max` was set below usage: reclaim, and when that does not help, kill.
    fn lower_max(
        &mut self,
        t: usize,
        control: Control,
        group: GroupId,
        value: u64,
        reclaimed: u64,
        retries: u32,
    ) -> Flow {
        let memcg = self.group(group);
        let usage = self.world.memcgs.usage(memcg).current;
        let Some(over) = usage.checked_sub(value / PAGE_SIZE).filter(|&over| over > 0) else {
            return Flow::Done;
        };
        let retries = if reclaimed > 0 { retries } else { retries.saturating_sub(1) };
        if retries == 0 {
            self.world.memcgs.event(memcg, Event::Oom);
            if !self.kill_largest(memcg) {
                return Flow::Done;
            }
        }
        let reclaim = Reclaim::memcg(memcg, over, Gfp::default());
        self.tasks[t].reclaim = Some(Box::new(reclaim));
        self.tasks[t].doing = Doing::Control { control, retries };
        Flow::Again
    }

    /// Drops pages that are clean, unmapped and unused, and every shadow.
    fn drop_caches(&mut self, file: FileId) {
        let cache = &self.world.files[file as usize].cache;
        let cached: Vec<_> = cache.folios(0, u64::MAX).collect();
        for (_, folio) in cached {
            if self.is_unused(folio) {
                self.drop_cached(file, folio);
            }
        }
        self.world.drop_shadows(file);
    }
}
