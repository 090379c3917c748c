//! The files that are managed, and which of the program's mappings are theirs.

use std::collections::BTreeSet;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{FromRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::c_int;
use mglru_pager::control::Control;
use mglru_pager::{MappingMut, Pager, own};

use crate::settings;

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
    writable: bool,
    /// Pages that the program locked.
    locked: BTreeSet<usize>,
    /// What the program mapped: addresses.
    ranges: Vec<Range<usize>>,
    /// No other process manages the file.
    _claim: UnixListener,
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

/// The table, locked. Nothing that ends a pager may happen under the lock: it would ask again.
pub fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// May the call concern a managed file? Not if there is none, nor if the pager makes the call.
pub fn any() -> bool {
    NR_FILES.load(Ordering::Acquire) > 0 && !own::is_own()
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
        let start = self.map.as_ptr() as usize;
        start..start + self.map.len().next_multiple_of(PAGE)
    }

    /// The part of a range of addresses that is this file's, as offsets.
    pub fn offsets(&self, addresses: Range<usize>) -> Range<usize> {
        let span = self.span();
        let clip = |at: usize| (at.clamp(span.start, span.end) - span.start).min(self.map.len());
        clip(addresses.start)..clip(addresses.end)
    }

    /// Keeps a range of offsets in memory. Locks do not count, as mlock's do not.
    pub fn lock(&mut self, offsets: Range<usize>) -> Result<(), mglru_pager::PagerError> {
        for page in offsets.start / PAGE..offsets.end.div_ceil(PAGE) {
            if !self.locked.contains(&page) {
                self.map.pin(self.page(page))?.keep();
                self.locked.insert(page);
            }
        }
        Ok(())
    }

    /// No longer keeps it.
    pub fn unlock(&mut self, offsets: Range<usize>) -> Result<(), mglru_pager::PagerError> {
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

    /// Forgets what is resident of a range of offsets; stores to it were written back before.
    pub fn forget(&mut self, offsets: Range<usize>) {
        let len = self.map.len();
        let start = (offsets.start - offsets.start % PAGE).min(len);
        let end = offsets.end.next_multiple_of(PAGE).min(len);
        if start < end {
            // Pages that stay are stale: better to stop than to go on with them.
            self.map.discard_range(start..end).expect("whole pages of the mapping");
        }
    }
}

impl Table {
    /// Maps a range of a file. The descriptor stays the caller's.
    pub fn map(&mut self, fd: RawFd, offset: usize, len: usize) -> Mapped {
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
        if writable && !managed.writable || bytes != managed.map.len() {
            say("a managed file was mapped again, longer or for writing", &libc::EBUSY);
            return Mapped::Refused(libc::EBUSY);
        }
        let start = managed.span().start + offset;
        managed.ranges.push(start..start + len.next_multiple_of(PAGE));
        Mapped::At(start as *mut u8)
    }

    fn manage(&mut self, file: &File, key: Key, writable: bool) -> Result<usize, Mapped> {
        let claim = claim(key).map_err(|error| {
            say("another process manages a file that was to be mapped", &error);
            Mapped::Refused(libc::EBUSY)
        })?;
        let (map, file) = self.open(file, writable).map_err(|error| {
            say("a mapping stays with the kernel", &error);
            Mapped::No
        })?;
        let (locked, ranges) = (BTreeSet::new(), Vec::new());
        self.files.push(Managed { key, map, file, writable, locked, ranges, _claim: claim });
        NR_FILES.store(self.files.len(), Ordering::Release);
        Ok(self.files.len() - 1)
    }

    /// The pager of this process.
    pub fn pager(&mut self) -> Result<Pager, mglru_pager::PagerError> {
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
    ) -> Result<(MappingMut, File), mglru_pager::PagerError> {
        let pager = self.pager()?;
        let kept = file.try_clone()?;
        // SAFETY: the program may change the file by system calls, which `calls` accounts for, and
        // borrows from it as C does.
        let map = unsafe { pager.root().map_file(file, writable) }?;
        Ok((map, kept))
    }

    /// The file that an address is of.
    pub fn at(&mut self, address: usize) -> Option<&mut Managed> {
        self.files.iter_mut().find(|managed| managed.span().contains(&address))
    }

    /// The file that a descriptor is of.
    pub fn of(&mut self, fd: RawFd) -> Option<&mut Managed> {
        // SAFETY: the descriptor is open while the caller's call lasts, and not closed here.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let meta = file.metadata().ok()?;
        let key = (meta.dev(), meta.ino());
        self.files.iter_mut().find(|managed| managed.key == key)
    }

    /// The program unmapped a range. A file none of whose ranges is left is handed back, to be
    /// dropped without the lock.
    pub fn unmap(&mut self, range: &Range<usize>) -> Option<Managed> {
        let at = self.files.iter().position(|m| m.span().contains(&range.start))?;
        let managed = &mut self.files[at];
        if let Some(nth) = managed.ranges.iter().position(|r| r == range) {
            managed.ranges.swap_remove(nth);
        }
        if !managed.ranges.is_empty() {
            return None;
        }
        let gone = self.files.swap_remove(at);
        NR_FILES.store(self.files.len(), Ordering::Release);
        Some(gone)
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
