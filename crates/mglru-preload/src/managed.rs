//! A managed mapping: a file that the program maps shared, once whatever it maps of it, or a
//! private mapping, each for itself.

mod advised;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use libc::c_int;
use mglru_pager::{FileStore, MappingMut, PagerError};

use crate::calls::{errno, set_errno};
use crate::claim::{Claim, Key};
use crate::places;
use crate::snapshot::Snapshot;
use crate::table::say;

const PAGE: usize = 4096;

/// Tells how a mapping relates to its file.
pub enum Kind {
    /// Manages the file itself, all of it: the program's mappings are ranges of that.
    Shared(Key, Claim),
    /// Manages a copy of a part of the file, from this offset on.
    Private(usize),
}

/// Describes a managed mapping.
pub struct Managed {
    kind: Kind,
    /// Holds its memory.
    pub map: MappingMut,
    /// Keeps the file open for as long as it is managed.
    pub file: File,
    /// Stores its content.
    pub store: Arc<FileStore>,
    writable: bool,
    /// It is mapped for stores.
    stores: bool,
    /// Pages that the program locked.
    locked: BTreeSet<usize>,
    /// Addresses that the program mapped.
    ranges: Vec<Range<usize>>,
    /// Offsets that it unmapped while it kept the rest.
    cut: Vec<Range<usize>>,
    /// Addresses that children of forks do not get.
    withheld: Vec<Range<usize>>,
    /// While the program forks: what the child gets.
    kept: Option<Snapshot>,
    place: places::Taken,
}

impl Managed {
    /// Wraps a mapping of which the program has mapped nothing yet.
    pub fn new(
        kind: Kind,
        map: MappingMut,
        file: File,
        store: Arc<FileStore>,
        writable: bool,
    ) -> Self {
        let place = places::take(&span_of(&map));
        let (locked, ranges, cut) = (BTreeSet::new(), Vec::new(), Vec::new());
        let (stores, kept, withheld) = (true, None, Vec::new());
        Self {
            kind,
            map,
            file,
            store,
            writable,
            stores,
            locked,
            ranges,
            cut,
            withheld,
            kept,
            place,
        }
    }

    /// Names the file whose only mapping this is.
    pub fn key(&self) -> Option<Key> {
        match self.kind {
            Kind::Shared(key, _) => Some(key),
            Kind::Private(_) => None,
        }
    }

    /// Returns where in its file a copy begins.
    pub fn copies_from(&self) -> Option<usize> {
        match self.kind {
            Kind::Shared(..) => None,
            Kind::Private(offset) => Some(offset),
        }
    }

    /// Maps a range of offsets for the program and returns its address. `None`: it is not free.
    pub fn add(&mut self, offsets: Range<usize>, prot: c_int) -> Option<*mut u8> {
        if offsets.end > self.map.len().next_multiple_of(PAGE) || self.is_cut(&offsets) {
            return None;
        }
        self.protect_for(prot);
        let start = self.span().start;
        self.ranges.push(start + offsets.start..start + offsets.end.next_multiple_of(PAGE));
        Some((start + offsets.start) as *mut u8)
    }

    /// Keeps, before a fork, the content that a copy does not share with its file.
    pub fn keep_for_child(&mut self) {
        if self.copies_from().is_some() {
            match Snapshot::take(&self.map) {
                Ok(kept) => self.kept = Some(kept),
                Err(error) => say("a child reads the file in place of a private mapping", &error),
            }
        }
    }

    /// Drops after a fork what was kept for the child.
    pub fn drop_kept(&mut self) {
        self.kept = None;
    }

    /// Restores, in the child, the ranges that were kept from it: the file is mapped by now.
    pub fn restore_kept(&self) {
        let mapped: Vec<_> =
            self.inherited().into_iter().map(|range| self.offsets(range)).collect();
        if let Some(kept) = &self.kept {
            // SAFETY: the child's own mapping, just made.
            unsafe { kept.restore(self.span().start as *mut u8, &mapped) };
        }
    }

    /// Releases the claim in a forked child: the file is its parent's.
    pub fn release_claim(&mut self) {
        if let Kind::Shared(_, claim) = &mut self.kind {
            claim.release();
        }
    }

    /// Returns its addresses.
    pub fn span(&self) -> Range<usize> {
        span_of(&self.map)
    }

    /// Returns the part of a range of addresses that belongs to this file, as offsets.
    pub fn offsets(&self, addresses: Range<usize>) -> Range<usize> {
        let span = self.span();
        let clip = |at: usize| (at.clamp(span.start, span.end) - span.start).min(self.map.len());
        clip(addresses.start)..clip(addresses.end)
    }

    /// Keeps a range of offsets in memory. Locks do not count, as mlock's do not.
    pub fn lock(&mut self, offsets: Range<usize>) -> Result<(), PagerError> {
        for page in offsets.start / PAGE..offsets.end.div_ceil(PAGE) {
            if !self.locked.contains(&page) {
                self.map.pin(self.page(page))?.keep();
                self.locked.insert(page);
            }
        }
        Ok(())
    }

    /// Unlocks a range.
    pub fn unlock(&mut self, offsets: Range<usize>) -> Result<(), PagerError> {
        let pages = offsets.start / PAGE..offsets.end.div_ceil(PAGE);
        let locked: Vec<usize> = self.locked.range(pages).copied().collect();
        locked.into_iter().try_for_each(|page| {
            self.locked.remove(&page);
            self.map.unpin_range(self.page(page))
        })
    }

    /// Lets a mapping that was mapped to be read be written too.
    pub fn allow_writes(&mut self, file: &File, writable: bool) -> io::Result<()> {
        if let (true, Kind::Shared(key, claim)) = (writable && !self.writable, &mut self.kind) {
            claim.be_writer(*key)?;
            self.store.allow_writes(file)?;
            self.writable = true;
        }
        Ok(())
    }

    fn page(&self, page: usize) -> Range<usize> {
        page * PAGE..((page + 1) * PAGE).min(self.map.len())
    }

    /// Removes one of the program's mappings, or a part of one: of those that share addresses it is
    /// the one that fits. The addresses stay, and may be mapped again, for as long as anything of
    /// the file is mapped.
    pub fn shrink(&mut self, addresses: &Range<usize>) {
        self.withhold(addresses, false);
        let mut parts = vec![addresses.clone()];
        while let Some(part) = parts.pop() {
            let of = |fits: &dyn Fn(&Range<usize>) -> bool| self.ranges.iter().position(fits);
            let nth = of(&|range| *range == part)
                .or_else(|| of(&|range| range.start <= part.start && part.end <= range.end))
                .or_else(|| of(&|range| range.start < part.end && part.start < range.end));
            let Some(range) = nth.map(|nth| self.ranges.swap_remove(nth)) else { continue };
            self.ranges.extend(without(&range, &part));
            parts.extend(without(&part, &range));
        }
        self.let_go(addresses);
    }

    /// Locks end with the last mapping of a page, and so does what is a copy's own.
    fn let_go(&mut self, addresses: &Range<usize>) {
        let mut parts = vec![addresses.clone()];
        for range in &self.ranges {
            parts = parts.iter().flat_map(|part| without(part, range)).collect();
        }
        for part in parts {
            let offsets = self.offsets(part);
            let unlocked = self.unlock(offsets.clone());
            if let Err(error) = unlocked.and_then(|()| self.forget(offsets)) {
                say("cannot free unmapped memory", &error);
            }
        }
    }

    /// Makes a copy's pages those of the file again.
    pub fn forget(&mut self, offsets: Range<usize>) -> Result<(), PagerError> {
        match self.kind {
            Kind::Shared(..) => Ok(()),
            Kind::Private(_) => self.map.discard_range(offsets),
        }
    }

    /// Gives up part of the addresses, which become another mapping's.
    pub fn lose(&mut self, addresses: &Range<usize>) {
        let ranges = std::mem::take(&mut self.ranges);
        self.ranges = ranges.iter().flat_map(|range| without(range, addresses)).collect();
        self.let_go(addresses);
        let offsets = self.offsets(addresses.clone());
        // SAFETY: the program gave the addresses up.
        if let Err(error) = unsafe { self.map.cut_range(offsets.clone()) } {
            say("cannot write an unmapped part of a file back; its stores are lost", &error);
        }
        self.cut.push(offsets);
    }

    /// Makes one of the program's mappings longer or shorter, where it is. False: what comes after
    /// it is not free.
    pub fn resize(&mut self, addresses: &Range<usize>, len: usize) -> bool {
        let resized = addresses.start..addresses.start.saturating_add(len);
        let free = resized.end <= self.span().end && !self.is_cut(&self.offsets(resized.clone()));
        let known = resized.end <= addresses.end || self.ranges.contains(addresses);
        if free && known {
            self.ranges.push(resized);
            self.shrink(addresses);
        }
        free && known
    }

    /// Lists the addresses that the program has mapped.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Stores are SIGSEGV for as long as no mapping is for writing: all share their addresses.
    fn protect_for(&mut self, prot: c_int) {
        let stores = prot & libc::PROT_WRITE != 0;
        if stores == self.stores || !stores && !self.ranges.is_empty() {
            return;
        }
        self.stores = stores;
        self.place.allow_stores(stores);
        let span = self.span();
        let prot = if stores { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: the view is the program's, which asked for this.
        unsafe { libc::syscall(libc::SYS_mprotect, span.start, span.len(), prot) };
    }

    /// Is some of this range of offsets given up?
    fn is_cut(&self, offsets: &Range<usize>) -> bool {
        self.cut.iter().any(|cut| cut.start < offsets.end && offsets.start < cut.end)
    }

    /// Returns the range that an append of `len` bytes writes.
    pub fn end(&self, len: usize) -> Range<usize> {
        let start = self.file.metadata().map_or(0, |meta| meta.len() as usize);
        start..start.saturating_add(len)
    }

    /// Changes a range of the file by a system call, which answers with -1 or more, and tells the
    /// offsets it changed. -1, and nothing done: stores made before could not be written.
    pub fn change<T: From<i8>>(
        &mut self,
        range: Range<usize>,
        call: impl FnOnce() -> (T, Range<usize>),
    ) -> T {
        let Self { map, store, .. } = self;
        let within = |at: usize| at.min(map.len());
        let (range, mut made) = (within(range.start)..within(range.end), None);
        let changed = map.change_store(range, || {
            let (answer, changed) = call();
            made = Some((answer, errno()));
            // A file that does not say is as long as it was.
            let _ = store.learn_len();
            changed
        });
        let (answer, errno) = match (made, changed) {
            (None, Err(error)) => (T::from(-1), error.errno()),
            (Some(made), Ok(())) => made,
            // Pages that stay are stale: better to stop than to go on with them.
            (_, changed) => panic!("pages of a file that changed: {changed:?}"),
        };
        set_errno(errno);
        answer
    }
}

/// Cuts one range out of another; what is left lies below it and above it.
pub fn without(
    range: &Range<usize>,
    other: &Range<usize>,
) -> impl Iterator<Item = Range<usize>> + use<> {
    let low = range.start..other.start.clamp(range.start, range.end);
    let high = other.end.clamp(range.start, range.end)..range.end;
    [low, high].into_iter().filter(|part| !part.is_empty())
}

fn span_of(map: &MappingMut) -> Range<usize> {
    let start = map.as_ptr() as usize;
    start..start + map.len().next_multiple_of(PAGE)
}
