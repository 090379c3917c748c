//! Defines the content of a trace: a request for a page, and the run of consecutive requests that
//! one record may stand for.

/// Gives log2 of the bytes in a page.
pub const PAGE_SHIFT: u32 = 12;
/// Log2 of the bytes in a disk sector, the block of `lbn` columns and of the ARC traces.
pub(super) const SECTOR_SHIFT: u32 = 9;
/// Requests that one record may stand for: 64 GiB of pages. A larger length is no length.
pub(super) const RUN_MAX: u64 = 1 << 24;

/// Describes one request for one page (or block, or key: the unit of the trace).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Holds the page number in the trace's numbering.
    pub page: u64,
    /// Says that the page is written.
    pub write: bool,
}

/// Tells how records become requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// Counts as the cache literature does: one request per record keyed on its block (`lbn`), one
    /// per block for `arc-lis`. For flat caches.
    #[default]
    Requests,
    /// Counts one request for every 4 KiB page that a record covers. For page caches.
    Pages,
}

/// Consecutive pages asked for by one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) nr: u64,
    pub(super) write: bool,
}

impl Run {
    /// One page.
    pub(super) fn one(first: u64, write: bool) -> Self {
        Run { first, nr: 1, write }
    }

    /// `nr` pages from `first`; `None` for more than [`RUN_MAX`] or a number of 2^64 or more.
    pub(super) fn several(first: u64, nr: u64, write: bool) -> Option<Self> {
        let fits = nr == 0 || first.checked_add(nr - 1).is_some();
        (fits && nr <= RUN_MAX).then_some(Run { first, nr, write })
    }

    /// The pages that `bytes` bytes (at least one) lie in, from the start of unit `key` of
    /// `1 << shift` bytes; `None` for more than [`RUN_MAX`] or a unit of number 2^64 or more.
    pub(super) fn covering(key: u64, shift: u32, bytes: u128, write: bool) -> Option<Self> {
        let at = u128::from(key) << shift;
        let last = at + bytes.max(1) - 1;
        if last >> shift > u64::MAX.into() {
            return None;
        }
        // Units of a page at most: their pages have no larger numbers than they have.
        let (first, last) = ((at >> PAGE_SHIFT) as u64, (last >> PAGE_SHIFT) as u64);
        Run::several(first, (last - first).checked_add(1)?, write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_cover_pages() {
        let run = |at, bytes| Run::covering(at, 0, bytes, true).map(|r| (r.first, r.nr));
        assert_eq!(run(0, 0), Some((0, 1)));
        assert_eq!(run(4095, 1), Some((0, 1)));
        assert_eq!(run(4095, 2), Some((0, 2)));
        assert_eq!(run(8192, 4096), Some((2, 1)));
        assert_eq!(run(u64::MAX, 2), None);
    }

    #[test]
    fn the_largest_numbers_count_and_no_larger_ones() {
        const MOST: u64 = u64::MAX;
        let run =
            |key, shift, bytes| Run::covering(key, shift, bytes, true).map(|r| (r.first, r.nr));
        assert_eq!(run(MOST, 0, 1), Some((MOST >> 12, 1)));
        assert_eq!(run(MOST, SECTOR_SHIFT, 512), Some((MOST >> 3, 1)));
        assert_eq!(run(MOST, SECTOR_SHIFT, 513), None);
        assert_eq!(run(MOST, PAGE_SHIFT, 4096), Some((MOST, 1)));
        assert_eq!(run(MOST - 1, PAGE_SHIFT, 4097), Some((MOST - 1, 2)));
        assert_eq!(run(MOST, PAGE_SHIFT, 4097), None);
        let several = |first, nr| Run::several(first, nr, false).map(|r| (r.first, r.nr));
        assert_eq!(several(MOST, 1), Some((MOST, 1)));
        assert_eq!(several(MOST, 0), Some((MOST, 0)));
        assert_eq!(several(MOST, 2), None);
    }

    #[test]
    fn the_length_of_a_record_is_bounded() {
        assert_eq!(Run::several(0, RUN_MAX, false).map(|r| r.nr), Some(RUN_MAX));
        assert_eq!(Run::several(0, RUN_MAX + 1, false), None);
        assert_eq!(Run::covering(0, PAGE_SHIFT, u64::MAX.into(), false), None);
    }
}
