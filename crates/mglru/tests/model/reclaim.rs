//! The loop around evict before and after the series (spec §5.7, §10.2), and the priority loop.

use mglru::config::Floor;

use super::Naive;
use super::aging::Need;

/// Holds what a reclaim call wants and has done.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    pub goal: u64,
    pub priority: u8,
    pub reclaimed: u64,
    pub scanned: u64,
    pub io: bool,
    pub reclaim_idx: usize,
    pub swappiness: u8,
    pub swap_is_fast: bool,
    /// The machine is short of memory, not the group.
    pub global: bool,
    pub proactive: bool,
    pub low_reclaim: bool,
    pub low_skipped: bool,
    pub unqueued_dirty: u64,
    pub file_taken: u64,
}

impl Control {
    pub fn new(pages: u64) -> Self {
        Self {
            goal: pages.max(32),
            priority: 12,
            reclaimed: 0,
            scanned: 0,
            io: true,
            reclaim_idx: 3,
            swappiness: 60,
            swap_is_fast: true,
            global: false,
            proactive: false,
            low_reclaim: false,
            low_skipped: false,
            unqueued_dirty: 0,
            file_taken: 0,
        }
    }
}

impl Naive {
    /// Spec §9.1.
    pub fn reclaim(&mut self, mut sc: Control) -> u64 {
        let mut full_walk = false;
        loop {
            for priority in (0..=self.first_priority(&sc)).rev() {
                sc.priority = priority;
                self.visit(&mut sc);
                if sc.reclaimed >= sc.goal {
                    break;
                }
            }
            if sc.reclaimed > 0 {
                break;
            }
            if !full_walk {
                full_walk = true;
            } else if sc.low_skipped && !sc.low_reclaim {
                sc.low_reclaim = true;
            } else {
                break;
            }
        }
        self.counts.zero_progress += u64::from(sc.reclaimed == 0 && !sc.proactive);
        sc.reclaimed
    }

    /// Spec §9.2.
    fn first_priority(&self, sc: &Control) -> u8 {
        if !sc.global || sc.goal < 64 {
            return 12;
        }
        let old = self.min_seq[0].min(self.min_seq[1])..self.max_seq - 1;
        let inactive: u64 = old.map(|s| self.size_of(s, 0) + self.size_of(s, 1)).sum();
        let fls = |x: u64| 64 - x.leading_zeros() as i32;
        (fls(inactive) - 1 - fls(sc.goal - 1)).clamp(6, 12) as u8
    }

    /// Spec §7.6.
    pub fn request(&mut self, pages: u64, sc: Control) -> u64 {
        let (mut done, mut retries) = (0, 16);
        while done < pages && retries > 0 {
            let goal = Control::new((pages - done) / 4).goal;
            let got = self.reclaim(Control { goal, proactive: true, ..sc });
            done += got;
            retries -= u32::from(got == 0);
        }
        done
    }

    fn visit(&mut self, sc: &mut Control) {
        sc.unqueued_dirty = 0;
        sc.file_taken = 0;
        if sc.global && self.config.uses_memcg_lru() {
            return self.walk_bins(sc);
        }
        let low = self.protected(sc);
        if low > 0 && self.usage() <= low && !sc.low_reclaim {
            sc.low_skipped = true;
            return;
        }
        let rotate = self.shrink(sc);
        self.note_rotation(rotate);
    }

    /// True: the memcg should be rotated.
    pub fn shrink(&mut self, sc: &mut Control) -> bool {
        let low = self.protected(sc);
        // Spec §5.1.
        sc.swappiness = if self.swap_left < 64 { 0 } else { self.swappiness };
        let usage = self.usage();
        if self.config.patches.p04 {
            self.shrink_after(sc, low, usage)
        } else {
            self.shrink_before(sc, low, usage)
        }
    }

    /// Spec §7.4: the target itself is not protected. Spec §K72.11: until 7.3 only kswapd, which
    /// never runs here, would have computed protection for the machine's reclaim.
    pub fn protected(&self, sc: &Control) -> u64 {
        if sc.global && !self.config.releases.stale_protection { self.low } else { 0 }
    }

    fn protect(&self, sc: &mut Control, low: u64, usage: u64) -> u64 {
        let size = self.evictable_size(sc.swappiness);
        if low == 0 || !self.config.proportional_protection {
            return size;
        }
        let p = if sc.low_reclaim { 0 } else { low };
        sc.low_skipped |= p > 0;
        (size - size * p / (usage.max(p) + 1)).max(size.min(32))
    }

    fn shrink_before(&mut self, sc: &mut Control, low: u64, usage: u64) -> bool {
        let (mut scanned, mut rotate) = (0, false);
        let mut walking = sc.proactive;
        loop {
            let need = self.need(sc.swappiness);
            let want = if need == Need::No || sc.priority == 12 {
                if need == Need::Must { 0 } else { self.protect(sc, low, usage) >> sc.priority }
            } else {
                walking = true;
                rotate = self.age(sc.swappiness);
                0
            };
            if want == 0 {
                break;
            }
            // 6.12 scans up to 4096 folios, 7.0 no more than it wants.
            let cap = if self.k612() { 4096 } else { want.min(4096) };
            let d = self.evict(sc, cap, walking);
            if d == 0 {
                break;
            }
            scanned += d;
            if scanned >= want || self.enough(sc) {
                break;
            }
        }
        let all_dirty = sc.unqueued_dirty > 0 && sc.unqueued_dirty == sc.file_taken;
        let wakes = !self.k612() || self.config.stable_612;
        if !self.config.patches.p10 && all_dirty && wakes {
            self.counts.flusher += 1;
        }
        rotate
    }

    fn shrink_after(&mut self, sc: &mut Control, low: u64, usage: u64) -> bool {
        let p = self.config.patches;
        let size = self.evictable_size(sc.swappiness);
        let budget = self.protect(sc, low, usage) >> sc.priority;
        let budget = match self.config.floor {
            Floor::None | Floor::V7 | Floor::V4 => budget,
            Floor::V2 => budget.max(32),
            Floor::V5 if budget == 0 && sc.priority < 12 => size.min(32),
            Floor::V5 => budget,
        };
        let mut rotate = budget == 0 && matches!(self.config.floor, Floor::V4 | Floor::V5);
        let mut left = budget as i64;
        let (mut aged, mut walking) = (false, sc.proactive);
        while left > 0 {
            let due = match self.need(sc.swappiness) {
                Need::Must => true,
                Need::Should => sc.priority != 12,
                Need::No => false,
            };
            if due {
                rotate |= self.age(sc.swappiness);
                (aged, walking) = (true, true);
                if !p.p07 {
                    break;
                }
            }
            let batch = if p.p06 { 64 } else { 4096 };
            let d = self.evict(sc, (left as u64).min(batch), walking);
            if d == 0 || self.enough(sc) || sc.global && aged {
                break;
            }
            left -= d as i64;
        }
        let all_dirty = sc.unqueued_dirty > 0 && sc.unqueued_dirty == sc.file_taken;
        if !p.p10 && all_dirty {
            self.counts.flusher += 1;
        }
        rotate
    }

    /// Root reclaim only.
    pub fn enough(&self, sc: &Control) -> bool {
        sc.global && sc.reclaimed >= sc.goal.max(2)
    }
}
