//! What a trace says: a request for a page, and the run of consecutive requests one record may
//! stand for.

/// Log2 of the bytes in a page.
pub const PAGE_SHIFT: u32 = 12;
/// Log2 of the bytes in a disk sector, the block of `lbn` columns and of the ARC traces.
const SECTOR_SHIFT: u32 = 9;

/// One request for one page (or block, or key: the unit of the trace).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Page number in the trace's own numbering.
    pub page: u64,
    /// The page is written.
    pub write: bool,
}

/// How records become requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// As the cache literature counts: one request per record keyed on its block (`lbn`), one per
    /// block for `arc-lis`. For flat caches.
    #[default]
    Requests,
    /// One request for every 4 KiB page a record covers. For page caches.
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

    /// The pages that `bytes` bytes (at least one) from byte `at` lie in; `None` if they do not
    /// fit into 64 bits.
    pub(super) fn covering(at: u64, bytes: u64, write: bool) -> Option<Self> {
        let last = at.checked_add(bytes.max(1) - 1)? >> PAGE_SHIFT;
        let first = at >> PAGE_SHIFT;
        Some(Run { first, nr: last - first + 1, write })
    }
}

/// Byte address of a sector, `None` if it does not fit into 64 bits.
pub(super) fn sector_address(sector: u64) -> Option<u64> {
    sector.checked_mul(1 << SECTOR_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_cover_pages() {
        let run = |at, bytes| Run::covering(at, bytes, true).map(|r| (r.first, r.nr));
        assert_eq!(run(0, 0), Some((0, 1)));
        assert_eq!(run(4095, 1), Some((0, 1)));
        assert_eq!(run(4095, 2), Some((0, 2)));
        assert_eq!(run(8192, 4096), Some((2, 1)));
        assert_eq!(run(u64::MAX, 2), None);
        assert_eq!(sector_address(8), Some(4096));
        assert_eq!(sector_address(1 << 55), None);
    }
}
