//! All that is managed, under one lock.

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};

use libc::c_int;
use mglru_pager::control::Control;
use mglru_pager::{FileStore, Map, MappingMut, Pager, PagerError, held, launch, threads};

use crate::candidate::{candidate, is_writable};
use crate::claim::{Claim, Key};
use crate::managed::{Kind, Managed};
use crate::{fatal, limits, places, settings, trace_events};

const PAGE: usize = 4096;
/// Address space for a file at least, so that it may grow, bytes.
const ROOM: usize = 1 << 30;

/// Holds all that is managed.
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

/// Holds the table locked.
pub struct Locked {
    /// Let go of before its mark is taken away.
    table: MutexGuard<'static, Table>,
    _mark: Mark,
}

struct Mark;

impl Drop for Mark {
    fn drop(&mut self) {
        HOLDS.set(false);
        fatal::resume();
    }
}

/// Tells whether the calling thread has the table, or waits for it.
pub fn is_held_here() -> bool {
    HOLDS.get()
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
pub fn map(fd: RawFd, range: Range<usize>, prot: c_int, private: bool) -> Mapped {
    // SAFETY: the descriptor is open while the caller's call lasts, and not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let Some(known) = candidate(&file) else { return Mapped::No };
    if limits::descriptors_run_short() {
        return left_for_descriptors();
    }
    let Locked { table, _mark } = table();
    let ended = ENDED.wait_while(table, |table| table.ending.contains(&known.0));
    let mut table = ended.unwrap_or_else(PoisonError::into_inner);
    match private {
        true => table.copy(&file, known.0, range, prot),
        false => table.map(&file, known, range, prot),
    }
}

/// Gives up a range that the program unmapped. False: not all of it is a managed file's, and the
/// kernel must unmap it.
pub fn unmap(range: &Range<usize>) -> bool {
    give_up(range, false)
}

/// Gives up a range over which the program is about to map something else.
pub fn map_over(range: &Range<usize>) {
    give_up(range, true);
}

fn give_up(range: &Range<usize>, over: bool) -> bool {
    let (kept, gone) = table().give_up(range, over);
    let keys: Vec<Key> = gone.iter().filter_map(Managed::key).collect();
    drop(gone);
    if !keys.is_empty() {
        table().ending.retain(|key| !keys.contains(key));
        ENDED.notify_all();
    }
    kept
}

/// Says whether the call may concern a managed file. Not if there is none, nor if the pager makes
/// the call, nor in a signal handler that interrupted its thread in another call: it would wait for
/// itself.
pub fn any() -> bool {
    NR_FILES.load(Ordering::Acquire) > 0 && !threads::is_pager() && !HOLDS.get()
}

/// Tells whether some of a range of addresses may be a managed file's.
pub fn any_at(range: &Range<usize>) -> bool {
    any() && places::meet(range)
}

/// Names the outcome of trying to manage a mapping.
pub enum Mapped {
    /// Is managed, at this address.
    At(*mut u8),
    /// Is left to the kernel.
    No,
    /// Cannot be mapped: errno.
    Refused(c_int),
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
        let at = match self.files.iter().position(|managed| managed.key() == Some(key)) {
            Some(at) => at,
            None => match self.manage(file, key, writable, range.end.max(bytes)) {
                Ok(at) => at,
                Err(refused) => return refused,
            },
        };
        let managed = &mut self.files[at];
        if let Err(error) = managed.allow_writes(file, writable) {
            return busy("a managed file was mapped again, for writing", &error);
        }
        match managed.add(range, prot) {
            Some(start) => Mapped::At(start),
            None => {
                let what =
                    "a managed file was mapped again, far longer or where something else is now";
                busy(what, &io::Error::from_raw_os_error(libc::EBUSY))
            }
        }
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
        let opened = self.open(file, writable, needed).and_then(|(map, store)| {
            let file = held::clone(file)?;
            Ok(Managed::new(Kind::Shared(key, claim), map, file, store, writable))
        });
        opened.map(|managed| self.push(managed)).map_err(|error| left(&error))
    }

    fn push(&mut self, managed: Managed) -> usize {
        self.files.push(managed);
        NR_FILES.store(self.files.len(), Ordering::Release);
        self.files.len() - 1
    }

    /// Maps a range of a file privately: as it is now, stores to its shared mapping included.
    fn copy(&mut self, file: &File, key: Key, range: Range<usize>, prot: c_int) -> Mapped {
        if let Some(shared) = self.by_key(key) {
            // The next flush reports a failure.
            let _ = shared.map.write_back_range(0..shared.map.len());
        }
        match self.open_copy(file, &range) {
            Ok(mut managed) => {
                let start = managed.add(0..range.len(), prot);
                self.push(managed);
                start.map_or(Mapped::No, Mapped::At)
            }
            Err(error) => left(&error),
        }
    }

    fn open_copy(&mut self, file: &File, range: &Range<usize>) -> Result<Managed, PagerError> {
        let len = range.len().next_multiple_of(PAGE);
        let store = Arc::new(FileStore::part(file, false, range.start as u64, len as u64)?);
        // SAFETY: a process that changes the file meanwhile learns nothing of what this mapping
        // shows.
        let map = unsafe { self.pager()?.root().map(Map::store(store.clone(), len).private()) }?;
        Ok(Managed::new(Kind::Private(range.start), map, held::clone(file)?, store, false))
    }

    /// Returns the pager of this process.
    pub fn pager(&mut self) -> Result<Pager, PagerError> {
        match &self.pager {
            Some(pager) => Ok(pager.clone()),
            None => {
                let pager = settings::open()?;
                trace_events::start().map_or(Ok(()), |events| pager.trace_events(events))?;
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
            // SAFETY: the program may change the file by system calls,
            // which `descriptors` accounts for,
            // and borrows from it as C does.
            unsafe { root.map(Map::store(store.clone(), len).with_room(room)) }
        };
        let exact = needed.next_multiple_of(PAGE);
        let map = map(exact.saturating_mul(2).max(ROOM)).or_else(|_| map(exact))?;
        Ok((map, store))
    }

    /// Returns the file that an address belongs to.
    pub fn at(&mut self, address: usize) -> Option<&mut Managed> {
        self.files.iter_mut().find(|managed| managed.span().contains(&address))
    }

    /// Returns the file that a descriptor is open on.
    pub fn of(&mut self, fd: RawFd) -> Option<&mut Managed> {
        // SAFETY: the descriptor is open while the caller's call lasts, and not closed here.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        self.known(&file.metadata().ok()?)
    }

    /// Returns the file that has a name.
    pub fn of_path(&mut self, path: &Path) -> Option<&mut Managed> {
        self.known(&std::fs::metadata(path).ok()?)
    }

    fn known(&mut self, meta: &Metadata) -> Option<&mut Managed> {
        self.by_key((meta.dev(), meta.ino()))
    }

    fn by_key(&mut self, key: Key) -> Option<&mut Managed> {
        self.files.iter_mut().find(|managed| managed.key() == Some(key))
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
        let (gone, left): (Vec<_>, _) = all.partition(|managed| managed.ranges().is_empty());
        self.files = left;
        self.ending.extend(gone.iter().filter_map(Managed::key));
        NR_FILES.store(self.files.len(), Ordering::Release);
        (kept, gone)
    }

    /// Writes everything back and reports failures: no later flush will.
    pub fn write_back(&self) {
        for managed in &self.files {
            if let Err(error) = managed.map.write_back_range(0..managed.map.len()) {
                say("cannot write stores to a mapped file", &error);
            }
        }
    }

    /// Ends all that is managed: the process ends.
    pub fn finish(&self) {
        self.write_back();
        self.control.iter().for_each(Control::withdraw);
    }

    /// Lists everything that is managed.
    pub fn files(&mut self) -> &mut [Managed] {
        &mut self.files
    }

    /// Forgets the pager in a forked child, where it has no threads; its memory stays where it is.
    pub fn abandon(&mut self) {
        if let Some(control) = self.control.take() {
            control.abandon();
        }
        self.files.iter_mut().for_each(Managed::release_claim);
        std::mem::forget(std::mem::take(self));
        NR_FILES.store(0, Ordering::Release);
    }
}

/// Offers the pager on a socket; without one the program runs all the same.
fn offer(pager: &Pager, path: &Path) -> Option<Control> {
    let offered = pager.offer(path);
    offered.inspect_err(|error| say("cannot create the control socket", &error)).ok()
}

fn left(error: &PagerError) -> Mapped {
    if error.errno() == libc::EMFILE {
        return left_for_descriptors();
    }
    say(launch::LEFT, error);
    Mapped::No
}

/// Said once: programs that map many files have no use for a line of each.
fn left_for_descriptors() -> Mapped {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| say(launch::LEFT, &"descriptors run short (ulimit -n); so may others"));
    Mapped::No
}

fn busy(what: &str, error: &io::Error) -> Mapped {
    say(what, error);
    Mapped::Refused(libc::EBUSY)
}

/// Prints a line that says what was not done, and why.
pub fn say(what: &str, why: &dyn std::fmt::Display) {
    threads::say(&format!("mglru exec: {what}: {why}"));
}

#[cfg(test)]
mod tests;
