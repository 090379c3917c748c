//! The files that are managed, and which of the program's mappings are theirs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use libc::c_int;
use mglru_pager::control::Control;
use mglru_pager::{FileStore, MappingMut, Pager, PagerError, launch, own};

use crate::calls::{errno, set_errno};
use crate::candidate::{candidate, is_writable};
use crate::claim::{Claim, Key};
use crate::{places, settings};

const PAGE: usize = 4096;
/// Address space for a file at least, so that it may grow, bytes.
const ROOM: usize = 1 << 30;

/// A managed file.
pub struct Managed {
    key: Key,
    /// All of the file; what the program maps are ranges of it.
    pub map: MappingMut,
    /// Open for as long as it is managed.
    pub file: File,
    /// Its content.
    pub store: Arc<FileStore>,
    writable: bool,
    /// It is mapped for stores.
    stores: bool,
    /// Pages that the program locked.
    locked: BTreeSet<usize>,
    /// What the program mapped: addresses.
    ranges: Vec<Range<usize>>,
    /// What it gave up of that while it kept the rest: offsets.
    cut: Vec<Range<usize>>,
    claim: Claim,
    _place: places::Taken,
}

/// All that is managed.
#[derive(Default)]
pub struct Table {
    pager: Option<Pager>,
    control: Option<Control>,
    files: Vec<Managed>,
    /// Files that are managed no more, as soon as their stores are written.
    ending: Vec<Key>,
}

/// Files managed, so that calls that concern none cost a load.
static NR_FILES: AtomicUsize = AtomicUsize::new(0);
static TABLE: Mutex<Table> =
    Mutex::new(Table { pager: None, control: None, files: Vec::new(), ending: Vec::new() });
/// A file's end is over.
static ENDED: Condvar = Condvar::new();

thread_local! {
    /// The thread has the table, or waits for it.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// The table, locked.
pub struct Locked {
    /// Let go of before its mark is taken away.
    table: MutexGuard<'static, Table>,
    _mark: Mark,
}

struct Mark;

impl Drop for Mark {
    fn drop(&mut self) {
        HOLDS.set(false);
    }
}

impl Deref for Locked {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Table {
        &mut self.table
    }
}

/// Locks the table. Nothing that ends a pager may happen under the lock: it would ask again.
pub fn table() -> Locked {
    HOLDS.set(true);
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    Locked { table, _mark: Mark }
}

/// Maps a range of a file. The descriptor stays the caller's.
pub fn map(fd: RawFd, offset: usize, len: usize, prot: c_int) -> Mapped {
    // SAFETY: the descriptor is open while the caller's call lasts, and not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let Some(known) = candidate(&file) else { return Mapped::No };
    let Locked { table, _mark } = table();
    let ended = ENDED.wait_while(table, |table| table.ending.contains(&known.0));
    let mut table = ended.unwrap_or_else(PoisonError::into_inner);
    table.map(&file, known, offset..offset + len, prot)
}

/// The program unmapped a range. False: not all of it is a managed file's, and the kernel is to be
/// told.
pub fn unmap(range: &Range<usize>) -> bool {
    give_up(range, false)
}

/// The program is about to map something else over a range.
pub fn map_over(range: &Range<usize>) {
    give_up(range, true);
}

fn give_up(range: &Range<usize>, over: bool) -> bool {
    let (kept, gone) = table().give_up(range, over);
    let keys: Vec<Key> = gone.iter().map(|managed| managed.key).collect();
    drop(gone);
    if !keys.is_empty() {
        table().ending.retain(|key| !keys.contains(key));
        ENDED.notify_all();
    }
    kept
}

/// May the call concern a managed file? Not if there is none, nor if the pager makes the call, nor
/// in a signal handler that came upon its thread in another call: it would wait for itself.
pub fn any() -> bool {
    NR_FILES.load(Ordering::Acquire) > 0 && !own::is_own() && !HOLDS.get()
}

/// May some of a range of addresses be a managed file's?
pub fn any_at(range: &Range<usize>) -> bool {
    any() && places::meet(range)
}

/// What became of a mapping that could be managed.
pub enum Mapped {
    /// It is, at this address.
    At(*mut u8),
    /// It is the kernel's.
    No,
    /// It cannot be: errno.
    Refused(c_int),
}

impl Managed {
    /// Its addresses.
    pub fn span(&self) -> Range<usize> {
        span_of(&self.map)
    }

    /// The part of a range of addresses that is this file's, as offsets.
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

    /// No longer keeps it.
    pub fn unlock(&mut self, offsets: Range<usize>) -> Result<(), PagerError> {
        let pages = offsets.start / PAGE..offsets.end.div_ceil(PAGE);
        let locked: Vec<usize> = self.locked.range(pages).copied().collect();
        locked.into_iter().try_for_each(|page| {
            self.locked.remove(&page);
            self.map.unpin_range(self.page(page))
        })
    }

    /// What was mapped to be read is mapped to be written too.
    fn allow_writes(&mut self, file: &File, writable: bool) -> io::Result<()> {
        if writable && !self.writable {
            self.claim.be_writer(self.key)?;
            self.store.allow_writes(file)?;
            self.writable = true;
        }
        Ok(())
    }

    fn page(&self, page: usize) -> Range<usize> {
        page * PAGE..((page + 1) * PAGE).min(self.map.len())
    }

    /// One of the program's mappings goes, or a part of one: of those that share addresses it is
    /// the one that fits. The addresses stay, and may be mapped again, for as long as anything of
    /// the file is mapped.
    fn shrink(&mut self, addresses: &Range<usize>) {
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
        self.unlock_unmapped(addresses);
    }

    /// Locks end with the last mapping of a page.
    fn unlock_unmapped(&mut self, addresses: &Range<usize>) {
        let mut parts = vec![addresses.clone()];
        for range in &self.ranges {
            parts = parts.iter().flat_map(|part| without(part, range)).collect();
        }
        for part in parts {
            if let Err(error) = self.unlock(self.offsets(part)) {
                say("what was locked and unmapped stays locked", &error);
            }
        }
    }

    /// Part of its addresses becomes something else's.
    fn lose(&mut self, addresses: &Range<usize>) {
        let ranges = std::mem::take(&mut self.ranges);
        self.ranges = ranges.iter().flat_map(|range| without(range, addresses)).collect();
        self.unlock_unmapped(addresses);
        let offsets = self.offsets(addresses.clone());
        // SAFETY: the program gave the addresses up.
        if let Err(error) = unsafe { self.map.cut_range(offsets.clone()) } {
            say("stores to a part of a file that was unmapped are lost", &error);
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

    /// What the program has mapped: addresses.
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
        let span = self.span();
        let prot = if stores { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: the view is the program's, which asked for this.
        unsafe { libc::syscall(libc::SYS_mprotect, span.start, span.len(), prot) };
    }

    /// Is some of this range of offsets given up?
    fn is_cut(&self, offsets: &Range<usize>) -> bool {
        self.cut.iter().any(|cut| cut.start < offsets.end && offsets.start < cut.end)
    }

    /// What is written when `len` bytes are appended.
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
        let Self { map, file, store, .. } = self;
        let within = |at: usize| at.min(map.len());
        let (range, mut made) = (within(range.start)..within(range.end), None);
        let changed = map.change_store(range, || {
            let (answer, changed) = call();
            made = Some((answer, errno()));
            if let Ok(meta) = file.metadata() {
                store.set_len(meta.len());
            }
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

impl Table {
    fn map(
        &mut self,
        file: &File,
        (key, bytes): (Key, usize),
        range: Range<usize>,
        prot: c_int,
    ) -> Mapped {
        let writable = is_writable(file);
        let at = match self.files.iter().position(|managed| managed.key == key) {
            Some(at) => at,
            None => match self.manage(file, key, writable, range.end.max(bytes)) {
                Ok(at) => at,
                Err(refused) => return refused,
            },
        };
        let managed = &mut self.files[at];
        if range.end > managed.map.len() || managed.is_cut(&range) {
            let what = "a managed file was mapped again, far longer or where something else is now";
            return busy(what, &io::Error::from_raw_os_error(libc::EBUSY));
        }
        if let Err(error) = managed.allow_writes(file, writable) {
            return busy("a managed file was mapped again, for writing", &error);
        }
        managed.protect_for(prot);
        let start = managed.span().start;
        managed.ranges.push(start + range.start..start + range.end.next_multiple_of(PAGE));
        Mapped::At((start + range.start) as *mut u8)
    }

    fn manage(
        &mut self,
        file: &File,
        key: Key,
        writable: bool,
        needed: usize,
    ) -> Result<usize, Mapped> {
        let claim = Claim::new(key, writable).map_err(|error| {
            busy("another process manages a file that was to be mapped", &error)
        })?;
        let (map, store) = self.open(file, writable, needed).map_err(|error| {
            say(launch::LEFT, &error);
            Mapped::No
        })?;
        let file = file.try_clone().map_err(|_| Mapped::No)?;
        let place = places::take(&span_of(&map));
        self.files.push(Managed {
            key,
            map,
            file,
            store,
            writable,
            stores: true,
            locked: BTreeSet::new(),
            ranges: Vec::new(),
            cut: Vec::new(),
            claim,
            _place: place,
        });
        NR_FILES.store(self.files.len(), Ordering::Release);
        Ok(self.files.len() - 1)
    }

    /// The pager of this process.
    pub fn pager(&mut self) -> Result<Pager, PagerError> {
        match &self.pager {
            Some(pager) => Ok(pager.clone()),
            None => {
                let pager = settings::open()?;
                self.control = settings::control().and_then(|path| offer(&pager, &path));
                Ok(self.pager.insert(pager).clone())
            }
        }
    }

    /// Maps a file with room to grow beyond the `needed` bytes.
    fn open(
        &mut self,
        file: &File,
        writable: bool,
        needed: usize,
    ) -> Result<(MappingMut, Arc<FileStore>), PagerError> {
        let root = self.pager()?.root();
        let store = Arc::new(FileStore::new(file, writable)?);
        let len = store.len() as usize;
        let map = |room: usize| {
            // SAFETY: the program may change the file by system calls, which `calls` accounts for,
            // and borrows from it as C does.
            unsafe { root.map_store_with_room(store.clone(), len, room) }
        };
        let exact = needed.next_multiple_of(PAGE);
        let map = map(exact.saturating_mul(2).max(ROOM)).or_else(|_| map(exact))?;
        Ok((map, store))
    }

    /// The file that an address is of.
    pub fn at(&mut self, address: usize) -> Option<&mut Managed> {
        self.files.iter_mut().find(|managed| managed.span().contains(&address))
    }

    /// The file that a descriptor is of.
    pub fn of(&mut self, fd: RawFd) -> Option<&mut Managed> {
        // SAFETY: the descriptor is open while the caller's call lasts, and not closed here.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        self.known(&file.metadata().ok()?)
    }

    /// The file that has a name.
    pub fn of_path(&mut self, path: &Path) -> Option<&mut Managed> {
        self.known(&std::fs::metadata(path).ok()?)
    }

    fn known(&mut self, meta: &Metadata) -> Option<&mut Managed> {
        let key = (meta.dev(), meta.ino());
        self.files.iter_mut().find(|managed| managed.key == key)
    }

    /// The program gave a range up; `over`: something else will be there. Tells whether that needs
    /// nothing else, and the files that nothing is mapped of any more, to be dropped without the
    /// lock.
    fn give_up(&mut self, range: &Range<usize>, over: bool) -> (bool, Vec<Managed>) {
        let mut kept = false;
        for managed in &mut self.files {
            let span = managed.span();
            let within = span.start <= range.start && range.end <= span.end;
            if within && !over {
                managed.shrink(range);
                kept = true;
            } else if span.start < range.end && range.start < span.end {
                managed.lose(range);
            }
        }
        let all = std::mem::take(&mut self.files).into_iter();
        let (gone, left): (Vec<_>, _) = all.partition(|managed| managed.ranges.is_empty());
        self.files = left;
        self.ending.extend(gone.iter().map(|managed| managed.key));
        NR_FILES.store(self.files.len(), Ordering::Release);
        (kept, gone)
    }

    /// Writes everything back. What fails says so: nobody is left to tell.
    pub fn write_back(&self) {
        for managed in &self.files {
            if let Err(error) = managed.map.write_back_range(0..managed.map.len()) {
                say("stores to a mapped file could not be written", &error);
            }
        }
    }

    /// The process ends.
    pub fn finish(&self) {
        self.write_back();
        self.control.iter().for_each(Control::withdraw);
    }

    /// Everything that is managed.
    pub fn files(&self) -> &[Managed] {
        &self.files
    }

    /// In a forked child: its pager has no threads. What it held is left where it is.
    pub fn abandon(&mut self) {
        if let Some(control) = self.control.take() {
            control.abandon();
        }
        self.files.iter_mut().for_each(|managed| managed.claim.release());
        std::mem::forget(std::mem::take(self));
        NR_FILES.store(0, Ordering::Release);
    }
}

/// What there is of a range beside another: below it, above it.
fn without(range: &Range<usize>, other: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let low = range.start..other.start.clamp(range.start, range.end);
    let high = other.end.clamp(range.start, range.end)..range.end;
    [low, high].into_iter().filter(|part| !part.is_empty())
}

fn span_of(map: &MappingMut) -> Range<usize> {
    let start = map.as_ptr() as usize;
    start..start + map.len().next_multiple_of(PAGE)
}

/// What cannot be steered runs all the same.
fn offer(pager: &Pager, path: &Path) -> Option<Control> {
    let offered = pager.offer(path);
    offered.inspect_err(|error| say("no socket to steer it by", &error)).ok()
}

fn busy(what: &str, error: &io::Error) -> Mapped {
    say(what, error);
    Mapped::Refused(libc::EBUSY)
}

pub fn say(what: &str, why: &dyn std::fmt::Display) {
    eprintln!("mglru exec: {what}: {why}");
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::calls;

    #[test]
    fn what_is_no_managed_files_does_not_wait_for_the_table() {
        let (done, is_done) = mpsc::channel();
        let held = table();
        NR_FILES.store(1, Ordering::Release);
        std::thread::spawn(move || {
            let mut page = [0_u8; 2 * PAGE];
            let start = page.as_mut_ptr().wrapping_add(page.as_ptr().align_offset(PAGE)).cast();
            // SAFETY: says of a page of this thread's what is so anyway.
            done.send(unsafe { calls::madvise(start, PAGE, libc::MADV_NORMAL) })
        });
        let answer = is_done.recv_timeout(Duration::from_secs(20));
        NR_FILES.store(0, Ordering::Release);
        drop(held);
        assert_eq!(answer, Ok(0));
    }
}
