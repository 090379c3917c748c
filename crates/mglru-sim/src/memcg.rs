//! Memory cgroups: a tree of charges, limits and events with the rules of cgroup v2, and what the
//! policy core sees of it (reclaim spec §7.4, §9.6). Sizes are pages.
//!
//! A charge counts in the group and every ancestor; the root has no limits. What a protection is
//! worth among siblings and below ancestors is for the policy core to say.

mod events;

use mglru::host::MemcgView;
use mglru::types::{MemcgId, Nanos};

pub use self::events::{Event, EventCounts, Events};
use crate::spec::GroupSpec;

/// Means that there is no limit.
pub const NO_LIMIT: u64 = u64::MAX;

/// Longest delay of one charge beyond `memory.high`.
const MAX_HIGH_DELAY: Nanos = 2_000_000_000;
/// Pages a delay is computed for; more are delayed longer, in proportion.
const HIGH_BATCH: u64 = 32;

/// Holds the limits of a group, pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Holds `memory.min`, pages.
    pub min: u64,
    /// Holds `memory.low`, pages.
    pub low: u64,
    /// Holds `memory.high`, pages.
    pub high: u64,
    /// Holds `memory.max`, pages.
    pub max: u64,
    /// Holds `memory.swap.max`, pages.
    pub swap_max: u64,
    /// Holds `memory.swappiness`, 0 to 200.
    pub swappiness: u8,
}

impl Limits {
    /// Returns limits that restrict nothing.
    pub fn none(swappiness: u8) -> Self {
        Self { min: 0, low: 0, high: NO_LIMIT, max: NO_LIMIT, swap_max: NO_LIMIT, swappiness }
    }

    /// Returns the limits of a plan; a group without a swappiness has the machine's.
    pub fn new(spec: &GroupSpec, swappiness: u8) -> Self {
        Self {
            min: spec.min.pages(),
            low: spec.low.pages(),
            high: spec.high.pages(),
            max: spec.max.pages(),
            swap_max: spec.swap_max.pages(),
            swappiness: spec.swappiness.unwrap_or(swappiness),
        }
    }
}

/// Counts the pages that a group holds, descendants included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Counts pages charged, kernel memory included (`memory.current`).
    pub current: u64,
    /// Holds the most pages ever charged (`memory.peak`).
    pub peak: u64,
    /// Counts the pages of `current` that are page tables and other kernel memory.
    pub kernel: u64,
    /// Counts swap slots (`memory.swap.current`).
    pub swap: u64,
    /// Holds the most swap slots ever (`memory.swap.peak`).
    pub swap_peak: u64,
}

#[derive(Clone, Debug)]
struct Group {
    parent: Option<MemcgId>,
    children: Vec<MemcgId>,
    limits: Limits,
    usage: Usage,
    events: Events,
    online: bool,
}

/// Holds the tree of groups. Group 0 is the root; ids are those of the policy core.
#[derive(Clone, Debug)]
pub struct Memcgs {
    groups: Vec<Group>,
}

impl Memcgs {
    /// Creates a tree of the root alone, with the machine's swappiness.
    pub fn new(swappiness: u8) -> Self {
        Self { groups: vec![Group::new(None, Limits::none(swappiness))] }
    }

    /// Adds a group.
    ///
    /// # Panics
    /// When there is no such parent.
    pub fn add(&mut self, parent: MemcgId, limits: Limits) -> MemcgId {
        let id = MemcgId(self.groups.len() as u32);
        self.groups[parent.index()].children.push(id);
        self.groups.push(Group::new(Some(parent), limits));
        id
    }

    /// Removes a group; what it still holds stays charged to it and its ancestors.
    pub fn offline(&mut self, id: MemcgId) {
        self.groups[id.index()].online = false;
    }

    /// Pages of a removed group are its parent's from now on; ancestors count them as before.
    pub(crate) fn move_up(&mut self, id: MemcgId, pages: u64) {
        self.groups[id.index()].usage.current -= pages;
    }

    /// Tells whether the group was not removed.
    pub fn is_online(&self, id: MemcgId) -> bool {
        self.groups[id.index()].online
    }

    /// Counts the groups ever made, the root included; ids are below this.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Tells whether there is no group: never, as there is always the root.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the parent of a group; `None` for the root.
    pub fn parent(&self, id: MemcgId) -> Option<MemcgId> {
        self.groups[id.index()].parent
    }

    /// Iterates over the group and its ancestors, root last.
    pub fn ancestry(&self, id: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        std::iter::successors(Some(id), |id| self.parent(*id))
    }

    /// Tells whether `id` is `ancestor` or below it.
    pub fn is_under(&self, id: MemcgId, ancestor: MemcgId) -> bool {
        self.ancestry(id).any(|group| group == ancestor)
    }

    /// Returns the limits of a group.
    pub fn limits(&self, id: MemcgId) -> Limits {
        self.groups[id.index()].limits
    }

    /// Returns a group's limits, to be changed. Usage may then exceed them: the caller reclaims.
    pub fn limits_mut(&mut self, id: MemcgId) -> &mut Limits {
        &mut self.groups[id.index()].limits
    }

    /// Counts the pages that a group holds.
    pub fn usage(&self, id: MemcgId) -> Usage {
        self.groups[id.index()].usage
    }

    /// Returns the events of a group.
    pub fn events(&self, id: MemcgId) -> Events {
        self.groups[id.index()].events
    }

    /// Charges `pages` to a group and its ancestors, or to none of them.
    ///
    /// # Errors
    /// The lowest group whose `memory.max` is in the way; its `max` event is counted. Reclaim is to
    /// be done there.
    pub fn try_charge(&mut self, id: MemcgId, pages: u64) -> Result<(), MemcgId> {
        let full = self.ancestry(id).find(|group| self.room_of(*group) < pages);
        if let Some(full) = full {
            self.event(full, Event::Max);
            return Err(full);
        }
        self.charge_anyway(id, pages);
        Ok(())
    }

    /// Charges `pages` whatever the limits.
    pub fn charge_anyway(&mut self, id: MemcgId, pages: u64) {
        self.each_up(id, |usage| {
            usage.current += pages;
            usage.peak = usage.peak.max(usage.current);
        });
    }

    /// Takes a charge back.
    ///
    /// # Panics
    /// When less than that was charged.
    pub fn uncharge(&mut self, id: MemcgId, pages: u64) {
        self.each_up(id, |usage| {
            let left = usage.current.checked_sub(pages);
            usage.current = left.expect("uncharged more than was charged");
        });
    }

    /// Charges kernel memory, such as page tables.
    ///
    /// # Errors
    /// As [`Memcgs::try_charge`].
    pub fn try_charge_kernel(&mut self, id: MemcgId, pages: u64) -> Result<(), MemcgId> {
        self.try_charge(id, pages)?;
        self.each_up(id, |usage| usage.kernel += pages);
        Ok(())
    }

    /// Charges kernel memory whatever the limits.
    pub fn charge_kernel_anyway(&mut self, id: MemcgId, pages: u64) {
        self.charge_anyway(id, pages);
        self.each_up(id, |usage| usage.kernel += pages);
    }

    /// Takes a charge of kernel memory back.
    pub fn uncharge_kernel(&mut self, id: MemcgId, pages: u64) {
        self.uncharge(id, pages);
        self.each_up(id, |usage| usage.kernel -= pages);
    }

    /// Charges swap slots to a group and its ancestors; false, and nothing charged, when one of
    /// their `memory.swap.max` is in the way.
    pub fn try_charge_swap(&mut self, id: MemcgId, pages: u64) -> bool {
        let fits = self.swap_left(id, NO_LIMIT) >= pages;
        if fits {
            self.each_up(id, |usage| {
                usage.swap += pages;
                usage.swap_peak = usage.swap_peak.max(usage.swap);
            });
        }
        fits
    }

    /// Takes a charge of swap slots back.
    ///
    /// # Panics
    /// When less than that was charged.
    pub fn uncharge_swap(&mut self, id: MemcgId, pages: u64) {
        self.each_up(id, |usage| {
            let left = usage.swap.checked_sub(pages);
            usage.swap = left.expect("uncharged more swap than was charged");
        });
    }

    /// Returns the swap that the group may still take, when the device has `device_free` slots
    /// left.
    pub fn swap_left(&self, id: MemcgId, device_free: u64) -> u64 {
        let left = self.ancestry(id).map(|group| {
            let group = &self.groups[group.index()];
            group.limits.swap_max.saturating_sub(group.usage.swap)
        });
        left.fold(device_free, u64::min)
    }

    /// Tells whether the group or an ancestor uses more than half of the swap that it may take.
    pub fn swap_is_crowded(&self, id: MemcgId) -> bool {
        self.ancestry(id).any(|group| {
            let group = &self.groups[group.index()];
            group.usage.swap > group.limits.swap_max / 2
        })
    }

    /// Counts the pages that may be charged to the group before it or an ancestor is full.
    pub fn room(&self, id: MemcgId) -> u64 {
        self.ancestry(id).map(|group| self.room_of(group)).fold(NO_LIMIT, u64::min)
    }

    /// Finds the first of the group and its ancestors above its `memory.high`, and the excess.
    pub fn over_high(&self, id: MemcgId) -> Option<(MemcgId, u64)> {
        let over = |id: MemcgId| {
            let group = &self.groups[id.index()];
            (id, group.usage.current.saturating_sub(group.limits.high))
        };
        self.ancestry(id).map(over).find(|(_, overage)| *overage > 0)
    }

    /// Returns the delay of a task that charged `pages` for usage above `memory.high` that reclaim
    /// could not bring down: 10 µs × (overage in 1/1024 of the limit)² per 32 pages, so that 10 %
    /// above costs 0.1 s, and never more than 2 s. The worst of the group and its ancestors.
    pub fn high_delay(&self, id: MemcgId, pages: u64) -> Nanos {
        let delay = |id: MemcgId| {
            let group = &self.groups[id.index()];
            let overage = group.usage.current.saturating_sub(group.limits.high);
            let parts = u128::from(overage) * 1_024 / u128::from(group.limits.high.max(1));
            let parts = parts.min(1 << 20);
            let batches = u128::from(pages.min(1 << 20));
            let delay = 10_000 * parts * parts * batches / u128::from(HIGH_BATCH);
            delay.min(u128::from(MAX_HIGH_DELAY)) as Nanos
        };
        self.ancestry(id).map(delay).max().unwrap_or(0)
    }

    /// Counts an event, here and in the ancestors.
    pub fn event(&mut self, id: MemcgId, event: Event) {
        self.groups[id.index()].events.local.add(event);
        let mut at = Some(id);
        while let Some(id) = at {
            let group = &mut self.groups[id.index()];
            group.events.hierarchical.add(event);
            at = group.parent;
        }
    }

    /// Shows a group to the policy core, when the device has `device_free` swap slots left.
    pub fn view(&self, id: MemcgId, device_free: u64) -> MemcgView {
        let group = &self.groups[id.index()];
        MemcgView {
            usage: group.usage.current,
            min: group.limits.min,
            low: group.limits.low,
            max: group.limits.max,
            swappiness: group.limits.swappiness,
            swap_left: self.swap_left(id, device_free),
        }
    }

    fn room_of(&self, id: MemcgId) -> u64 {
        let group = &self.groups[id.index()];
        match group.limits.max {
            NO_LIMIT => NO_LIMIT,
            max => max.saturating_sub(group.usage.current),
        }
    }

    #[inline]
    fn each_up(&mut self, id: MemcgId, mut change: impl FnMut(&mut Usage)) {
        let mut at = Some(id);
        while let Some(id) = at {
            let group = &mut self.groups[id.index()];
            change(&mut group.usage);
            at = group.parent;
        }
    }
}

impl Group {
    fn new(parent: Option<MemcgId>, limits: Limits) -> Self {
        let (usage, events) = (Usage::default(), Events::default());
        Self { parent, children: Vec::new(), limits, usage, events, online: true }
    }
}

#[cfg(test)]
mod tests;
