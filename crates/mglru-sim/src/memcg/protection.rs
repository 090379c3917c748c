//! Effective protection: how far a group's `memory.min` and `memory.low` count under those of its
//! ancestors.

use mglru::types::MemcgId;

use super::{Group, Limits, Memcgs};

impl Memcgs {
    /// What of `memory.min` counts, pages.
    pub fn effective_min(&self, id: MemcgId) -> u64 {
        self.effective(id, |limits| limits.min)
    }

    /// What of `memory.low` counts, pages.
    pub fn effective_low(&self, id: MemcgId) -> u64 {
        self.effective(id, |limits| limits.low)
    }

    fn effective(&self, id: MemcgId, claim: fn(&Limits) -> u64) -> u64 {
        let group = &self.groups[id.index()];
        let own = claim(&group.limits);
        let Some(parent) = group.parent else { return 0 };
        // The root protects nothing and limits nothing.
        if own == 0 || parent == MemcgId::ROOT {
            return own;
        }
        let available = self.effective(parent, claim);
        let siblings = self.groups[parent.index()].children.iter();
        let protected = |id: &MemcgId| protected_usage(&self.groups[id.index()], claim);
        let claimed: u64 = siblings.map(protected).sum();
        if claimed <= available {
            return own.min(available);
        }
        let share = u128::from(protected_usage(group, claim)) * u128::from(available);
        (share / u128::from(claimed)) as u64
    }
}

fn protected_usage(group: &Group, claim: fn(&Limits) -> u64) -> u64 {
    group.usage.current.min(claim(&group.limits))
}
