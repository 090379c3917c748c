//! A stretch of managed memory: its pages, what backs them, and what its threads share.

mod ground;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ground::Ground;

use crate::account::Account;
use crate::children::Children;
use crate::engine::{self, Engine, FaultEngine};
use crate::faults::Kind;
use crate::frames::Frames;
use crate::handler::Ahead;
use crate::pages::{Pages, Presence, Slot};
use crate::store::Store;
use crate::swap::Swap;
use crate::sys::PAGE;
use crate::sys::courtesy;
use crate::sys::heap::{Staging, TABLE_SPAN};
use crate::sys::memory::View;
use crate::sys::table::Table;
use crate::sys::uffd::{Span, Uffd};
use crate::sys::wake::Wake;

/// Events after which the policy is woken to take them.
pub const INBOX: usize = 4096;
/// What they take until then.
pub const INBOX_BYTES: u64 = (INBOX * size_of::<(Event, u32)>()) as u64;

/// What backs the pages of an arena.
#[derive(Clone)]
pub enum Backing {
    /// Zeros at first, then swap.
    Anon,
    /// As [`Self::Anon`], in private memory: what the program itself maps, drops and forks.
    Heap(Arc<Children>),
    /// A file or whatever the caller made.
    Store(Arc<dyn Store>),
    /// What a store holds at first; pages that are stored to are the arena's own from then on, and
    /// go to swap.
    Copy(Arc<dyn Store>),
}

/// An arena that is asked for.
#[derive(Clone)]
pub struct Wanted {
    /// Its length.
    pub nr_pages: u32,
    /// Pages that there may be content of from the start. Tables of those beyond are paid for, and
    /// their entries protected, when the first of them is filled.
    pub nr_held: u32,
    /// What backs its pages.
    pub backing: Backing,
    /// Where it is to be, in place of what is there, which its owner gave up.
    pub over: Option<usize>,
    /// Who serves its faults.
    pub faults: FaultEngine,
    /// The kernel's accessed bits are used, if it keeps any.
    pub kept_bits: bool,
}

/// How it is known which pages of an arena were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// An entry that is present was used since it was last zapped: the kernel itself maps again
    /// what is used.
    Entries,
    /// The kernel keeps accessed bits (`UFFDIO_RWPROTECT`).
    Kept,
    /// Of what was staged alone: that it was rescued.
    Rescues,
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
    /// It became resident because it was touched.
    Filled,
    /// It was read along with one that was touched.
    Joined,
    /// It became newer than its store.
    Dirtied,
    /// The program gave it up.
    Dropped,
    /// The caller says that it was used.
    Used,
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
    /// Pages used again while they were staged.
    pub rescued: AtomicU64,
}

/// Pages under one page table.
const PER_TABLE: usize = TABLE_SPAN / PAGE;

/// What one handler is told.
pub struct Bell {
    /// Wakes it: faults that wait should be tried again.
    pub wake: Wake,
    /// There will be no room: its waiting faults fail.
    pub hopeless: AtomicBool,
}

impl Bell {
    fn new() -> io::Result<Self> {
        Ok(Self { wake: Wake::new()?, hopeless: AtomicBool::new(false) })
    }
}

/// One arena, shared by its fault handlers, the policy thread and its owner.
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
    pub memory: Arc<dyn Frames>,
    /// Of a heap: where its pages are before they are given back.
    pub staging: Option<Arc<Staging>>,
    /// Its faults.
    pub uffd: Uffd,
    /// Where the program sees it.
    pub view: View,
    /// One for each of its handlers.
    pub bells: Vec<Bell>,
    /// Wakes the policy.
    pub policy: Arc<Wake>,
    /// A fault waits for room.
    pub starved: AtomicBool,
    /// The handlers end.
    pub closed: AtomicBool,
    /// What faults did.
    pub counters: FaultCounters,
    /// Its last misses of swap.
    pub ahead: Mutex<Ahead>,
    /// Who serves its faults.
    pub engine: Box<dyn Engine>,
    access: AtomicU8,
    /// Page tables that were ever filled.
    tables: Table<AtomicU8>,
    /// The first of them are ready from the start.
    nr_ready: usize,
    /// Who has this makes one ready.
    readying: Mutex<()>,
    /// When each page was evicted (`distance`); 0: it was not, or came back.
    evicted: Table<AtomicU32>,
    /// Sticky I/O error, errno.
    error: AtomicU32,
    inbox: Mutex<Vec<(Event, u32)>>,
}

impl Arena {
    /// An arena, nothing resident.
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
        let bells = (0..engine.nr_handlers()).map(|_| Bell::new()).collect::<io::Result<_>>()?;
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

    /// The store behind it.
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

    /// As [`Self::is_own`], of a copy. The slot is asked for first: who brings a page in frees it
    /// last.
    fn is_changed(&self, page: u32) -> bool {
        self.pages.slot(page) != 0 || self.pages.presence(page) == Presence::Dirty
    }

    /// The program's own private memory.
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

    /// What a page is once it was brought for a store or a load. Where accessed bits are kept
    /// nothing would tell of its first store.
    pub fn brought(&self, store: bool) -> Presence {
        Presence::after(store || self.uffd.keeps_accessed())
    }

    /// A staged page whose content is nowhere else.
    pub fn is_unsaved(&self, page: u32, presence: Presence) -> bool {
        presence == Presence::Staged && self.pages.slot(page) == 0
    }

    /// Bytes of tables it takes from the start.
    pub fn table_bytes(&self) -> u64 {
        let pages = (self.nr_ready * PER_TABLE).min(self.pages.len() as usize);
        self.page_bytes() * pages as u64
    }

    /// Bytes of tables for a page: its state, when it was evicted, the policy's entry.
    fn page_bytes(&self) -> u64 {
        let state = self.pages.table_bytes() / u64::from(self.pages.len());
        state + (size_of::<AtomicU32>() + size_of::<u64>()) as u64
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

    /// A page is about to be filled, or to be read for that: the tables that know it are paid for.
    ///
    /// # Errors
    /// The entries of its page table cannot be protected.
    pub fn note_filled(&self, page: u32) -> io::Result<()> {
        let table = page as usize / PER_TABLE;
        if self.tables[table].load(Ordering::Acquire) == 0 {
            self.make_ready(table)?;
        }
        Ok(())
    }

    fn make_ready(&self, table: usize) -> io::Result<()> {
        let _one = courtesy::lock(&self.readying);
        if table >= self.nr_ready && self.tables[table].load(Ordering::Acquire) == 0 {
            self.protect_table(table)?;
            self.account.charge_anyway(self.late_bytes());
        }
        self.tables[table].store(1, Ordering::Release);
        Ok(())
    }

    /// As [`Ground::shared`] does for those that are ready from the start. A heap's entries are
    /// none of the pager's before they are filled.
    fn protect_table(&self, table: usize) -> io::Result<()> {
        let first = (table * PER_TABLE) as u32;
        let n = (self.pages.len() - first).min(PER_TABLE as u32);
        if self.is_heap() { Ok(()) } else { self.uffd.protect(self.view.pages(first, n)) }
    }

    /// What is paid for a table that was not ready from the start.
    fn late_bytes(&self) -> u64 {
        self.page_bytes() * PER_TABLE as u64
    }

    /// The arena is gone, with its tables.
    pub fn uncharge_tables(&self) {
        let late = self.filled_tables((self.nr_ready * PER_TABLE) as u32).count() as u64;
        self.account.uncharge(late * self.late_bytes());
    }

    /// Page tables that were ever filled, by the first page of each.
    pub fn filled_tables(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let filled = |table: &usize| self.tables[*table].load(Ordering::Acquire) != 0;
        let tables = (from as usize / PER_TABLE..self.tables.len()).filter(filled);
        tables.map(|table| (table * PER_TABLE) as u32)
    }

    /// Pages of a range that were ever filled, and those beside them.
    pub fn filled_pages(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let end = range.end.min(self.pages.len());
        let tables = self.filled_tables(range.start).take_while(move |&table| table < end);
        tables.flat_map(move |table| {
            table.max(range.start)..end.min(table.saturating_add(PER_TABLE as u32))
        })
    }

    /// The dirty pages of a range, in order, as of now.
    pub fn dirty(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.filled_pages(range).filter(|&page| self.pages.presence(page) == Presence::Dirty)
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
        let mut inbox = courtesy::lock(&self.inbox);
        inbox.push((event, page));
        if inbox.len() % INBOX == 0 {
            self.policy.ring();
        }
    }

    /// As [`Self::post`], without allocating. False: there is no room.
    pub fn post_in_place(&self, event: Event, page: u32) -> bool {
        let mut inbox = courtesy::lock(&self.inbox);
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

    /// What serving a page takes that is found so. `None`: it came meanwhile, for another thread,
    /// or for the same one, which the kernel woke early and which faulted again.
    pub fn kind_of(&self, page: u32, presence: Presence, write: bool) -> Option<Kind> {
        match presence {
            Presence::Staged => Some(Kind::Limbo),
            Presence::Absent if self.source(page).is_some() => Some(Kind::Major),
            Presence::Absent if self.pages.slot(page) == 0 => Some(Kind::Minor),
            // What is in the swap file is read, and noted when the read ends.
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
        std::mem::swap(into, &mut *courtesy::lock(&self.inbox));
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
            // What stays behind of its chunk is paid for at once, before a fault takes the room.
            if let Some(root) = self.account.ancestry().last() {
                self.swap.settle_slack(root);
            }
            self.account.uncharge(bytes);
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
