//! Miss counts of LRU at every size in one pass (Mattson's stack distances), exact, or of a sample
//! of the pages (SHARDS), whose slices show how far the sample may be off.

/// Counts the slices of the pages, each sampled at the same rate: their spread is the sample's
/// error.
pub const SLICES: usize = 8;

/// Positions of the tree at first.
const LEAST: usize = 1 << 12;

/// Counts, for each request, how many other pages were asked for since the page was last.
#[derive(Clone, Debug, Default)]
pub struct Distances {
    /// For each page: position of its last request plus 1, or 0.
    last: Vec<u32>,
    /// For each position: the page that was asked for there.
    owner: Vec<u32>,
    /// Sums of positions that are some page's last (a Fenwick tree).
    tree: Vec<u32>,
    now: usize,
    /// Pages seen.
    live: u32,
    /// Requests by distance.
    histogram: Vec<u64>,
    first: u64,
}

impl Distances {
    /// Counts a request for a page.
    pub fn access(&mut self, page: u32) {
        if self.now == self.owner.len() {
            self.compact();
        }
        let index = page as usize;
        if index >= self.last.len() {
            self.last.resize((index + 1).next_power_of_two(), 0);
        }
        match self.last[index] {
            0 => {
                self.first += 1;
                self.live += 1;
            }
            position => {
                let older = self.sum(position as usize);
                self.count((self.live - older) as usize);
                self.add(position as usize - 1, -1);
            }
        }
        self.owner[self.now] = page;
        self.add(self.now, 1);
        self.now += 1;
        self.last[index] = self.now as u32;
    }

    /// Counts the requests that a cache of so many pages does not have.
    pub fn misses(&self, pages: u64) -> u64 {
        let from = usize::try_from(pages).unwrap_or(usize::MAX).min(self.histogram.len());
        self.first + self.histogram[from..].iter().sum::<u64>()
    }

    /// Counts all requests.
    pub fn requests(&self) -> u64 {
        self.first + self.histogram.iter().sum::<u64>()
    }

    /// Counts the pages, each of which had a first request.
    pub fn pages(&self) -> u64 {
        self.first
    }

    fn count(&mut self, distance: usize) {
        if distance >= self.histogram.len() {
            self.histogram.resize((distance + 1).next_power_of_two(), 0);
        }
        self.histogram[distance] += 1;
    }

    /// Moves the last requests together, in their order, into a tree with as many free positions.
    fn compact(&mut self) {
        let is_last = |&(at, page): &(usize, u32)| self.last[page as usize] as usize == at + 1;
        let kept = self.owner.iter().copied().enumerate().filter(is_last);
        let kept: Vec<u32> = kept.map(|(_, page)| page).collect();
        let size = (2 * kept.len()).next_power_of_two().max(LEAST);
        (self.now, self.tree) = (kept.len(), vec![0; size + 1]);
        for (at, &page) in kept.iter().enumerate() {
            self.last[page as usize] = at as u32 + 1;
            self.add(at, 1);
        }
        self.owner = kept;
        self.owner.resize(size, 0);
    }

    fn add(&mut self, position: usize, by: i32) {
        let mut at = position + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Counts last requests among the first `n` positions.
    fn sum(&self, n: usize) -> u32 {
        let (mut at, mut sum) = (n, 0);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }
}

/// Holds distances of some pages that stand for all, in slices that share no page.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// One page in so many is in a slice.
    every: u64,
    slices: Vec<Distances>,
    requests: u64,
}

/// Holds an estimated miss ratio, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Holds the estimate.
    pub ratio: f64,
    /// Holds its interval.
    pub band: [f64; 2],
}

impl Sampled {
    /// Samples one page in `every` for each slice.
    ///
    /// # Panics
    /// There are fewer pages in `every` than slices: they would share some.
    pub fn new(every: u64) -> Self {
        assert!(every >= SLICES as u64, "slices share no page");
        Self { every, slices: vec![Distances::default(); SLICES], requests: 0 }
    }

    /// Counts a request for a page, if the page is in a slice.
    pub fn access(&mut self, page: u32) {
        self.requests += 1;
        let slice = mixed(page) % self.every;
        if let Some(slice) = self.slices.get_mut(slice as usize) {
            slice.access(page);
        }
    }

    /// Estimates the miss ratio of a cache of so many pages, at least one in `every`. Between two
    /// sizes that the sample can tell apart it lies between their two intervals.
    pub fn estimate(&self, pages: u64) -> Estimate {
        let (scaled, rest) = (pages / self.every, pages % self.every);
        let smaller = self.of_scaled(scaled);
        if rest == 0 {
            return smaller;
        }
        let larger = self.of_scaled(scaled + 1);
        let share = rest as f64 / self.every as f64;
        let ratio = smaller.ratio + share * (larger.ratio - smaller.ratio);
        let low = smaller.band[0].min(larger.band[0]);
        Estimate { ratio, band: [low, smaller.band[1].max(larger.band[1])] }
    }

    fn of_scaled(&self, pages: u64) -> Estimate {
        let of_slice = |slice: &Distances| self.ratio(slice, pages);
        let ratios: Vec<f64> = self.slices.iter().map(of_slice).collect();
        let ratio = ratios.iter().sum::<f64>() / SLICES as f64;
        let square = ratios.iter().map(|r| (r - ratio).powi(2)).sum::<f64>();
        // Student's t of 7 degrees of freedom, 97.5 %.
        let n = SLICES as f64;
        let half = 2.365 * (square / (n - 1.0) / n).sqrt();
        Estimate { ratio, band: [(ratio - half).max(0.0), (ratio + half).min(1.0)] }
    }

    /// Tells how many pages there are for one in a slice.
    pub fn every(&self) -> u64 {
        self.every
    }

    /// Counts the pages in the slices.
    pub fn sampled(&self) -> u64 {
        self.slices.iter().map(Distances::pages).sum()
    }

    /// Estimates the distinct pages.
    pub fn pages(&self) -> u64 {
        self.sampled() * self.every / SLICES as u64
    }

    /// As the authors of SHARDS: a slice that has more or less than its share of the requests has
    /// met a hot page, or missed one; the difference counts as hits.
    fn ratio(&self, slice: &Distances, scaled: u64) -> f64 {
        let expected = (self.requests as f64 / self.every as f64).max(1.0);
        (slice.misses(scaled) as f64 / expected).min(1.0)
    }
}

/// Mixes a page's number so that neighbours fall into different slices (SplitMix64).
fn mixed(page: u32) -> u64 {
    let mut x = u64::from(page).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::flat::{Cache, Lru};

    fn distances(pages: &[u32]) -> Distances {
        let mut distances = Distances::default();
        pages.iter().for_each(|&page| distances.access(page));
        distances
    }

    proptest! {
        #[test]
        fn every_size_misses_as_often_as_a_cache_of_that_size(
            pages in prop::collection::vec(0u32..60, 1..400),
        ) {
            let all = distances(&pages);
            for size in 1..70 {
                let misses = Lru::new(size).replay(60, &pages);
                prop_assert_eq!(all.misses(size), misses, "size {}", size);
            }
            prop_assert_eq!(all.requests(), pages.len() as u64);
        }
    }

    /// Skewed requests, many times as many as the tree has positions.
    fn skewed(n: u64) -> Vec<u32> {
        let draw = |i: u64| mixed((i % u64::from(u32::MAX)) as u32) as f64 / u64::MAX as f64;
        (0..n).map(|i| (20_000.0 * draw(i).powi(3)) as u32).collect()
    }

    #[test]
    fn a_tree_that_was_full_many_times_counts_right() {
        let pages = skewed(60_000);
        let all = distances(&pages);
        for size in [1, 10, 1_000, 12_000] {
            assert_eq!(all.misses(size), Lru::new(size).replay(20_000, &pages), "size {size}");
        }
    }

    #[test]
    fn a_sample_is_near_and_its_band_holds_the_truth_mostly() {
        let pages = skewed(400_000);
        let all = distances(&pages);
        let mut sampled = Sampled::new(40);
        pages.iter().for_each(|&page| sampled.access(page));
        let sizes = [200, 500, 1_000, 2_000, 4_000, 8_000, 12_000, 16_000];
        let mut held = 0;
        for size in sizes {
            let truth = all.misses(size) as f64 / pages.len() as f64;
            let found = sampled.estimate(size);
            assert!((found.ratio - truth).abs() < 0.06, "{size}: {found:?}, {truth}");
            held += usize::from((found.band[0]..=found.band[1]).contains(&truth));
        }
        assert!(held >= 6, "{held} of 8");
        let (found, there) = (sampled.pages() as f64, all.pages() as f64);
        assert!((found / there - 1.0).abs() < 0.15, "{found} of {there}");
    }
}
