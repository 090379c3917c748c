//! Tiers and the refault controller, as the text of spec §3.3 and §5.2 has them.

use super::{ANON, FILE, Page};

/// Sums of the current oldest generation and their averages.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    pub avg_refaulted: [[u64; 4]; 2],
    pub avg_total: [[u64; 4]; 2],
    pub evicted: [[u64; 4]; 2],
    pub refaulted: [[u64; 4]; 2],
    pub protected: [[u64; 4]; 2],
}

/// Access count of a page.
pub fn count(k612: bool, page: &Page) -> u32 {
    match (k612, page.referenced) {
        (true, _) => page.refs + u32::from(page.workingset),
        (false, true) => page.refs + 1,
        (false, false) => 0,
    }
}

/// Its tier, by the table.
pub fn tier(k612: bool, r: u32, ws: bool) -> usize {
    if k612 {
        return [0, 1, 2, 2, 3][r as usize];
    }
    if ws { 3 } else { [0, 0, 1, 2, 2][r as usize] }
}

pub fn tier_of(k612: bool, page: &Page) -> usize {
    tier(k612, count(k612, page), !k612 && page.workingset)
}

pub fn saturated(k612: bool, page: &Page) -> bool {
    let r = count(k612, page);
    if k612 { r == 4 } else { r + u32::from(page.workingset) == 5 }
}

type Rate = (u64, u64, u64);

fn prefer_pv(sp: Rate, pv: Rate) -> bool {
    let [(sr, st, sg), (pr, pt, pg)] =
        [sp, pv].map(|(a, b, c)| (u128::from(a), u128::from(b), u128::from(c)));
    pr < 64 || pr * (st + 64) * sg <= (sr + 1) * pt * pg
}

impl Controller {
    pub fn carry_over(&mut self, t: usize) {
        for k in 0..4 {
            self.avg_refaulted[t][k] = (self.avg_refaulted[t][k] + self.refaulted[t][k]) / 2;
            self.avg_total[t][k] =
                (self.avg_total[t][k] + self.evicted[t][k] + self.protected[t][k]) / 2;
            self.refaulted[t][k] = 0;
            self.evicted[t][k] = 0;
            self.protected[t][k] = 0;
        }
    }

    fn rate(&self, t: usize, k: usize, gain: u64) -> Rate {
        let r = self.avg_refaulted[t][k] + self.refaulted[t][k];
        let total = self.avg_total[t][k] + self.evicted[t][k] + self.protected[t][k];
        (r, total, gain)
    }

    fn sum(&self, t: usize, gain: u64) -> Rate {
        let (mut r, mut total) = (0, 0);
        for k in 0..4 {
            r += self.rate(t, k, 0).0;
            total += self.rate(t, k, 0).1;
        }
        (r, total, gain)
    }

    fn limit(&self, t: usize, against: usize, g0: u64, g1: u64) -> usize {
        for k in 1..4 {
            if !prefer_pv(self.rate(against, 0, g0), self.rate(t, k, g1)) {
                return k - 1;
            }
        }
        3
    }

    pub fn own_limit(&self, k612: bool, t: usize) -> usize {
        if k612 { self.limit(t, t, 1, 2) } else { self.limit(t, t, 2, 3) }
    }

    /// K614: type by summed rates.
    pub fn choose_k614(&self, swappiness: u64) -> (usize, usize) {
        let s = swappiness;
        let file = s <= 1 || s < 200 && prefer_pv(self.sum(ANON, s), self.sum(FILE, 200 - s));
        let t = usize::from(file);
        (t, self.own_limit(false, t))
    }

    /// K612: the first rule that applies, then first tiers against each other.
    pub fn choose_k612(&self, s: u64, min_seq: [usize; 2], io: bool) -> (usize, usize) {
        let fixed = match () {
            _ if s == 0 => Some(FILE),
            _ if min_seq[ANON] < min_seq[FILE] => Some(ANON),
            _ if s == 1 => Some(FILE),
            _ if s >= 200 => Some(ANON),
            _ if !io => Some(FILE),
            _ => None,
        };
        if let Some(t) = fixed {
            return (t, self.own_limit(true, t));
        }
        if prefer_pv(self.rate(ANON, 0, s), self.rate(FILE, 0, 200 - s)) {
            (FILE, self.limit(FILE, ANON, s, 200 - s))
        } else {
            (ANON, self.limit(ANON, FILE, 200 - s, s))
        }
    }
}
