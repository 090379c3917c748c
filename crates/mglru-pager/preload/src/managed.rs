//! The files that are managed, and which of the program's mappings are theirs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{FromRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::c_int;
use mglru_pager::control::Control;
use mglru_pager::{FileStore, MappingMut, Pager, PagerError, launch, own};

use crate::calls::{errno, set_errno};
use crate::{places, settings};

const PAGE: usize = 4096;

/// A file: device and inode.
type Key = (u64, u64);

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
    /// No other process manages the file.
    _claim: UnixListener,
    _place: places::Taken,
}

/// All that is managed.
#[derive(Default)]
pub struct Table {
    pager: Option<Pager>,
    control: Option<Control>,
    files: Vec<Managed>,
}

/// Files managed, so that calls that concern none cost a load.
static NR_FILES: AtomicUsize = AtomicUsize::new(0);
static TABLE: Mutex<Table> = Mutex::new(Table { pager: None, control: None, files: Vec::new() });

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
        for page in offsets.start / PAGE..offsets.end.div_ceil(PAGE) {
            if self.locked.remove(&page) {
                self.map.unpin_range(self.page(page))?;
            }
        }
        Ok(())
    }

    fn page(&self, page: usize) -> Range<usize> {
        page * PAGE..((page + 1) * PAGE).min(self.map.len())
    }

    /// Part of what is mapped goes; what several mappings share goes from all.
    fn lose(&mut self, addresses: &Range<usize>) {
        let parts = std::mem::take(&mut self.ranges);
        let rest = |range: Range<usize>| {
            let low = range.start..addresses.start.min(range.end);
            let high = addresses.end.max(range.start)..range.end;
            [low, high].into_iter().filter(|part| part.start < part.end)
        };
        self.ranges = parts.into_iter().flat_map(rest).collect();
        let span = self.span();
        let lost = addresses.start.clamp(span.start, span.end)..addresses.end.min(span.end);
        let offsets = lost.start - span.start..(lost.end - span.start).min(self.map.len());
        // SAFETY: the program gave the addresses up.
        if let Err(error) = unsafe { self.map.cut_range(offsets.clone()) } {
            say("stores to a part of a file that was unmapped are lost", &error);
        }
        self.cut.push(offsets);
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

    /// Is it one of the program's mappings, all of it?
    pub fn has(&self, addresses: &Range<usize>) -> bool {
        self.ranges.contains(addresses)
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
    /// Maps a range of a file. The descriptor stays the caller's.
    pub fn map(&mut self, fd: RawFd, offset: usize, len: usize, prot: c_int) -> Mapped {
        // SAFETY: the descriptor is open while the caller's call lasts, and not closed here.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let Some((key, bytes)) = candidate(&file) else { return Mapped::No };
        if offset + len > bytes.next_multiple_of(PAGE) {
            return Mapped::No;
        }
        let writable = is_writable(fd);
        let at = match self.files.iter().position(|managed| managed.key == key) {
            Some(at) => at,
            None => match self.manage(&file, key, writable) {
                Ok(at) => at,
                Err(refused) => return refused,
            },
        };
        let managed = &mut self.files[at];
        let beyond = offset + len > managed.map.len().next_multiple_of(PAGE);
        let cut = managed.is_cut(&(offset..offset + len));
        if writable && !managed.writable || beyond || cut {
            let what = "a managed file was mapped again: longer, for writing, or where a part was \
                        unmapped";
            say(what, &std::io::Error::from_raw_os_error(libc::EBUSY));
            return Mapped::Refused(libc::EBUSY);
        }
        managed.protect_for(prot);
        let start = managed.span().start + offset;
        managed.ranges.push(start..start + len.next_multiple_of(PAGE));
        Mapped::At(start as *mut u8)
    }

    fn manage(&mut self, file: &File, key: Key, writable: bool) -> Result<usize, Mapped> {
        let claim = claim(key).map_err(|error| {
            say("another process manages a file that was to be mapped", &error);
            Mapped::Refused(libc::EBUSY)
        })?;
        let (map, store) = self.open(file, writable).map_err(|error| {
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
            _claim: claim,
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

    fn open(
        &mut self,
        file: &File,
        writable: bool,
    ) -> Result<(MappingMut, Arc<FileStore>), PagerError> {
        let pager = self.pager()?;
        let store = Arc::new(FileStore::new(file, writable)?);
        let len = store.len() as usize;
        // SAFETY: the program may change the file by system calls, which `calls` accounts for, and
        // borrows from it as C does.
        let map = unsafe { pager.root().map_store(store.clone(), len) }?;
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

    /// The program unmapped a range. A file none of whose ranges is left is handed back, to be
    /// dropped without the lock.
    pub fn unmap(&mut self, range: &Range<usize>) -> Option<Managed> {
        let at = self.files.iter().position(|m| m.span().contains(&range.start))?;
        let managed = &mut self.files[at];
        match managed.ranges.iter().position(|r| r == range) {
            Some(nth) => drop(managed.ranges.swap_remove(nth)),
            None => managed.lose(range),
        }
        if !managed.ranges.is_empty() {
            return None;
        }
        let gone = self.files.swap_remove(at);
        NR_FILES.store(self.files.len(), Ordering::Release);
        Some(gone)
    }

    /// The program is about to map something else over a range.
    pub fn give_up(&mut self, range: &Range<usize>) {
        for managed in &mut self.files {
            let span = managed.span();
            if span.start < range.end && range.start < span.end {
                managed.lose(range);
            }
        }
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
        std::mem::forget(std::mem::take(self));
        NR_FILES.store(0, Ordering::Release);
    }
}

fn span_of(map: &MappingMut) -> Range<usize> {
    let start = map.as_ptr() as usize;
    start..start + map.len().next_multiple_of(PAGE)
}

/// A regular file with a name and content: its key and length.
fn candidate(file: &File) -> Option<(Key, usize)> {
    let meta = file.metadata().ok()?;
    let eligible = meta.is_file() && meta.nlink() > 0 && meta.len() > 0;
    eligible.then(|| ((meta.dev(), meta.ino()), meta.len() as usize))
}

/// What cannot be steered runs all the same.
fn offer(pager: &Pager, path: &Path) -> Option<Control> {
    let offered = pager.offer(path);
    offered.inspect_err(|error| say("no socket to steer it by", &error)).ok()
}

fn is_writable(fd: RawFd) -> bool {
    // SAFETY: takes numbers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags != -1 && flags & libc::O_ACCMODE == libc::O_RDWR
}

/// A name that one process can have at a time.
fn claim((device, inode): Key) -> std::io::Result<UnixListener> {
    let name = format!("mglru-pager/{device:x}/{inode:x}");
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
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
