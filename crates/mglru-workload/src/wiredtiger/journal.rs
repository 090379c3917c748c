//! The journal: updates appended to preallocated segment files, made durable now and then.

/// Where the next update goes, and what is not durable yet.
#[derive(Debug)]
pub(super) struct Journal {
    segment_bytes: u64,
    segment: u32,
    offset: u64,
    /// First segment with bytes that are not durable; past `segment` when there are none.
    unsynced: u32,
}

/// A piece of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Append {
    pub(super) segment: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
}

impl Journal {
    pub(super) fn new(segment_bytes: u64) -> Self {
        Self { segment_bytes, segment: 0, offset: 0, unsynced: 1 }
    }

    /// Appends an update, which never straddles two segments.
    pub(super) fn append(&mut self, len: u32) -> Append {
        if self.offset + u64::from(len) > self.segment_bytes {
            self.segment += 1;
            self.offset = 0;
        }
        let offset = self.offset;
        self.offset += u64::from(len);
        self.unsynced = self.unsynced.min(self.segment);
        Append { segment: self.segment, offset, len }
    }

    /// The next segment to be made durable, which then counts as durable.
    pub(super) fn sync(&mut self) -> Option<u32> {
        let segment = self.unsynced;
        (segment <= self.segment).then(|| {
            self.unsynced += 1;
            segment
        })
    }
}

/// Segments that `updates` updates of at most `len` bytes can need.
pub(super) fn segments(updates: u64, len: u32, segment_bytes: u64) -> u32 {
    let per_segment = (segment_bytes / u64::from(len)).max(1);
    (updates / per_segment + 1).min(u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_never_straddle_segments() {
        let mut journal = Journal::new(1000);
        let places: Vec<_> = (0..5).map(|_| journal.append(300)).collect();
        let at = |segment, offset| Append { segment, offset, len: 300 };
        assert_eq!(places, [at(0, 0), at(0, 300), at(0, 600), at(1, 0), at(1, 300)]);
        assert_eq!(segments(5, 300, 1000), 2);
    }

    #[test]
    fn every_written_segment_is_synced_once() {
        let mut journal = Journal::new(1000);
        assert_eq!(journal.sync(), None);
        (0..4).for_each(|_| _ = journal.append(300));
        assert_eq!([journal.sync(), journal.sync(), journal.sync()], [Some(0), Some(1), None]);
        journal.append(300);
        assert_eq!([journal.sync(), journal.sync()], [Some(1), None]);
        (0..2).for_each(|_| _ = journal.append(300));
        assert_eq!([journal.sync(), journal.sync(), journal.sync()], [Some(1), Some(2), None]);
    }
}
