//! The regions that are mapped, by address.

use std::ffi::c_int;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::FromRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::off_t;
pub use mglru_pager::Failure;
use mglru_pager::{Advice, FileStore, Map, Pager, PagerError, Pin, SharedMapping};

use crate::settings::settings;

/// Gives the size of a page, bytes.
pub const PAGE: usize = 4096;

fn invalid<T>(why: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::invalid(why))
}

/// Holds what a caller of `umap` asks for.
pub struct Wanted {
    pub address: usize,
    pub len: u64,
    pub prot: c_int,
    pub flags: c_int,
    pub fd: c_int,
    pub offset: off_t,
}

struct Regions {
    pager: Option<Pager>,
    mapped: Vec<Arc<SharedMapping>>,
}

static REGIONS: Mutex<Regions> = Mutex::new(Regions { pager: None, mapped: Vec::new() });

fn regions() -> MutexGuard<'static, Regions> {
    REGIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn span(map: &SharedMapping) -> Range<usize> {
    let start = map.as_ptr() as usize;
    start..start + map.len_bytes()
}

impl Regions {
    fn pager(&mut self) -> Result<Pager, Failure> {
        if let Some(pager) = &self.pager {
            return Ok(pager.clone());
        }
        if let Some(wrong) = &settings().wrong {
            return invalid(wrong.clone());
        }
        Ok(self.pager.insert(settings().open()?).clone())
    }

    /// The region that an address is in.
    fn at(&self, address: usize) -> Result<Arc<SharedMapping>, Failure> {
        let found = self.mapped.iter().find(|map| span(map).contains(&address));
        found.cloned().map_or_else(|| invalid(format!("{address:#x} is not mapped")), Ok)
    }
}

/// Maps a part of a file.
pub fn map(wanted: Wanted) -> Result<*mut u8, Failure> {
    let Wanted { address, len, prot, flags, fd, offset } = wanted;
    let known = libc::MAP_PRIVATE | libc::MAP_FIXED;
    if flags & !known != 0 || flags & libc::MAP_PRIVATE == 0 {
        return invalid(format!("flags {flags:#x} are not UMAP_PRIVATE[|UMAP_FIXED]"));
    }
    let Ok(base) = u64::try_from(offset) else { return invalid("offset is negative") };
    if fd < 0 {
        return Err(Failure(libc::EBADF, format!("{fd} is no descriptor")));
    }
    // SAFETY: the descriptor is the caller's while this call lasts, and not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let store = FileStore::part(&file, prot & libc::PROT_WRITE != 0, base, len)?;
    let (store, len) = (Arc::new(store), usize::try_from(len).unwrap_or(usize::MAX));
    let mut regions = regions();
    let root = regions.pager()?.root();
    let lengths = regions.mapped.iter().map(|map| map.len_bytes());
    settings().fit(&root, lengths.chain([len]));
    let fixed = flags & libc::MAP_FIXED != 0;
    if fixed && regions.mapped.iter().any(|map| overlap(&span(map), address, len)) {
        return invalid(format!("{address:#x}: a region is mapped there; uunmap it first"));
    }
    // SAFETY: a program that maps a file with UMap changes it by no other way meanwhile, and with
    // UMAP_FIXED gives up what is at the address.
    let map = unsafe {
        let map = Map::store(store, len);
        root.map(if fixed { map.over(address) } else { map })
    }?;
    let map = map.share();
    map.advise(settings().advice())?;
    let start = map.as_ptr();
    regions.mapped.push(Arc::new(map));
    Ok(start)
}

fn overlap(span: &Range<usize>, start: usize, len: usize) -> bool {
    span.start < start.saturating_add(len) && start < span.end.next_multiple_of(PAGE)
}

/// Unmaps a region: all of it, as it was mapped.
pub fn unmap(address: usize, len: u64) -> Result<(), Failure> {
    let map = {
        let mut regions = regions();
        let known = |map: &Arc<SharedMapping>| span(map) == (address..address + len as usize);
        let Some(at) = regions.mapped.iter().position(known) else {
            return invalid(format!("no region of {len} bytes is mapped at {address:#x}"));
        };
        regions.mapped.swap_remove(at)
    };
    Ok(map.write_back_range(0..map.len_bytes())?)
}

/// Makes all stores to all regions durable. All are tried; the first error is returned.
pub fn flush() -> Result<(), Failure> {
    let mapped = regions().mapped.clone();
    let flushed: Vec<_> = mapped.iter().map(|map| map.flush()).collect();
    Ok(flushed.into_iter().collect::<Result<(), PagerError>>()?)
}

/// Brings the page at an address in.
pub fn prefetch(address: usize) -> Result<(), Failure> {
    let map = regions().at(address)?;
    let start = (address - span(&map).start) / PAGE * PAGE;
    let end = (start + settings().page_size as usize).min(map.len_bytes());
    Ok(map.advise_range(Advice::PopulateRead, start..end)?)
}

/// Brings a range in and keeps it.
pub fn pin(address: usize, len: u64) -> Result<(), Failure> {
    let map = regions().at(address)?;
    let start = address - span(&map).start;
    Ok(map.pin(start..start.saturating_add(len as usize)).map(Pin::keep)?)
}
