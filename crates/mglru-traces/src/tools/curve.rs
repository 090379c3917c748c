//! Computes for `mglru trace mrc` the share of requests that miss, by the size of the cache.

use mglru_workload::trace::{DenseReader, TraceError, trace_name};
use serde::{Deserialize, Serialize};

use super::{Capacity, ReplayRequest, ReplayResult};
use crate::flat::{Distances, Sampled};

/// Requests that are handed over at a time.
const BLOCK: usize = 1 << 16;

/// Sizes of a curve besides those asked for.
const SIZES: u32 = 48;

/// Extra misses that nobody would notice, of all requests.
const FEW: f64 = 0.01;

/// From so many times the misses on, a sentence says how many times: that is no doubling.
const STEEP: f64 = 2.5;

/// Pages in all samples together, below which their spread says little.
const LEAST_SAMPLED: u64 = 128;

/// Holds the answer of `mglru trace mrc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Names the trace.
    pub trace: String,
    /// Counts requests.
    pub requests: u64,
    /// Counts distinct pages; estimated where pages were sampled.
    pub unique: u64,
    /// Says that one page in so many was in each of eight samples; absent where all were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<u64>,
    /// Holds LRU at sizes from a thousandth of the pages to all, and those asked for, ascending.
    pub lru: Vec<Point>,
    /// Lists sizes that were asked for, pages.
    #[serde(skip)]
    pub asked: Vec<u64>,
    /// Holds other policies at chosen sizes.
    pub others: Vec<ReplayResult>,
}

/// Holds the miss ratio of LRU at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Holds the size of the cache, pages.
    pub size_pages: u64,
    /// Holds misses over all requests.
    pub miss_ratio: f64,
    /// Holds the 95 % interval of a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<[f64; 2]>,
}

/// Holds two sizes that say what a limit costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// Holds the least size at which misses beyond first uses stay under 1 % of the requests.
    pub enough: u64,
    /// Holds the greatest size at which there are twice the misses of `enough`; 0: there is none.
    pub doubled: u64,
    /// Holds the misses at `doubled` over those at `enough`: above 2 where the curve falls steeply.
    pub times: f64,
}

impl Knee {
    /// Says that the curve falls so steeply that "twice" would mislead.
    pub fn is_steep(&self) -> bool {
        self.times >= STEEP
    }
}

/// Reads a trace once and counts LRU's misses at every size.
///
/// # Errors
/// The trace is truncated, corrupt, empty or has too many pages, or too few for such a sample.
pub fn curve(request: &ReplayRequest, sample: Option<u64>) -> Result<Curve, TraceError> {
    let mut reader = DenseReader::new(request.open()?);
    let mut counting = Counting::new(sample);
    let mut block = Vec::new();
    while reader.read(BLOCK, &mut block)? {
        counting.add(&block);
    }
    if counting.requests == 0 {
        return Err(reader.no_requests());
    }
    let path = request.file.path();
    let curve = counting.curve(trace_name(path), reader.unique(), &request.sizes);
    curve.map_err(|problem| TraceError::Sample { path: path.to_path_buf(), problem })
}

/// Builds a curve from requests for pages that are numbered densely.
pub struct Counting {
    counted: Counted,
    sample: Option<u64>,
    requests: u64,
}

impl Counting {
    /// Starts to count all pages, or one in so many in each of eight samples.
    pub fn new(sample: Option<u64>) -> Self {
        Self { counted: Counted::new(sample), sample, requests: 0 }
    }

    /// Counts requests.
    pub fn add(&mut self, pages: &[u32]) {
        self.requests += pages.len() as u64;
        pages.iter().for_each(|&page| self.counted.access(page));
    }

    /// Draws the curve of `unique` pages, with further sizes, after at least one request.
    ///
    /// # Errors
    /// The sample met too few pages, or cannot tell of a size that was asked for.
    pub fn curve(&self, trace: String, unique: u32, sizes: &[Capacity]) -> Result<Curve, String> {
        let asked: Vec<u64> = sizes.iter().map(|size| size.pages(unique)).collect();
        let least = self.counted.least(&asked)?;
        let ratio = |size| self.counted.point(size, self.requests).miss_ratio;
        let knee = knee(u64::from(unique), self.requests, least, ratio);
        let mut sizes = [spread(u64::from(unique)), asked.clone(), knee].concat();
        sizes.retain(|&size| size >= least);
        sizes.sort_unstable();
        sizes.dedup();
        let requests = self.requests;
        Ok(Curve {
            trace,
            requests,
            unique: u64::from(unique),
            sampled: self.sample,
            lru: sizes.iter().map(|&size| self.counted.point(size, requests)).collect(),
            asked,
            others: Vec::new(),
        })
    }
}

/// Returns the miss ratio that is little: first uses, and what nobody would notice.
fn few(unique: u64, requests: u64) -> f64 {
    unique as f64 / requests as f64 + FEW
}

/// Finds, between the sizes of a grid, the least that is enough and the greatest that doubles.
fn knee(unique: u64, requests: u64, least: u64, ratio: impl Fn(u64) -> f64) -> Vec<u64> {
    let few = few(unique, requests);
    let enough = first(least, unique, |size| ratio(size) <= few);
    let twice = 2.0 * ratio(enough);
    let below = first(least, enough, |size| ratio(size) < twice);
    vec![enough, below.saturating_sub(1)]
}

/// Finds the least size of a range where something holds, which holds from there on; else its end.
fn first(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (from, to.max(from));
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}

enum Counted {
    All(Distances),
    Some(Sampled),
}

impl Counted {
    fn new(sample: Option<u64>) -> Self {
        match sample {
            None => Self::All(Distances::default()),
            Some(every) => Self::Some(Sampled::new(every)),
        }
    }

    fn access(&mut self, page: u32) {
        match self {
            Self::All(distances) => distances.access(page),
            Self::Some(sampled) => sampled.access(page),
        }
    }

    /// Returns the least size that the counts tell of.
    fn least(&self, asked: &[u64]) -> Result<u64, String> {
        let Self::Some(sampled) = self else { return Ok(1) };
        let (pages, every) = (sampled.sampled(), sampled.every());
        if pages < LEAST_SAMPLED {
            let problem = format!("the sample met {pages} of its pages, too few to tell");
            return Err(format!("{problem} ({LEAST_SAMPLED} at least): sample more, or all"));
        }
        match asked.iter().find(|size| **size < every) {
            Some(size) => Err(format!(
                "a sample of one page in {every} says nothing of {size} pages: sample more, or all"
            )),
            None => Ok(every),
        }
    }

    fn point(&self, size_pages: u64, requests: u64) -> Point {
        match self {
            Self::All(distances) => {
                let miss_ratio = distances.misses(size_pages) as f64 / requests as f64;
                Point { size_pages, miss_ratio, band: None }
            }
            Self::Some(sampled) => {
                let found = sampled.estimate(size_pages);
                Point { size_pages, miss_ratio: found.ratio, band: Some(found.band) }
            }
        }
    }
}

/// Sizes from a thousandth of the pages to all of them, each the same factor above the last.
fn spread(unique: u64) -> Vec<u64> {
    let step = |i: u32| 1000f64.powf(f64::from(i) / f64::from(SIZES - 1) - 1.0);
    (0..SIZES).map(|i| ((unique as f64 * step(i)).round() as u64).max(1)).collect()
}

impl Curve {
    /// Finds the sizes that the sentence names; `None` where no size of the curve is enough.
    pub fn knee(&self) -> Option<Knee> {
        let few = few(self.unique, self.requests);
        let enough = self.lru.iter().find(|point| point.miss_ratio <= few)?;
        let twice = |point: &&Point| point.miss_ratio >= 2.0 * enough.miss_ratio;
        let doubled = self.lru.iter().rev().find(twice);
        Some(Knee {
            enough: enough.size_pages,
            doubled: doubled.map_or(0, |point| point.size_pages),
            times: doubled.map_or(0.0, |point| point.miss_ratio / enough.miss_ratio),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(u64, f64)]) -> Curve {
        let point =
            |&(size_pages, miss_ratio): &(u64, f64)| Point { size_pages, miss_ratio, band: None };
        Curve {
            trace: "t".into(),
            requests: 1000,
            unique: 100,
            sampled: None,
            asked: Vec::new(),
            lru: points.iter().map(point).collect(),
            others: Vec::new(),
        }
    }

    #[test]
    fn the_knee_is_where_misses_are_few_and_where_they_double() {
        let all = curve(&[(1, 0.9), (10, 0.23), (20, 0.15), (50, 0.105), (100, 0.1)]);
        let knee = |points| curve(points).knee().map(|knee| (knee.enough, knee.doubled));
        assert_eq!(all.knee().map(|knee| (knee.enough, knee.doubled)), Some((50, 10)));
        assert!((all.knee().unwrap().times - 0.23 / 0.105).abs() < 1e-9);
        assert_eq!(knee(&[(1, 0.9)]), None);
        assert_eq!(knee(&[(1, 0.11), (2, 0.1)]), Some((1, 0)));
    }

    fn counted(pages: &[u32], sample: Option<u64>) -> Counting {
        let mut counting = Counting::new(sample);
        counting.add(pages);
        counting
    }

    #[test]
    fn the_knee_of_a_loop_is_its_cliff() {
        let pages: Vec<u32> = (0..20_000).map(|n| n % 1000).collect();
        let curve = counted(&pages, None).curve("loop".into(), 1000, &[]).unwrap();
        assert_eq!(curve.knee(), Some(Knee { enough: 1000, doubled: 999, times: 20.0 }));
    }

    #[test]
    fn a_sample_refuses_what_it_cannot_tell() {
        let pages: Vec<u32> = (0..40_000).map(|n| n % 4000).collect();
        let few = counted(&pages[..3], Some(100)).curve("t".into(), 3, &[]).unwrap_err();
        assert!(few.starts_with("the sample met 0 of its pages") && few.contains("128"), "{few}");
        let sampled = counted(&pages, Some(50));
        let small = sampled.curve("t".into(), 4000, &["49".parse().unwrap()]).unwrap_err();
        assert_eq!(
            small,
            "a sample of one page in 50 says nothing of 49 pages: sample more, or all"
        );
        let curve = sampled.curve("t".into(), 4000, &["50".parse().unwrap()]).unwrap();
        assert_eq!(curve.lru[0].size_pages, 50);
    }

    #[test]
    fn sizes_go_from_a_thousandth_to_all() {
        let sizes = spread(1_000_000);
        assert_eq!((sizes[0], sizes[47], sizes.len()), (1000, 1_000_000, 48));
        assert!(sizes.is_sorted());
        assert_eq!(spread(1), [1; 48]);
    }
}
