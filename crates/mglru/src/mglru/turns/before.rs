//! The loop before the series: each turn asks anew how much is wanted (spec §5.7).

use super::{MglruLoop, Turn};
use crate::batch::control::ScanControl;
use crate::mglru::aging::AgingNeed;
use crate::state::Lru;
use crate::types::DEF_PRIORITY;

impl Lru {
    pub(super) fn turn_before(&self, ctl: &mut ScanControl, work: &mut MglruLoop) -> Turn {
        let Some(want) = self.want_before(ctl, work) else { return Turn::Age };
        if want <= 0 {
            return work.over(want < 0);
        }
        work.want = want as u64;
        Turn::Evict(self.batch(work.want))
    }

    /// Pages wanted; -1: give up and rotate; `None`: age first.
    fn want_before(&self, ctl: &mut ScanControl, work: &MglruLoop) -> Option<i64> {
        if work.protection.below_min() {
            return Some(-1);
        }
        let need = self.aging_need(work.lruvec, work.swappiness());
        let size = self.evictable_size(work.lruvec, work.evictable());
        let memcg = self.place(work.lruvec).memcg;
        let size = if need == AgingNeed::Must { 0 } else { size };
        if !self.memcgs[memcg].online && size > 0 {
            return Some(size as i64);
        }
        if need == AgingNeed::No || ctl.priority == DEF_PRIORITY {
            let must = need == AgingNeed::Must;
            let size = if must { 0 } else { work.protection.protect(ctl, size) };
            return Some((size >> ctl.priority) as i64);
        }
        None
    }
}
