//! Dense numbering: the n-th distinct page of a trace becomes page n (from 0). Caches and page
//! tables index arrays with it, so that nothing behind the reader needs a hash.
//!
//! Numbers below 2^32 that lie reasonably close together are looked up in a two-level table; the
//! first page outside, or a table that stays mostly empty, turns it into a hash table for good.
//! Either way the numbering is by first appearance and the same.

use hashbrown::HashMap;

use super::error::TraceError;
use super::reader::TraceReader;
use super::record::Request;

const CHUNK_SHIFT: u32 = 10;
const CHUNK: usize = 1 << CHUNK_SHIFT;
const TABLE_LIMIT: u64 = 1 << 32;
/// A table below this many entries (16 MiB) may be as empty as it likes.
const FREE_ENTRIES: usize = 1 << 22;
/// Above, a table may have this many entries per page in it.
const ENTRIES_PER_PAGE: usize = 16;
/// Distinct pages a numbering can hold: links and marks of caches need values of their own.
const PAGES_MAX: u32 = 1 << 30;

/// Maps a trace's page numbers to dense ones.
#[derive(Default)]
pub struct Numbering {
    /// Per 1024 page numbers: index of their chunk, plus 1; 0 for none.
    root: Vec<u32>,
    /// Dense number plus 1; 0 for a page not seen yet.
    chunks: Vec<u32>,
    hashed: Option<HashMap<u64, u32>>,
    unique: u32,
}

/// Says that a trace has more than 2^30 distinct pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPages;

impl Numbering {
    /// Creates a map in which no page is numbered yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts the distinct pages so far.
    pub fn unique(&self) -> u32 {
        self.unique
    }

    /// Returns the dense number of a page, a new one if it is seen for the first time.
    ///
    /// # Errors
    /// There are 2^30 distinct pages already.
    #[inline]
    pub fn number(&mut self, page: u64) -> Result<u32, TooManyPages> {
        if self.hashed.is_none() && page < TABLE_LIMIT {
            let chunk = self.root.get((page >> CHUNK_SHIFT) as usize).copied().unwrap_or(0);
            if chunk != 0 {
                let at = (chunk as usize - 1) * CHUNK + page as usize % CHUNK;
                let known = self.chunks[at];
                if known != 0 {
                    return Ok(known - 1);
                }
            }
        }
        self.number_slowly(page)
    }

    /// Appends the dense numbers of some requests.
    ///
    /// # Errors
    /// There are more than 2^30 distinct pages.
    pub fn number_all(
        &mut self,
        requests: &[Request],
        dense: &mut Vec<u32>,
    ) -> Result<(), TooManyPages> {
        dense.reserve(requests.len());
        for request in requests {
            dense.push(self.number(request.page)?);
        }
        Ok(())
    }

    fn number_slowly(&mut self, page: u64) -> Result<u32, TooManyPages> {
        if self.hashed.is_none() && !self.fits(page) {
            self.hashed = Some(self.pages().collect());
            self.root = Vec::new();
            self.chunks = Vec::new();
        }
        let next = self.unique;
        let number = match &mut self.hashed {
            Some(map) => *map.entry(page).or_insert(next),
            None => {
                self.insert(page, next);
                next
            }
        };
        if number == next {
            if next == PAGES_MAX {
                return Err(TooManyPages);
            }
            self.unique += 1;
        }
        Ok(number)
    }

    fn fits(&self, page: u64) -> bool {
        let used = self.chunks.len();
        let allowed = FREE_ENTRIES.max(self.unique as usize * ENTRIES_PER_PAGE);
        let has_chunk = self.root.get((page >> CHUNK_SHIFT) as usize).is_some_and(|&c| c != 0);
        page < TABLE_LIMIT && (has_chunk || used + CHUNK <= allowed)
    }

    fn insert(&mut self, page: u64, number: u32) {
        let at = (page >> CHUNK_SHIFT) as usize;
        if at >= self.root.len() {
            self.root.resize(at + 1, 0);
        }
        if self.root[at] == 0 {
            self.chunks.resize(self.chunks.len() + CHUNK, 0);
            self.root[at] = (self.chunks.len() / CHUNK) as u32;
        }
        let first = (self.root[at] as usize - 1) * CHUNK;
        self.chunks[first + page as usize % CHUNK] = number + 1;
    }

    /// Pages of the table with their numbers.
    fn pages(&self) -> impl Iterator<Item = (u64, u32)> {
        let present = self.root.iter().enumerate().filter(|&(_, &chunk)| chunk != 0);
        present.flat_map(|(at, &chunk)| {
            let first = (chunk as usize - 1) * CHUNK;
            let entries = self.chunks[first..first + CHUNK].iter().enumerate();
            let seen = entries.filter(|&(_, &number)| number != 0);
            seen.map(move |(i, &number)| ((at * CHUNK + i) as u64, number - 1))
        })
    }
}

/// Reads a trace as a stream of dense page numbers.
pub struct DenseReader {
    reader: TraceReader,
    numbering: Numbering,
    block: Vec<Request>,
}

impl DenseReader {
    /// Numbers the pages of a reader that is still at the start of its trace.
    pub fn new(reader: TraceReader) -> Self {
        DenseReader { reader, numbering: Numbering::new(), block: Vec::new() }
    }

    /// Counts the distinct pages so far.
    pub fn unique(&self) -> u32 {
        self.numbering.unique()
    }

    /// Words the error of a trace that turned out to hold no request.
    pub fn no_requests(&self) -> TraceError {
        self.reader.no_requests()
    }

    /// Replaces `pages` by the next requests, `at_least` of them unless the trace ends; false (and
    /// no pages) at the end.
    ///
    /// # Errors
    /// The trace is truncated, corrupt or has more than 2^30 distinct pages.
    pub fn read(&mut self, at_least: usize, pages: &mut Vec<u32>) -> Result<bool, TraceError> {
        pages.clear();
        while pages.len() < at_least && self.reader.read_block(&mut self.block)? {
            self.numbering.number_all(&self.block, pages).map_err(|_| too_many(&self.reader))?;
        }
        Ok(!pages.is_empty())
    }
}

/// Counts of a whole trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Counts requests.
    pub requests: u64,
    /// Counts requests that write.
    pub writes: u64,
    /// Counts distinct pages.
    pub unique: u32,
    /// Holds the highest page number.
    pub highest: u64,
}

impl Summary {
    /// Reads a trace to its end, in memory proportional to its distinct pages.
    ///
    /// # Errors
    /// The trace is truncated, corrupt, empty or has more than 2^30 distinct pages.
    pub fn of(mut reader: TraceReader) -> Result<Self, TraceError> {
        let mut summary = Summary::default();
        let mut numbering = Numbering::new();
        let mut block = Vec::new();
        while reader.read_block(&mut block)? {
            summary.requests += block.len() as u64;
            for request in &block {
                numbering.number(request.page).map_err(|_| too_many(&reader))?;
                summary.writes += u64::from(request.write);
                summary.highest = summary.highest.max(request.page);
            }
        }
        summary.unique = numbering.unique();
        if summary.requests == 0 {
            return Err(reader.no_requests());
        }
        Ok(summary)
    }
}

/// Holds a whole trace in memory, for algorithms that need the future.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dense {
    /// Holds the dense page number of each request.
    pub ids: Vec<u32>,
    /// Counts distinct pages; all of `ids` are below.
    pub unique: u32,
}

impl Dense {
    /// Reads a trace to its end.
    ///
    /// # Errors
    /// The trace is truncated, corrupt, empty, or has more than 2^30 distinct pages or 2^32 - 2
    /// requests.
    pub fn load(mut reader: TraceReader) -> Result<Self, TraceError> {
        const REQUESTS_MAX: usize = u32::MAX as usize - 1;
        let mut numbering = Numbering::new();
        let (mut block, mut ids) = (Vec::new(), Vec::new());
        while reader.read_block(&mut block)? {
            numbering.number_all(&block, &mut ids).map_err(|_| too_many(&reader))?;
            if ids.len() > REQUESTS_MAX {
                return Err(TraceError::too_large(reader.path(), "requests", REQUESTS_MAX as u64));
            }
        }
        if ids.is_empty() {
            return Err(reader.no_requests());
        }
        Ok(Dense { ids, unique: numbering.unique() })
    }
}

fn too_many(reader: &TraceReader) -> TraceError {
    TraceError::too_large(reader.path(), "distinct pages", PAGES_MAX.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_first_appearance(pages: &[u64]) -> Vec<u32> {
        let mut seen: Vec<u64> = Vec::new();
        let place = |page: &u64| {
            let at = seen.iter().position(|p| p == page).unwrap_or(seen.len());
            if at == seen.len() {
                seen.push(*page);
            }
            at as u32
        };
        pages.iter().map(place).collect()
    }

    fn numbered(pages: &[u64]) -> (Vec<u32>, Numbering) {
        let mut numbering = Numbering::new();
        let dense = pages.iter().map(|&page| numbering.number(page).unwrap()).collect();
        (dense, numbering)
    }

    proptest! {
        #[test]
        fn table_and_hash_number_alike(
            near in proptest::collection::vec(0u64..5000, 0..100),
            far in proptest::collection::vec(prop_oneof![0u64..5000, any::<u64>()], 0..100),
        ) {
            let pages = [near, far].concat();
            prop_assert_eq!(numbered(&pages).0, by_first_appearance(&pages));
        }
    }

    #[test]
    fn a_table_that_stays_empty_becomes_a_hash() {
        let sparse: Vec<u64> = (0..10_000).map(|i| i * 5000 % (1 << 31)).collect();
        let (dense, numbering) = numbered(&sparse);
        assert!(numbering.hashed.is_some());
        assert!(dense.iter().copied().eq(0..10_000));
        let close: Vec<u64> = (0..10_000).map(|i| i * 3).collect();
        assert!(numbered(&close).1.hashed.is_none());
    }
}
