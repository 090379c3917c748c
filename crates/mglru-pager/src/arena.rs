//! A stretch of managed memory: its pages, what backs them, and what its threads share.
//!
//! Every part has one owner, by its type: [`Fixed`] and [`Ground`] are set when the arena is made
//! and only read; a page's state changes under its lock ([`Pages`]); the others are private types
//! whose writers hold an end of the arena ([`Ends`]), or add to them in one atomic step.

mod advice;
mod counters;
mod ends;
mod evictions;
mod ground;
mod inbox;
mod signals;
mod tables;
mod types;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use advice::{Advised, Failure};
pub use counters::{FaultCounters, FaultStat};
pub use ends::{Ends, ForHandler, ForOwner, ForPolicy};
use evictions::Evictions;
use ground::Ground;
use inbox::Inbox;
pub use inbox::{INBOX, INBOX_BYTES, Posted};
use signals::Signals;
use tables::Tables;
pub use types::{Access, Backing, Bits, Event, Place, Plan};

use crate::account::Account;
use crate::faults::Kind;
use crate::frames::Frames;
use crate::pages::{Pages, Presence, Slot};
use crate::store::Store;
use crate::swap::PaidSwap;
use crate::sys::PAGE;
use crate::sys::heap::Staging;
use crate::sys::memory::View;
use crate::sys::uffd::{Span, Uffd};
use crate::sys::wake::Wake;

/// Holds the state of one arena, shared by its fault handlers, the policy thread and its owner.
pub struct Arena {
    fixed: Fixed,
    ground: Ground,
    /// Wakes the policy.
    policy: Arc<Wake>,
    pages: Pages,
    tables: Tables,
    evictions: Evictions,
    inbox: Inbox,
    signals: Signals,
    counters: FaultCounters,
    advised: Advised,
    failure: Failure,
}

/// Holds the facts of an arena that never change after it is made.
struct Fixed {
    id: u32,
    backing: Backing,
    /// The pager's swap, and the account that pays for the pages.
    swap: PaidSwap,
}

impl Arena {
    /// Creates an arena with nothing resident. Faults arrive at `uffd`, for so many
    /// handlers.
    pub fn create(
        id: u32,
        plan: Plan,
        (uffd, nr_handlers): (Uffd, usize),
        swap: PaidSwap,
        policy: Arc<Wake>,
    ) -> io::Result<Ends> {
        let Plan { nr_pages, nr_held, backing, place } = plan;
        let len = nr_pages as usize * PAGE;
        let tables = Tables::new(len, nr_held)?;
        let held = len.min(tables.ready_bytes());
        let arena = Self {
            ground: Ground::new(&backing, place, len, held, uffd)?,
            pages: Pages::new(nr_pages, !matches!(backing, Backing::Store(_)))?,
            fixed: Fixed { id, backing, swap },
            policy,
            tables,
            evictions: Evictions::new(nr_pages)?,
            inbox: Inbox::new(),
            signals: Signals::new(nr_handlers)?,
            counters: FaultCounters::default(),
            advised: Advised::default(),
            failure: Failure::default(),
        };
        Ok(Ends::of(&Arc::new(arena)))
    }

    /// Returns its number.
    pub fn id(&self) -> u32 {
        self.fixed.id
    }

    /// Returns the state of its pages.
    pub fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Returns the account that pays for its pages.
    pub fn account(&self) -> &Arc<Account> {
        self.fixed.swap.account()
    }

    /// Tells where its pages come from.
    pub fn backing(&self) -> &Backing {
        &self.fixed.backing
    }

    /// Returns the swap that its pages go to.
    pub fn swap(&self) -> &PaidSwap {
        &self.fixed.swap
    }

    /// Returns where resident pages lie.
    pub fn memory(&self) -> &dyn Frames {
        &*self.ground.memory
    }

    /// Returns where a heap's pages wait before they are given back.
    pub fn staging(&self) -> Option<&Staging> {
        self.ground.staging.as_deref()
    }

    /// Returns the source of its faults.
    pub fn uffd(&self) -> &Uffd {
        &self.ground.uffd
    }

    /// Returns where the program sees it.
    pub fn view(&self) -> &View {
        &self.ground.view
    }

    /// Returns the counts of its faults.
    pub fn counters(&self) -> &FaultCounters {
        &self.counters
    }

    /// Counts its handlers.
    pub fn nr_handlers(&self) -> usize {
        self.signals.nr_handlers()
    }

    /// Tells whether a fault waits for room.
    pub fn waits_for_room(&self) -> bool {
        self.signals.waits_for_room()
    }

    /// Tells whether swap backs the arena, as soon as it is stored to.
    pub fn is_anon(&self) -> bool {
        !matches!(self.fixed.backing, Backing::Store(_))
    }

    /// Tells whether pages come from a store until they are stored to.
    pub fn is_copy(&self) -> bool {
        matches!(self.fixed.backing, Backing::Copy(_))
    }

    /// Returns the store behind the arena.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.fixed.backing.store()
    }

    /// Returns the store of an absent page, unless the page was stored to and swapped out.
    pub fn source(&self, page: u32) -> Option<&Arc<dyn Store>> {
        self.store().filter(|_| !self.is_copy() || self.pages.slot(page) == 0)
    }

    /// Tells whether the page was stored to: no store has its content.
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
        self.ground.staging.is_some()
    }

    /// Returns how the policy learns which of its pages were used.
    pub fn bits(&self) -> Bits {
        match self.is_heap() {
            false => Bits::Entries,
            true if self.uffd().keeps_accessed() => Bits::Kept,
            true => Bits::Rescues,
        }
    }

    /// Returns the state of a page that was brought for a store or a load. Where accessed bits are
    /// kept no event reports its first store.
    pub fn brought(&self, store: bool) -> Presence {
        Presence::after(store || self.uffd().keeps_accessed())
    }

    /// Tells whether a page is staged and its content is nowhere else.
    pub fn is_unsaved(&self, page: u32, presence: Presence) -> bool {
        presence == Presence::Staged && self.pages.slot(page) == 0
    }

    /// Tells whether the page was evicted although it belongs to the working set.
    pub fn is_missed(&self, page: u32) -> bool {
        let number = self.evictions.number(page);
        number != 0 && number >= self.account().recent.load(Ordering::Acquire)
    }

    /// Returns the offset of a page in memory and in the store, bytes.
    pub fn offset(&self, page: u32) -> u64 {
        u64::from(page) * PAGE as u64
    }

    /// Returns a run of pages as offsets.
    pub fn span(&self, first: u32, n: u32) -> Span {
        Span { start: self.offset(first), len: self.offset(n) }
    }

    /// Returns how the arena will be used.
    pub fn access(&self) -> Access {
        self.advised.get()
    }

    /// Tells the policy what happened to a page. It learns of it before it next reclaims, or when
    /// much has happened.
    pub fn post(&self, event: Event, page: u32) {
        if self.inbox.push(event, page) {
            self.policy.ring();
        }
    }

    /// Posts as [`Self::post`] does, without allocating. False: there is no room.
    pub fn post_in_place(&self, event: Event, page: u32) -> bool {
        let (fits, wakes) = self.inbox.push_in_place(event, page);
        if wakes {
            self.policy.ring();
        }
        fits
    }

    /// Has the policy reclaim before the room is gone.
    pub fn wake_policy_if_low(&self) {
        for account in self.account().ancestry() {
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

    /// Says whether a missing page is read with its neighbours: that is wanted, and there is room.
    pub fn has_neighbours_read(&self) -> bool {
        match self.access() {
            Access::Random => false,
            Access::Normal => self.account().has_plenty(),
            Access::Sequential => true,
        }
    }

    /// Has all handlers look again at faults that wait.
    pub fn ring_handlers(&self) {
        self.signals.ring_all();
    }

    /// Frees a swap slot and what was charged for it.
    pub fn free_slot(&self, slot: Slot) {
        if slot != 0 {
            self.fixed.swap.give_up(slot);
        }
    }
}
