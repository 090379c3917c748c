//! Groups and arenas come and go; ranges are dropped and pinned.

use std::collections::BTreeMap;
use std::sync::Arc;

use mglru::host::{Eviction, Outcome};
use mglru::{Bit, Entry, FolioId, MemcgId};

use super::Policy;
use super::entries::Entries;
use super::evict::unlock;
use super::world::Attached;
use crate::account::{Account, PAGE_COST};
use crate::arena::{Arena, Ends, ForHandler, ForOwner, Plan};
use crate::engine::Engine;
use crate::error::PagerError;
use crate::pages::Presence;
use crate::swap::PaidSwap;

/// Pages evicted at once on request.
const PAGE_OUT: usize = 64;

/// Describes an arena that is to be made.
#[derive(Clone)]
pub struct Wanted {
    /// Holds the arena's plan.
    pub plan: Plan,
    /// Holds the engine that serves its faults.
    pub engine: Arc<dyn Engine>,
    /// Counts the handlers that it needs.
    pub nr_handlers: usize,
    /// Counts the bytes that these take from the start.
    pub buffers: u64,
}

/// Holds an arena that the policy knows, for the threads that serve its faults.
pub struct Served {
    /// Holds the end that belongs to the arena's owner.
    pub owner: ForOwner,
    /// Holds the ends of its handlers.
    pub handlers: Vec<ForHandler>,
}

fn check_there(account: &Account) -> Result<(), PagerError> {
    let gone = || PagerError::NoGroup(account.path.clone());
    if account.is_removed() { Err(gone()) } else { Ok(()) }
}

impl Policy {
    /// A group below `parent`.
    ///
    /// # Errors
    /// The parent was removed.
    pub(crate) fn add_group(
        &mut self,
        parent: &Arc<Account>,
        path: String,
    ) -> Result<Arc<Account>, PagerError> {
        check_there(parent)?;
        let now = self.world.clock.now();
        let memcg = self.lru.add_memcg(parent.memcg, now);
        let account = Arc::new(Account::new(path, memcg, Some(parent.clone())));
        self.world.accounts.push(account.clone());
        Ok(account)
    }

    /// The group of a path.
    pub(crate) fn group(&self, path: &str) -> Option<Arc<Account>> {
        self.groups().find(|group| group.path == path).cloned()
    }

    /// The groups directly below one.
    pub(crate) fn children(&self, memcg: MemcgId) -> Vec<Arc<Account>> {
        let above = |group: &&Arc<Account>| group.parent().is_some_and(|up| up.memcg == memcg);
        self.groups().filter(above).cloned().collect()
    }

    fn groups(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.world.accounts.iter().filter(|group| !group.is_removed())
    }

    /// Takes a group away that nothing is left of.
    ///
    /// # Errors
    /// It is the root, or has groups or mappings.
    pub(crate) fn remove_group(&mut self, memcg: MemcgId) -> Result<(), PagerError> {
        self.learn();
        let account = self.account(memcg).clone();
        let mapped = self.world.live().any(|a| Arc::ptr_eq(a.arena.account(), &account));
        let busy = mapped || account.parent().is_none() || !self.children(memcg).is_empty();
        if busy || account.is_removed() {
            return Err(PagerError::Busy(account.path.clone()));
        }
        account.remove();
        self.lru.offline_memcg(memcg);
        self.lru.release_memcg(memcg);
        Ok(())
    }

    /// A new arena; the caller starts its handler. (A thread is not started from here: under
    /// `mglru exec` the C library would allocate for it in memory that this thread reclaims.)
    ///
    /// # Errors
    /// The group has no room for its tables, or the kernel refuses.
    pub(crate) fn attach(&mut self, wanted: Wanted, memcg: MemcgId) -> Result<Served, PagerError> {
        let Wanted { plan, engine, nr_handlers, buffers } = wanted;
        let nr_pages = plan.nr_pages;
        let account = self.account(memcg).clone();
        check_there(&account)?;
        let id = self.world.arenas.len() as u32;
        let swap = PaidSwap::new(self.world.swap.clone(), account.clone());
        let opened = (engine.open()?, nr_handlers);
        let Ends { policy, handlers, owner } =
            Arena::create(id, plan, opened, swap, self.shared.wake.clone())?;
        let overhead = policy.table_bytes() + buffers;
        account.try_charge(overhead).map_err(|full| PagerError::NoRoom(full.path.clone()))?;
        let entries = Entries::new(nr_pages).inspect_err(|_| account.uncharge(overhead))?;
        let mm = self.lru.add_mm(memcg);
        debug_assert_eq!(mm.index(), self.world.mms.len());
        self.world.mms.push(id);
        let (arena, pins) = (policy, BTreeMap::new());
        self.world.arenas.push(Some(Attached { arena, entries, mm, pins, overhead }));
        Ok(Served { owner, handlers })
    }

    /// Takes an arena away, whose handler has ended. What was dirty and not flushed is lost.
    pub(crate) fn detach(&mut self, id: u32) {
        self.wait_for_writes(id);
        let arena = self.world.attached(id).arena.clone();
        self.learn();
        arena.filled_pages(0..arena.pages().len()).for_each(|page| self.forget(&arena, page));
        let attached = self.world.arenas[id as usize].take().expect("it is attached");
        self.lru.remove_mm(attached.mm);
        arena.account().uncharge(attached.overhead);
        attached.arena.uncharge_tables();
        self.world.met_dirty.retain(|&(met, _)| met != id);
        self.flushes.retain(|flush| !flush.is_of(id));
    }

    pub(super) fn wait_for_writes(&mut self, id: u32) {
        while self.world.writer.is_writing(id, u64::MAX) {
            self.world.writer.wait();
            self.reap_writes();
        }
    }

    /// Drops the folio, the charge and the slot of a page nobody can touch any more.
    fn forget(&mut self, arena: &Arena, page: u32) {
        self.drop_folio(arena.id(), page);
        if arena.pages().presence(page).is_resident() {
            arena.account().uncharge(PAGE_COST);
        }
        if arena.pages().slot(page) != 0 {
            arena.free_slot(arena.pages().set_slot(page, 0));
        }
    }

    pub(super) fn drop_folio(&mut self, id: u32, page: u32) {
        if let Some(folio) = self.world.attached(id).entries.folio(page) {
            self.lru.remove(folio);
            self.lru.free_folio(folio);
        }
        self.world.attached_mut(id).entries.clear(page);
        self.world.note_back(id, page, false);
    }

    /// Drops the content of a range: it reads as what its store holds, or as zeros.
    ///
    /// # Errors
    /// A page could not be given back.
    pub(crate) fn discard(&mut self, id: u32, first: u32, nr_pages: u32) -> Result<(), PagerError> {
        self.wait_for_writes(id);
        let arena = self.world.attached(id).arena.clone();
        for page in arena.filled_pages(first..first.saturating_add(nr_pages)) {
            let presence = lock(&arena, page);
            self.discard_locked(&arena, page, presence)?;
        }
        Ok(())
    }

    pub(super) fn discard_locked(
        &mut self,
        arena: &Arena,
        page: u32,
        presence: Presence,
    ) -> Result<(), PagerError> {
        let view = arena.view().pages(page, 1);
        if presence == Presence::Poisoned {
            arena.view().zap(page)?;
        }
        if !matches!(presence, Presence::Absent | Presence::Gone) {
            arena.uffd().protect(view)?;
            arena.memory().release(arena.span(page, 1))?;
        }
        self.forget(arena, page);
        let after = if presence == Presence::Gone { presence } else { Presence::Absent };
        unlock(arena, page, after);
        Ok(())
    }

    /// The program gives a range of addresses up, which may become something else: they are never
    /// looked at or touched again. What is dirty and not flushed is lost.
    ///
    /// # Errors
    /// A page could not be given back.
    pub(crate) fn cut(&mut self, id: u32, first: u32, nr_pages: u32) -> Result<(), PagerError> {
        self.wait_for_writes(id);
        let arena = self.world.attached(id).arena.clone();
        // The tables that stay in part, while all of them is the arena's to protect.
        if let Some(last) = (first..first + nr_pages).last() {
            arena.note_filled(first)?;
            arena.note_filled(last)?;
        }
        arena.view().cut(arena.offset(first) as usize..arena.offset(first + nr_pages) as usize);
        for page in first..first + nr_pages {
            let presence = lock(&arena, page);
            if presence.is_resident() {
                arena.memory().release(arena.span(page, 1))?;
            }
            self.forget(&arena, page);
            unlock(&arena, page, Presence::Gone);
        }
        Ok(())
    }

    /// Pins a range; its resident pages become unevictable. Pins count.
    pub(crate) fn pin(&mut self, id: u32, first: u32, nr_pages: u32) {
        for page in first..first + nr_pages {
            *self.world.attached_mut(id).pins.entry(page).or_default() += 1;
            self.set_pinned(id, page, true);
        }
    }

    /// Takes one pin of each page back.
    pub(crate) fn unpin(&mut self, id: u32, first: u32, nr_pages: u32) {
        for page in first..first + nr_pages {
            let pins = &mut self.world.attached_mut(id).pins;
            let Some(left) = pins.get_mut(&page) else { continue };
            *left -= 1;
            if *left == 0 {
                pins.remove(&page);
                self.set_pinned(id, page, false);
            }
        }
    }

    fn set_pinned(&mut self, id: u32, page: u32, pinned: bool) {
        let attached = self.world.attached(id);
        let changed = attached.arena.pages().set_pinned(page, pinned);
        if let (true, Some(folio)) = (changed, attached.entries.folio(page)) {
            self.lru.set_mlocked(folio, pinned);
        }
    }

    /// Says that a range will not be used soon.
    pub(crate) fn deactivate(&mut self, id: u32, first: u32, nr_pages: u32) {
        for folio in self.folios_of(id, first, nr_pages) {
            self.lru.deactivate(folio);
        }
    }

    /// Evicts what can be evicted of a range. Dirty file pages stay: they are flushed first.
    pub(crate) fn page_out(&mut self, id: u32, first: u32, nr_pages: u32) {
        let folios = self.folios_of(id, first, nr_pages);
        for folios in folios.chunks(PAGE_OUT) {
            let mut batch: Vec<Eviction> = folios.iter().filter_map(|&f| self.isolate(f)).collect();
            self.world.evict_batch(self.lru.folios_mut(), &mut batch);
            batch.into_iter().for_each(|eviction| self.paged_out(eviction));
        }
        self.world.writer.submit();
    }

    fn folios_of(&mut self, id: u32, first: u32, nr_pages: u32) -> Vec<FolioId> {
        self.learn();
        let Attached { arena, entries, .. } = self.world.attached(id);
        let pages = arena.filled_pages(first..first + nr_pages);
        pages.filter_map(|page| entries.folio(page)).collect()
    }

    fn isolate(&mut self, folio: FolioId) -> Option<Eviction> {
        let flags = self.lru.folios()[folio].flags;
        if flags.has_any([Bit::UNEVICTABLE, Bit::WRITEBACK]) {
            return None;
        }
        self.lru.remove(folio);
        Some(Eviction { folio, may_write: true, outcome: Outcome::Pending })
    }

    /// Ends an eviction as the core ends its own, but leaves no shadow: this one was asked for and
    /// is never too early.
    fn paged_out(&mut self, eviction: Eviction) {
        let folio = eviction.folio;
        let [id, page] = self.lru.folios()[folio].owner;
        match eviction.outcome {
            Outcome::Ready { .. } => {
                self.lru.free_folio(folio);
                self.world.attached_mut(id).entries.clear(page);
            }
            Outcome::WriteQueued => {
                self.lru.clean(folio);
                self.lru.start_writeback(folio);
                self.lru.folios_mut()[folio].flags.set(Bit::RECLAIM);
                self.lru.add(folio, Entry::Plain);
            }
            _ => self.lru.add(folio, Entry::Plain),
        }
    }
}

/// Waits for a page: its fault is being served, at most one read long.
pub(super) fn lock(arena: &Arena, page: u32) -> Presence {
    loop {
        match arena.pages().try_lock(page) {
            Some(presence) => return presence,
            None => std::thread::yield_now(),
        }
    }
}
