//! A stretch of managed memory: its pages, what backs them, and what its threads share.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::account::Account;
use crate::pages::{Pages, Slot};
use crate::store::Store;
use crate::swap::Swap;
use crate::sys::PAGE;
use crate::sys::memory::{Memory, View};
use crate::sys::uffd::{Span, Uffd};
use crate::sys::wake::Wake;

/// Events after which the policy is woken to take them.
const INBOX: usize = 4096;

/// What backs the pages of an arena.
#[derive(Clone)]
pub enum Backing {
    /// Zeros at first, then swap.
    Anon,
    /// A file or whatever the caller made.
    Store(Arc<dyn Store>),
}

/// How an arena will be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Neighbours of a missing page are read with it.
    #[default]
    Normal,
    /// They are not.
    Random,
    /// More of them ahead, and accesses say nothing about reuse.
    Sequential,
}

/// Something that happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It became resident.
    Filled,
    /// It became newer than its store.
    Dirtied,
}

/// What faults cost and did. Times are nanoseconds.
#[derive(Debug, Default)]
pub struct FaultCounters {
    /// Pages that were missing.
    pub missing: AtomicU64,
    /// Of these, had to be read.
    pub major: AtomicU64,
    /// First stores to clean pages.
    pub protect: AtomicU64,
    /// Faults that had to wait for room.
    pub throttled: AtomicU64,
    /// Pages read along with a missing one.
    pub read_around: AtomicU64,
}

/// One arena, shared by its fault handler, the policy thread and its owner.
pub struct Arena {
    /// Its number.
    pub id: u32,
    /// State of each page.
    pub pages: Pages,
    /// Who is charged.
    pub account: Arc<Account>,
    /// What backs it.
    pub backing: Backing,
    /// The pager's swap.
    pub swap: Arc<Swap>,
    /// What is resident.
    pub memory: Memory,
    /// Where the program sees it.
    pub view: View,
    /// Its faults.
    pub uffd: Uffd,
    /// Wakes the handler.
    pub wake: Wake,
    /// Wakes the policy.
    pub policy: Arc<Wake>,
    /// A fault waits for room.
    pub starved: AtomicBool,
    /// There will be no room: waiting faults fail.
    pub out_of_memory: AtomicBool,
    /// The handler ends.
    pub closed: AtomicBool,
    /// What faults did.
    pub counters: FaultCounters,
    access: AtomicU8,
    /// Sticky I/O error, errno.
    error: AtomicU32,
    inbox: Mutex<Vec<(Event, u32)>>,
}

impl Arena {
    /// An arena of `nr_pages`, nothing resident, every entry protected (invariant I).
    pub fn new(
        id: u32,
        nr_pages: u32,
        backing: Backing,
        account: Arc<Account>,
        swap: Arc<Swap>,
        policy: Arc<Wake>,
    ) -> io::Result<Self> {
        let len = nr_pages as usize * PAGE;
        let memory = Memory::new(len as u64)?;
        let view = View::new(&memory, len)?;
        let uffd = Uffd::open()?;
        uffd.register(view.span())?;
        uffd.protect(view.span())?;
        let pages = Pages::new(nr_pages, matches!(backing, Backing::Anon));
        Ok(Self {
            id,
            pages,
            account,
            backing,
            swap,
            memory,
            view,
            uffd,
            wake: Wake::new()?,
            policy,
            starved: AtomicBool::new(false),
            out_of_memory: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            counters: FaultCounters::default(),
            access: AtomicU8::new(0),
            error: AtomicU32::new(0),
            inbox: Mutex::default(),
        })
    }

    /// Swap backs it.
    pub fn is_anon(&self) -> bool {
        matches!(self.backing, Backing::Anon)
    }

    /// Bytes of tables it takes: the pages' states and the policy's entries.
    pub fn table_bytes(&self) -> u64 {
        self.pages.table_bytes() + u64::from(self.pages.len()) * size_of::<u64>() as u64
    }

    /// Where a page lies in memory and in the store, bytes.
    pub fn offset(&self, page: u32) -> u64 {
        u64::from(page) * PAGE as u64
    }

    /// A run of pages as offsets.
    pub fn span(&self, first: u32, n: u32) -> Span {
        Span { start: self.offset(first), len: self.offset(n) }
    }

    /// How it will be used.
    pub fn access(&self) -> Access {
        match self.access.load(Ordering::Relaxed) {
            1 => Access::Random,
            2 => Access::Sequential,
            _ => Access::Normal,
        }
    }

    /// Says how it will be used.
    pub fn set_access(&self, access: Access) {
        self.access.store(access as u8, Ordering::Relaxed);
    }

    /// Tells the policy what happened to a page. It learns of it before it next reclaims, or when
    /// much has happened.
    pub fn post(&self, event: Event, page: u32) {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.push((event, page));
        if inbox.len() % INBOX == 0 {
            self.policy.ring();
        }
    }

    /// Takes what was posted, leaving the empty `into` to be filled next.
    pub fn take_posted(&self, into: &mut Vec<(Event, u32)>) {
        std::mem::swap(into, &mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Frees a swap slot and what was charged for it.
    pub fn free_slot(&self, slot: Slot) {
        if slot != 0 {
            self.account.uncharge(self.swap.free(slot));
            self.account.uncharge_swap();
        }
    }

    /// An I/O error happened; the next flush says so.
    pub fn note_error(&self, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        self.error.store(errno as u32, Ordering::Release);
    }

    /// The error since the last time somebody asked.
    pub fn take_error(&self) -> Option<io::Error> {
        match self.error.swap(0, Ordering::AcqRel) {
            0 => None,
            errno => Some(io::Error::from_raw_os_error(errno as i32)),
        }
    }
}
