//! Groups: what of the budget belongs to whom, with cgroup v2's names and meanings.

use std::fs::File;
use std::sync::{Arc, mpsc};

use mglru::Counter;

use crate::account::{Account, Happened, NO_LIMIT, Setting};
use crate::arena::{Arena, Backing, Wanted};
use crate::error::PagerError;
use crate::lent::{Mapping, MappingMut};
use crate::mapping::Mapped;
use crate::pager::Inner;
use crate::store::{FileStore, Store};
use crate::sys::PAGE;

/// A limit or protection of a group, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `memory.min`: never reclaimed below it.
    Min,
    /// `memory.low`: not while others have more.
    Low,
    /// `memory.high`: reclaimed down to it in the background.
    High,
    /// `memory.max`: never exceeded.
    Max,
    /// `memory.swap.max`.
    SwapMax,
}

impl Limit {
    fn setting(self) -> Setting {
        match self {
            Self::Min => Setting::Min,
            Self::Low => Setting::Low,
            Self::High => Setting::High,
            Self::Max => Setting::Max,
            Self::SwapMax => Setting::SwapMax,
        }
    }
}

/// A group at one moment: `memory.stat`, `memory.events` and the current sizes, under their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStat(Vec<(&'static str, u64)>);

impl GroupStat {
    /// The value of a key, such as `memory.current`, `workingset_refault_file` or `oom`.
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// All keys and values. Sizes are bytes, as in cgroup v2; events are counts of pages.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// A group of a pager.
#[derive(Clone)]
pub struct Group {
    inner: Arc<Inner>,
    account: Arc<Account>,
}

impl Group {
    pub(crate) fn new(inner: Arc<Inner>, account: Arc<Account>) -> Self {
        Self { inner, account }
    }

    /// Its path, `/` for the root.
    pub fn path(&self) -> &str {
        &self.account.path
    }

    /// A new group below this one.
    ///
    /// # Errors
    /// The name is empty, has a slash or is taken.
    pub fn create(&self, name: &str) -> Result<Self, PagerError> {
        let parent = self.account.clone();
        let path = format!("{}/{name}", parent.path.trim_end_matches('/'));
        if name.is_empty() || name.contains(['/', '\n']) {
            return Err(PagerError::GroupName(path));
        }
        let account = self.inner.shared.call(move |policy| {
            let taken = policy.groups().iter().any(|group| group.path == path);
            if taken {
                Err(PagerError::GroupName(path))
            } else {
                Ok(policy.add_group(&parent, path))
            }
        })??;
        Ok(Self::new(self.inner.clone(), account))
    }

    /// A limit, bytes; `None` is `max`.
    pub fn limit(&self, limit: Limit) -> Option<u64> {
        Some(self.account.get(limit.setting())).filter(|&bytes| bytes != NO_LIMIT)
    }

    /// Sets a limit; `None` is `max`. A lower `memory.max` reclaims in the background; faults wait
    /// until usage is below it.
    pub fn set_limit(&self, limit: Limit, bytes: Option<u64>) {
        self.account.set(limit.setting(), bytes.unwrap_or(NO_LIMIT));
        self.account.wanted.store(true, std::sync::atomic::Ordering::Release);
        self.inner.shared.wake.ring();
    }

    /// `memory.swappiness`, 0 to 200.
    ///
    /// # Errors
    /// More than 200.
    pub fn set_swappiness(&self, swappiness: u8) -> Result<(), PagerError> {
        if swappiness > 200 {
            let (got, takes) = (swappiness.into(), "0 to 200".into());
            return Err(PagerError::OutOfRange { what: "memory.swappiness", got, takes });
        }
        self.account.set_swappiness(swappiness);
        Ok(())
    }

    /// `memory.current`, bytes.
    pub fn current(&self) -> u64 {
        self.account.usage()
    }

    /// `memory.peak`, bytes.
    pub fn peak(&self) -> u64 {
        self.account.peak()
    }

    /// `memory.reclaim`: evicts up to `bytes`, and tells how many it was.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn reclaim(&self, bytes: u64) -> Result<u64, PagerError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let memcg = self.account.memcg;
        self.inner.shared.call(move |policy| policy.request_reclaim(memcg, bytes, None, reply))?;
        answer.recv().map(|pages| pages * PAGE as u64).map_err(|_| PagerError::Stopped)
    }

    /// Its generations, in the layout of the kernel's lru_gen file.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn lru_gen(&self) -> Result<String, PagerError> {
        let memcg = self.account.memcg;
        self.inner.shared.call(move |policy| policy.lru_gen(memcg))
    }

    /// Makes a new generation: walks all mappings of the group and takes their accessed bits.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn age(&self) -> Result<bool, PagerError> {
        let memcg = self.account.memcg;
        self.inner.shared.call(move |policy| policy.age(memcg))
    }

    /// All that is counted.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn stat(&self) -> Result<GroupStat, PagerError> {
        let memcg = self.account.memcg;
        let report = self.inner.shared.call(move |policy| policy.report(memcg))?;
        let (account, page) = (&self.account, PAGE as u64);
        let mut stat = vec![
            ("memory.current", account.usage()),
            ("memory.peak", account.peak()),
            ("memory.swap.current", account.swap()),
            ("high", account.events(Happened::High)),
            ("max", account.events(Happened::Max)),
            ("oom", account.events(Happened::Oom)),
            ("swap_fail", account.events(Happened::SwapFail)),
            ("inactive_anon", report.sizes.inactive_anon * page),
            ("active_anon", report.sizes.active_anon * page),
            ("inactive_file", report.sizes.inactive_file * page),
            ("active_file", report.sizes.active_file * page),
            ("unevictable", report.sizes.unevictable * page),
            ("file_dirty", report.file_dirty * page),
            ("file_writeback", report.file_writeback * page),
        ];
        stat.extend(Counter::ALL.iter().map(|&c| (c.name(), report.counters[c])));
        Ok(GroupStat(stat))
    }

    /// Anonymous memory of `len` bytes, zeros at first.
    ///
    /// # Errors
    /// No room for its tables, or the kernel refuses.
    pub fn map_anon(&self, len: usize) -> Result<MappingMut, PagerError> {
        self.map_backing(len, Backing::Anon).map(MappingMut::new)
    }

    /// A file, read-only.
    ///
    /// # Errors
    /// As [`Self::map_anon`]; the file cannot be read.
    ///
    /// # Safety
    /// As with any mapping of a file: while it is mapped, nobody else may change or truncate it.
    #[allow(unsafe_code)]
    pub unsafe fn map(&self, file: &File) -> Result<Mapping, PagerError> {
        let store = FileStore::new(file, false)?;
        let len = usize_of(store.len())?;
        self.map_backing(len, Backing::Store(Arc::new(store))).map(Mapping::new)
    }

    /// A file; stores go back to it.
    ///
    /// # Errors
    /// As [`Self::map`]; the file cannot be written.
    ///
    /// # Safety
    /// As [`Self::map`].
    #[allow(unsafe_code)]
    pub unsafe fn map_mut(&self, file: &File) -> Result<MappingMut, PagerError> {
        // SAFETY: the caller's own promise.
        unsafe { self.map_file(file, true) }
    }

    /// As [`Self::map_mut`], of a file that may be read-only: then stores are for nothing, and
    /// the next flush says so.
    ///
    /// # Errors
    /// As [`Self::map`].
    ///
    /// # Safety
    /// As [`Self::map`].
    #[allow(unsafe_code)]
    pub unsafe fn map_file(&self, file: &File, writable: bool) -> Result<MappingMut, PagerError> {
        let store = FileStore::new(file, writable)?;
        let len = usize_of(store.len())?;
        self.map_backing(len, Backing::Store(Arc::new(store))).map(MappingMut::new)
    }

    /// Whatever `store` holds; stores to the memory go back to it.
    ///
    /// # Errors
    /// As [`Self::map_anon`].
    ///
    /// # Safety
    /// A page must read as it was last written: memory that is borrowed would change otherwise.
    #[allow(unsafe_code)]
    pub unsafe fn map_store(
        &self,
        store: Arc<dyn Store>,
        len: usize,
    ) -> Result<MappingMut, PagerError> {
        self.map_backing(len, Backing::Store(store)).map(MappingMut::new)
    }

    /// As [`Self::map_store`], in place of what is mapped at an address, a multiple of 4096.
    ///
    /// # Errors
    /// As there; the address is no multiple.
    ///
    /// # Safety
    /// As there; nobody uses what is at the address.
    #[allow(unsafe_code)]
    pub unsafe fn map_store_over(
        &self,
        address: usize,
        store: Arc<dyn Store>,
        len: usize,
    ) -> Result<MappingMut, PagerError> {
        if address == 0 || address % PAGE != 0 || address.checked_add(len).is_none() {
            let takes = format!("the multiples of {PAGE} from {PAGE} on");
            return Err(PagerError::OutOfRange { what: "address", got: address as u64, takes });
        }
        let arena = self.attach(len, Backing::Store(store), Some(address))?;
        Mapped::new(self.inner.clone(), arena, len).map(MappingMut::new)
    }

    pub(crate) fn map_backing(&self, len: usize, backing: Backing) -> Result<Mapped, PagerError> {
        let arena = self.attach(len, backing, None)?;
        Mapped::new(self.inner.clone(), arena, len)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    pub(crate) fn attach(
        &self,
        len: usize,
        backing: Backing,
        over: Option<usize>,
    ) -> Result<Arc<Arena>, PagerError> {
        let nr_pages = u32::try_from(len.div_ceil(PAGE)).ok().filter(|&n| n > 0 && n < u32::MAX);
        let Some(nr_pages) = nr_pages else {
            let takes = "1 byte to 16 TiB".into();
            return Err(PagerError::OutOfRange { what: "length", got: len as u64, takes });
        };
        let (memcg, faults) = (self.account.memcg, self.inner.faults);
        let wanted = Wanted { nr_pages, backing, over, faults };
        self.inner.shared.call(move |policy| policy.attach(wanted, memcg))?
    }
}

fn usize_of(len: u64) -> Result<usize, PagerError> {
    let takes = || "the address space".to_string();
    usize::try_from(len).map_err(|_| PagerError::OutOfRange {
        what: "length",
        got: len,
        takes: takes(),
    })
}
