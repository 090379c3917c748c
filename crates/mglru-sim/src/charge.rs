//! A page for a task: charged to its group, taken from a zone, with reclaim where either is
//! full, until the retries are used up and somebody must be killed (spec §9.1, §9.6). The pages of
//! a large folio are charged and taken together, or not at all (spec §LF.15).

use mglru::host::ZoneView;
use mglru::types::{MAX_NR_ZONES, MemcgId, Zone};
use mglru::{AllocRetry, ChargeRetry, Gfp, Reclaim, RetryStep, Sizes};

use crate::machine::Machine;
use crate::memcg::Event;
use crate::reclaiming::Progress;
use crate::task::{Flow, FreshPage};
use crate::zones::{Mark, NORMAL};

/// Nobody is killed for a folio larger than this: its caller can do with a smaller one.
const MOST_WORTH_A_KILL: u8 = 3;

/// Describes a charge that met a limit.
#[derive(Debug)]
pub struct Charging {
    /// How many pages are asked for, as a power of two.
    order: u8,
    /// The caller can do without: one reclaim, no kill.
    soft: bool,
    /// The group has been charged; only a free page is wanting.
    charged: bool,
    /// Where reclaim is at work: a group, or the whole machine.
    scope: Option<MemcgId>,
    group_retry: ChargeRetry,
    machine_retry: AllocRetry,
}

/// Says how a request for a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Returns the page.
    Ready(FreshPage),
    /// Refuses: no page is left, or the task is dying.
    Refused,
    /// Delays the charge: ask again when the task goes on.
    Held(Flow),
}

impl Machine {
    /// A page charged to the task's group. Asked again until it is ready or refused.
    pub(crate) fn take_page(&mut self, t: usize, soft: bool) -> Page {
        self.take_pages(t, 0, soft)
    }

    /// Pages for a folio of this order; a request that goes on keeps the order it began with.
    pub(crate) fn take_pages(&mut self, t: usize, order: u8, soft: bool) -> Page {
        if self.is_dying(t) && self.tasks[t].reclaim.is_none() {
            self.abandon_charge(t);
            return Page::Refused;
        }
        let Some(mut charging) = self.tasks[t].charging.take() else {
            return self.first_try(t, order, soft);
        };
        loop {
            match self.try_charge(t, &mut charging) {
                Tried::Got(page) => return Page::Ready(page),
                Tried::Gone => return Page::Refused,
                Tried::Again => {}
                Tried::Held(flow) => {
                    self.tasks[t].charging = Some(charging);
                    return Page::Held(flow);
                }
            }
        }
    }

    fn first_try(&mut self, t: usize, order: u8, soft: bool) -> Page {
        let node = self.tasks[t].node;
        let charged = self.charge(t, 1 << order);
        if charged.is_ok() {
            if let Some(page) = self.world.alloc_pages(node, order) {
                self.note_high(t, order);
                return Page::Ready(page);
            }
        }
        let charging = Charging {
            order,
            soft,
            charged: charged.is_ok(),
            scope: charged.err(),
            group_retry: ChargeRetry::default(),
            machine_retry: AllocRetry::default(),
        };
        self.start_reclaim(t, charging.scope, order);
        self.tasks[t].charging = Some(Box::new(charging));
        self.take_pages(t, order, soft)
    }

    /// Reclaims in the group that is full, or for the machine.
    fn start_reclaim(&mut self, t: usize, full: Option<MemcgId>, order: u8) {
        let reclaim = match full {
            Some(group) => Reclaim::memcg(group, 1 << order, Gfp::default()),
            None => Reclaim::direct(self.tasks[t].node, NORMAL, 0, Gfp::default()),
        };
        self.begin_reclaim(t, reclaim);
    }

    fn try_charge(&mut self, t: usize, charging: &mut Charging) -> Tried {
        if self.tasks[t].reclaim.is_some() {
            return match self.reclaim_on(t) {
                Progress::Held(flow) => Tried::Held(flow),
                Progress::Done(reclaimed) => self.after_reclaim(t, charging, reclaimed),
            };
        }
        if self.is_dying(t) {
            self.give_charge_back(t, charging);
            return Tried::Gone;
        }
        if !charging.charged {
            if let Err(full) = self.charge(t, 1 << charging.order) {
                charging.scope = Some(full);
                self.start_reclaim(t, Some(full), charging.order);
                return Tried::Again;
            }
            charging.charged = true;
        }
        match self.world.alloc_pages(self.tasks[t].node, charging.order) {
            Some(page) => {
                self.note_high(t, charging.order);
                Tried::Got(page)
            }
            None => {
                charging.scope = None;
                self.start_reclaim(t, None, charging.order);
                Tried::Again
            }
        }
    }

    fn after_reclaim(&mut self, t: usize, charging: &mut Charging, reclaimed: u64) -> Tried {
        let room = match charging.scope {
            Some(full) => self.has_room(full, 1 << charging.order),
            None => {
                let (node, pages) = (self.tasks[t].node, 1 << charging.order);
                self.world.zones.allows(node, NORMAL, pages, Mark::Min)
            }
        };
        if room {
            return Tried::Again;
        }
        if charging.soft {
            self.give_charge_back(t, charging);
            return Tried::Gone;
        }
        let next = match charging.scope {
            Some(_) => charging.group_retry.next(reclaimed, room),
            None => charging.machine_retry.next(reclaimed, self.could_satisfy(t)),
        };
        match next {
            RetryStep::Oom if charging.order > MOST_WORTH_A_KILL => {
                self.give_charge_back(t, charging);
                Tried::Gone
            }
            RetryStep::Oom => self.kill_for(charging),
            RetryStep::Served | RetryStep::Reclaim => Tried::Again,
        }
    }

    /// Charges pages, from the task's stock where charges are made in batches.
    fn charge(&mut self, t: usize, pages: u64) -> Result<(), MemcgId> {
        let (batch, task) = (self.charge_batch, &mut self.tasks[t]);
        if task.stock >= pages {
            task.stock -= pages;
            return Ok(());
        }
        if batch > pages && self.world.memcgs.room(task.memcg) >= batch {
            self.world.memcgs.charge_anyway(task.memcg, batch);
            task.stock += batch - pages;
            return Ok(());
        }
        self.world.memcgs.try_charge(task.memcg, pages)
    }

    /// Is there room in a group, if need be after all stocks were given back?
    fn has_room(&mut self, full: MemcgId, pages: u64) -> bool {
        if self.world.memcgs.room(full) < pages {
            (0..self.tasks.len()).for_each(|t| self.drain_stock(t));
        }
        self.world.memcgs.room(full) >= pages
    }

    /// Gives back what a task charged in advance.
    pub(crate) fn drain_stock(&mut self, t: usize) {
        let task = &mut self.tasks[t];
        let stock = std::mem::take(&mut task.stock);
        self.world.memcgs.uncharge(task.memcg, stock);
    }

    /// Would reclaiming everything reclaimable let an allocation succeed?
    fn could_satisfy(&self, t: usize) -> bool {
        let node = self.tasks[t].node;
        let zones = (0..MAX_NR_ZONES as u8).map(|z| self.world.zones.view(node, Zone(z)));
        let usable = |z: &ZoneView| z.free.saturating_sub(z.reserve);
        let (free, min) = zones.fold((0, 0), |(free, min), z| (free + usable(&z), min + z.min));
        let swap = self.world.swap.free_slots() > 0;
        let reclaimable = |s: Sizes| {
            let anon = if swap { s.inactive_anon + s.active_anon } else { 0 };
            s.inactive_file + s.active_file + anon
        };
        free + self.all_sizes(node).map(reclaimable).sum::<u64>() > min
    }

    fn kill_for(&mut self, charging: &mut Charging) -> Tried {
        let scope = charging.scope.unwrap_or(MemcgId::ROOT);
        self.world.memcgs.event(scope, Event::Oom);
        charging.group_retry = ChargeRetry::default();
        charging.machine_retry = AllocRetry::default();
        if self.kill_largest(scope) {
            return Tried::Again;
        }
        // Everybody who could be killed is dying already: their memory is on its way.
        Tried::Held(Flow::Sleep(self.world.now + self.tick()))
    }

    fn give_charge_back(&mut self, t: usize, charging: &Charging) {
        if charging.charged {
            self.world.memcgs.uncharge(self.tasks[t].memcg, 1 << charging.order);
        }
    }

    /// A dying task leaves its charge.
    pub(crate) fn abandon_charge(&mut self, t: usize) {
        if let Some(charging) = self.tasks[t].charging.take() {
            self.give_charge_back(t, &charging);
        }
    }

    /// Notes a charge above `memory.high`: `settle_high` acts before the next operation.
    #[inline]
    fn note_high(&mut self, t: usize, order: u8) {
        if self.world.memcgs.over_high(self.tasks[t].memcg).is_some() {
            self.tasks[t].over_high += 1 << order;
        }
    }
}

enum Tried {
    Got(FreshPage),
    Gone,
    Again,
    Held(Flow),
}
