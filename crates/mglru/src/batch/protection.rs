//! `memory.min` and `memory.low` as reclaim sees them (spec §7.4).
//!
//! A group's effective protection is bounded by its ancestors'; what siblings claim beyond that is
//! shared in proportion to their protected usage. The reclaim target itself is never protected.

use crate::batch::control::ScanControl;
use crate::host::{Host, MemcgView};
use crate::state::Lru;
use crate::types::{MIN_LRU_BATCH, MemcgId, NodeId, SWAP_CLUSTER_MAX, SWAPPINESS_ANON_ONLY};

/// One memcg's situation during a reclaim. Pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Protection {
    pub(crate) usage: u64,
    pub(crate) min: u64,
    pub(crate) low: u64,
    pub(crate) swappiness: u8,
    pub(crate) can_swap: bool,
    proportional: bool,
}

impl Protection {
    pub(crate) fn below_min(&self) -> bool {
        self.min > 0 && self.usage <= self.min
    }

    pub(crate) fn below_low(&self) -> bool {
        self.low > 0 && self.usage <= self.low
    }

    /// The part of `size` that may be scanned.
    pub(crate) fn protect(&self, ctl: &mut ScanControl, size: u64) -> u64 {
        if !self.proportional || self.min == 0 && self.low == 0 {
            return size;
        }
        let protected = if !ctl.low_reclaim && self.low > self.min {
            ctl.low_skipped = true;
            self.low
        } else {
            self.min
        };
        let usage = self.usage.max(protected);
        let share = u128::from(size) * u128::from(protected) / (u128::from(usage) + 1);
        (size - share as u64).max(SWAP_CLUSTER_MAX.min(size))
    }
}

impl Lru {
    /// The situation of `memcg` on `node` in a reclaim of `ctl`'s target.
    pub(crate) fn protection(
        &mut self,
        ctl: &ScanControl,
        memcg: MemcgId,
        node: NodeId,
        host: &mut impl Host,
    ) -> Protection {
        let view = host.memcg(memcg);
        let can_demote = host.demotion_target(node).is_some();
        let exempt = memcg == MemcgId::ROOT || memcg == ctl.top();
        let (min, low) = if exempt { (0, 0) } else { self.effective_of(ctl, memcg, host) };
        self.memcgs[memcg].has_swap = view.swap_left > 0;
        Protection {
            usage: view.usage,
            min,
            low,
            swappiness: self.swappiness(ctl, &view, can_demote),
            can_swap: view.swap_left > 0 || can_demote,
            proportional: !self.config.is_mglru() || self.config.proportional_protection,
        }
    }

    /// The swappiness one lruvec sees (spec §5.1).
    fn swappiness(&self, ctl: &ScanControl, view: &MemcgView, can_demote: bool) -> u8 {
        let anon_only = ctl.swappiness.filter(|&asked| asked == SWAPPINESS_ANON_ONLY);
        if let Some(asked) = anon_only.filter(|_| self.config.releases.anon_only_kept) {
            return asked;
        }
        let too_little_swap = self.config.is_mglru() && view.swap_left < MIN_LRU_BATCH;
        if !ctl.may_swap || too_little_swap && !can_demote {
            0
        } else {
            ctl.swappiness.unwrap_or(view.swappiness)
        }
    }

    /// Effective `memory.min` and `memory.low`: computed anew, but for root reclaim up to
    /// 7.2 by anyone but kswapd, which goes by what was computed last (spec §K72.11).
    fn effective_of(
        &mut self,
        ctl: &ScanControl,
        memcg: MemcgId,
        host: &mut impl Host,
    ) -> (u64, u64) {
        let may_be_stale = self.config.releases.stale_protection && self.config.is_mglru();
        if !may_be_stale || !ctl.is_root() || ctl.is_kswapd() {
            let min = self.effective(ctl.top(), memcg, |v| v.min, host);
            let low = self.effective(ctl.top(), memcg, |v| v.low, host);
            self.memcgs[memcg].effective = (min, low);
        }
        self.memcgs[memcg].effective
    }

    /// kswapd computes the protection of every group before it reclaims (spec §4.7).
    pub(crate) fn refresh_protection(&mut self, ctl: &ScanControl, host: &mut impl Host) {
        for memcg in self.memcgs.ids().skip(1) {
            self.effective_of(ctl, memcg, host);
        }
    }

    fn effective(
        &self,
        top: MemcgId,
        memcg: MemcgId,
        setting: fn(&MemcgView) -> u64,
        host: &mut impl Host,
    ) -> u64 {
        let own = setting(&host.memcg(memcg));
        let Some(parent) = self.memcgs.parent(memcg) else { return own };
        if own == 0 || parent == top || parent == MemcgId::ROOT {
            return own;
        }
        let bound = self.effective(top, parent, setting, host);
        let claim = |view: MemcgView| view.usage.min(setting(&view));
        let mine = claim(host.memcg(memcg));
        let all: u64 = self.memcgs.children(parent).map(|c| claim(host.memcg(c))).sum();
        if all <= bound {
            return own.min(bound);
        }
        (u128::from(bound) * u128::from(mine) / u128::from(all.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Reclaimer;

    fn protection(usage: u64, min: u64, low: u64) -> Protection {
        let (swappiness, can_swap, proportional) = (60, true, true);
        Protection { usage, min, low, swappiness, can_swap, proportional }
    }

    fn control() -> ScanControl {
        ScanControl::new(Reclaimer::Direct, None, 32)
    }

    #[test]
    fn pressure_grows_with_the_excess() {
        let mut ctl = control();
        let scans: alloc::vec::Vec<u64> = [1000, 1100, 2000, 10_000]
            .map(|usage| protection(usage, 0, 1000).protect(&mut ctl, 1000))
            .to_vec();
        assert_eq!(scans, [32, 92, 501, 901]);
        assert!(ctl.low_skipped);
    }

    #[test]
    fn low_reclaim_goes_down_to_min() {
        let mut ctl = ScanControl { low_reclaim: true, ..control() };
        assert_eq!(protection(1000, 500, 1000).protect(&mut ctl, 1000), 501);
        assert!(!ctl.low_skipped);
    }

    #[test]
    fn unprotected_memory_is_scanned_whole_and_small_sizes_stay() {
        let mut ctl = control();
        assert_eq!(protection(10, 0, 0).protect(&mut ctl, 1000), 1000);
        assert_eq!(protection(10, 0, 1000).protect(&mut ctl, 20), 20);
    }
}
