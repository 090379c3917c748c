//! A stretch of managed memory: its pages, what backs them, and what its threads share.

mod ground;
mod tables;
mod types;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use ground::Ground;
use tables::PER_TABLE;
pub use types::{Access, Backing, Bits, Event, FaultCounters, Wanted};

use crate::account::Account;
use crate::engine::{self, Engine};
use crate::faults::Kind;
use crate::frames::Frames;
use crate::handler::Ahead;
use crate::pages::{Pages, Presence, Slot};
use crate::store::Store;
use crate::swap::Swap;
use crate::sys::PAGE;
use crate::sys::heap::{Staging, TABLE_SPAN};
use crate::sys::idle;
use crate::sys::memory::View;
use crate::sys::table::Table;
use crate::sys::uffd::{Span, Uffd};
use crate::sys::wake::Wake;

/// Events after which the policy is woken to take them.
pub const INBOX: usize = 4096;
/// Gives the bytes that [`INBOX`] events take.
pub const INBOX_BYTES: u64 = (INBOX * size_of::<(Event, u32)>()) as u64;

/// Holds the signals to one handler.
pub struct HandlerSignal {
    /// Wakes it: faults that wait should be tried again.
    pub wake: Wake,
    /// There will be no room: its waiting faults fail.
    pub hopeless: AtomicBool,
}

impl HandlerSignal {
    fn new() -> io::Result<Self> {
        Ok(Self { wake: Wake::new()?, hopeless: AtomicBool::new(false) })
    }
}

/// Holds the state of one arena, shared by its fault handlers, the policy thread and its owner.
pub struct Arena {
    /// Its number.
    pub id: u32,
    /// State of each page.
    pub pages: Pages,
    /// The account that pays for its pages.
    pub account: Arc<Account>,
    /// Where its pages come from.
    pub backing: Backing,
    /// The pager's swap.
    pub swap: Arc<Swap>,
    /// Where resident pages lie.
    pub memory: Arc<dyn Frames>,
    /// Where a heap's pages wait before they are given back.
    pub staging: Option<Arc<Staging>>,
    /// Its faults.
    pub uffd: Uffd,
    /// Where the program sees it.
    pub view: View,
    /// One for each of its handlers.
    pub bells: Vec<HandlerSignal>,
    /// Wakes the policy.
    pub policy: Arc<Wake>,
    /// A fault waits for room.
    pub starved: AtomicBool,
    /// The handlers end.
    pub closed: AtomicBool,
    /// Counts of faults.
    pub counters: FaultCounters,
    /// Its last misses of swap.
    pub ahead: Mutex<Ahead>,
    /// The engine that serves its faults.
    pub engine: Box<dyn Engine>,
    access: AtomicU8,
    /// Page tables that were ever filled.
    tables: Table<AtomicU8>,
    /// The first of them are ready from the start.
    nr_ready: usize,
    /// Held by the thread that makes a chunk ready.
    readying: Mutex<()>,
    /// When each page was evicted (`distance`); 0: it was not, or came back.
    evicted: Table<AtomicU32>,
    /// Sticky I/O error, errno.
    error: AtomicU32,
    inbox: Mutex<Vec<(Event, u32)>>,
}

impl Arena {
    /// Creates an arena with nothing resident.
    pub fn new(
        id: u32,
        wanted: Wanted,
        account: Arc<Account>,
        swap: Arc<Swap>,
        policy: Arc<Wake>,
    ) -> io::Result<Self> {
        let Wanted { nr_pages, nr_held, backing, over, faults, kept_bits } = wanted;
        let len = nr_pages as usize * PAGE;
        let nr_ready = (nr_held as usize).div_ceil(PER_TABLE);
        let held = len.min(nr_ready * TABLE_SPAN);
        let engine = engine::of(&backing, faults, kept_bits);
        let uffd = engine.open()?;
        let Ground { memory, staging, view } = match backing {
            Backing::Heap(_) => Ground::private(len)?,
            _ => Ground::shared(len, held, over, &uffd)?,
        };
        let pages = Pages::new(nr_pages, !matches!(backing, Backing::Store(_)))?;
        let bells =
            (0..engine.nr_handlers()).map(|_| HandlerSignal::new()).collect::<io::Result<_>>()?;
        Ok(Self {
            id,
            pages,
            account,
            backing,
            swap,
            memory,
            staging,
            view,
            uffd,
            bells,
            policy,
            starved: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            counters: FaultCounters::default(),
            access: AtomicU8::new(0),
            tables: Table::new(len.div_ceil(TABLE_SPAN))?,
            nr_ready,
            readying: Mutex::default(),
            evicted: Table::new(nr_pages as usize)?,
            error: AtomicU32::new(0),
            inbox: Mutex::new(Vec::with_capacity(INBOX)),
            ahead: Mutex::default(),
            engine,
        })
    }

    /// Swap backs it, as soon as it is stored to.
    pub fn is_anon(&self) -> bool {
        !matches!(self.backing, Backing::Store(_))
    }

    /// Pages are a store's until they are stored to.
    pub fn is_copy(&self) -> bool {
        matches!(self.backing, Backing::Copy(_))
    }

    /// Returns the store behind the arena.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        match &self.backing {
            Backing::Store(store) | Backing::Copy(store) => Some(store),
            Backing::Anon | Backing::Heap(_) => None,
        }
    }

    /// Where a page comes from that is absent: its store, unless it was stored to and swapped out.
    pub fn source(&self, page: u32) -> Option<&Arc<dyn Store>> {
        self.store().filter(|_| !self.is_copy() || self.pages.slot(page) == 0)
    }

    /// The page was stored to: its content is no store's.
    pub fn is_own(&self, page: u32) -> bool {
        self.is_anon() && (!self.is_copy() || self.is_changed(page))
    }

    /// As [`Self::is_own`], for a copy. Read the slot first: the thread that brings a page in frees
    /// it last.
    fn is_changed(&self, page: u32) -> bool {
        self.pages.slot(page) != 0 || self.pages.presence(page) == Presence::Dirty
    }

    /// Tells whether it is the program's own private memory.
    pub fn is_heap(&self) -> bool {
        self.staging.is_some()
    }

    /// How it is known which of its pages were used.
    pub fn bits(&self) -> Bits {
        match self.is_heap() {
            false => Bits::Entries,
            true if self.uffd.keeps_accessed() => Bits::Kept,
            true => Bits::Rescues,
        }
    }

    /// The state of a page once it was brought for a store or a load. Where accessed bits are kept
    /// nothing would tell of its first store.
    pub fn brought(&self, store: bool) -> Presence {
        Presence::after(store || self.uffd.keeps_accessed())
    }

    /// A staged page whose content is nowhere else.
    pub fn is_unsaved(&self, page: u32, presence: Presence) -> bool {
        presence == Presence::Staged && self.pages.slot(page) == 0
    }

    /// Notes when a page was evicted, 0 that it is no longer, and tells what was noted before.
    pub fn set_evicted(&self, page: u32, number: u32) -> u32 {
        self.evicted[page as usize].swap(number, Ordering::AcqRel)
    }

    /// It was evicted although it belongs to the working set.
    pub fn is_missed(&self, page: u32) -> bool {
        let number = self.evicted[page as usize].load(Ordering::Acquire);
        number != 0 && number >= self.account.recent.load(Ordering::Acquire)
    }

    /// Where a page lies in memory and in the store, bytes.
    pub fn offset(&self, page: u32) -> u64 {
        u64::from(page) * PAGE as u64
    }

    /// Returns a run of pages as offsets.
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
        let mut inbox = idle::lock(&self.inbox);
        inbox.push((event, page));
        if inbox.len() % INBOX == 0 {
            self.policy.ring();
        }
    }

    /// Posts as [`Self::post`] does, without allocating. False: there is no room.
    pub fn post_in_place(&self, event: Event, page: u32) -> bool {
        let mut inbox = idle::lock(&self.inbox);
        let fits = inbox.len() < inbox.capacity();
        if fits {
            inbox.push((event, page));
        }
        if !fits || inbox.len() % INBOX == 0 {
            self.policy.ring();
        }
        fits
    }

    /// Has the policy reclaim before the room is gone.
    pub fn wake_policy_if_low(&self) {
        for account in self.account.ancestry() {
            let low = account.usage() > account.background_from();
            if low && !account.wanted.swap(true, Ordering::AcqRel) {
                self.policy.ring();
            }
        }
    }

    /// Tells how to serve a page that is found so. `None`: it came meanwhile, for another thread,
    /// or for the same one, which the kernel woke early and which faulted again.
    pub fn kind_of(&self, page: u32, presence: Presence, write: bool) -> Option<Kind> {
        match presence {
            Presence::Staged => Some(Kind::Limbo),
            Presence::Absent if self.source(page).is_some() => Some(Kind::Major),
            Presence::Absent if self.pages.slot(page) == 0 => Some(Kind::Minor),
            // A page in the swap file is read, and noted when the read ends.
            Presence::Absent => Some(Kind::Zswap),
            Presence::Clean if write => Some(Kind::Protect),
            _ => None,
        }
    }

    /// A page that is missing is read with its neighbours: that is wanted, and there is room.
    pub fn has_neighbours_read(&self) -> bool {
        match self.access() {
            Access::Random => false,
            Access::Normal => self.account.has_plenty(),
            Access::Sequential => true,
        }
    }

    /// Takes what was posted, leaving the empty `into` to be filled next.
    pub fn take_posted(&self, into: &mut Vec<(Event, u32)>) {
        std::mem::swap(into, &mut *idle::lock(&self.inbox));
    }

    /// Has all handlers look again at faults that wait.
    pub fn ring_handlers(&self) {
        self.bells.iter().for_each(|bell| bell.wake.ring());
    }

    /// Frees a swap slot and what was charged for it.
    pub fn free_slot(&self, slot: Slot) {
        if slot != 0 {
            self.give_up_slot(slot);
        }
    }

    /// Gives one share of a slot up. A child of a fork may have another.
    pub fn give_up_slot(&self, slot: Slot) {
        if let Some(bytes) = self.swap.free(slot) {
            // The rest of its chunk is paid for at once, before a fault takes the room.
            if let Some(root) = self.account.ancestry().last() {
                self.swap.settle_slack(root);
            }
            self.account.uncharge(bytes);
            self.account.uncharge_swap();
        }
    }

    /// Notes an I/O error, which the next flush reports.
    pub fn note_error(&self, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        self.error.store(errno as u32, Ordering::Release);
    }

    /// Takes the error noted since the last call.
    pub fn take_error(&self) -> Option<io::Error> {
        match self.error.swap(0, Ordering::AcqRel) {
            0 => None,
            errno => Some(io::Error::from_raw_os_error(errno as i32)),
        }
    }
}
