//! The machine beneath the policy: arenas, their groups, swap and the clock; and the answers to
//! what reclaim asks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mglru::host::{
    Backing, Eviction, Harvest, Host, MemcgView, PmdView, RmapHarvest, SlabWork, TraceEvent, Va,
    Window, ZoneView,
};
use mglru::{FolioId, FolioKind, Folios, LruvecId, MemcgId, MmId, Nanos, NodeId, Shadow, Zone};

use super::ZONE;
use super::distance::AllDistances;
use super::entries::Entries;
use super::evict::Victim;
use super::fresh::Fresh;
use super::taken::Taken;
use super::turn::Turn;
use super::writeback::Writer;
use crate::account::{Account, Happened, NO_LIMIT, PAGE_COST, Setting};
use crate::arena::{Access, ForPolicy};
use crate::events::EventSender;
use crate::swap::{Drain, Swap};
use crate::sys::PAGE;
use crate::sys::clock::Clock;
use crate::sys::direct::Buffer;
use crate::sys::pagemap::Pagemap;

/// Pages under one page table.
pub(super) const TABLE: u32 = 512;

/// An arena as the policy sees it.
pub(super) struct Attached {
    pub(super) arena: ForPolicy,
    pub(super) entries: Entries,
    pub(super) mm: MmId,
    /// How often pages are pinned.
    pub(super) pins: BTreeMap<u32, u32>,
    /// Bytes charged besides its pages.
    pub(super) overhead: u64,
}

impl Attached {
    pub(super) fn kind(&self, page: u32) -> FolioKind {
        if self.arena.is_own(page) { FolioKind::Anon } else { FolioKind::File }
    }
}

/// Everything beneath the policy.
pub(super) struct World {
    pub(super) clock: Clock,
    /// By memcg.
    pub(super) accounts: Vec<Arc<Account>>,
    /// By number; detached ones leave a hole.
    pub(super) arenas: Vec<Option<Attached>>,
    /// Arena of each address space.
    pub(super) mms: Vec<u32>,
    pub(super) swap: Arc<Swap>,
    /// A victim that was used since it was last passed is passed again.
    pub(super) second_chance: bool,
    pub(super) writer: Writer,
    pub(super) pagemap: Pagemap,
    /// Staged pages of heaps, the oldest first: (arena, page).
    pub(super) staged: VecDeque<(u32, u32)>,
    /// Pages whose first use still shows.
    pub(super) fresh: Fresh,
    /// Dirty file pages that reclaim met: (arena, page).
    pub(super) met_dirty: BTreeSet<(u32, u32)>,
    /// Pages not to be written back for now: arena, pages.
    pub(super) held: Vec<(u32, Range<u32>)>,
    pub(super) victims: Vec<Victim>,
    pub(super) distances: AllDistances,
    pub(super) page: Buffer,
    pub(super) scratch: Vec<u8>,
    drain: Option<Drain>,
    /// Where trace events go, if anybody wants them.
    pub(super) events: Option<EventSender>,
    random: u64,
    pub(super) taken: Taken,
    pub(super) turn: Turn,
}

impl World {
    pub(super) fn new(
        root: Arc<Account>,
        swap: Arc<Swap>,
        second_chance: bool,
    ) -> io::Result<Self> {
        Ok(Self {
            clock: Clock::start(),
            writer: Writer::new(root.clone())?,
            accounts: vec![root],
            arenas: Vec::new(),
            mms: Vec::new(),
            swap,
            second_chance,
            pagemap: Pagemap::open()?,
            staged: VecDeque::new(),
            fresh: Fresh::new(),
            met_dirty: BTreeSet::new(),
            held: Vec::new(),
            victims: Vec::new(),
            distances: AllDistances::default(),
            page: Buffer::new(PAGE)?,
            scratch: Vec::with_capacity(2 * PAGE),
            drain: None,
            events: None,
            random: 0,
            taken: Taken::default(),
            turn: Turn::default(),
        })
    }

    pub(super) fn attached(&self, id: u32) -> &Attached {
        self.arenas[id as usize].as_ref().expect("a folio's arena is attached")
    }

    pub(super) fn attached_mut(&mut self, id: u32) -> &mut Attached {
        self.arenas[id as usize].as_mut().expect("a folio's arena is attached")
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &Attached> {
        self.arenas.iter().flatten()
    }

    /// The root pays for what the pool's chunks hold besides pages.
    pub(super) fn settle_slack(&mut self) {
        self.swap.settle_slack(&self.accounts[0]);
    }

    /// Keeps the pool within its share of the budget. True: it had more.
    pub(super) fn drain_pool(&mut self) -> io::Result<bool> {
        self.swap.fit_pool(self.accounts[0].get(Setting::Max));
        if !self.swap.is_over_share() {
            self.drain = None;
            return Ok(false);
        }
        let drain = match &mut self.drain {
            Some(drain) => drain,
            none => none.insert(Drain::new()?),
        };
        let freed = self.swap.drain(drain);
        for &(memcg, bytes) in &freed {
            let account = &self.accounts[memcg.index()];
            account.uncharge(bytes);
            account.note(Happened::Pswpout);
        }
        self.settle_slack();
        Ok(!freed.is_empty())
    }

    /// Numbers the eviction of a page, and says anew what counts as recent.
    fn note_evicted(&mut self, id: u32, page: u32) {
        let arena = &self.arenas[id as usize].as_ref().expect("a folio's arena is attached").arena;
        let (account, distances) = (arena.account(), &mut self.distances);
        let distances = distances.of(account.memcg);
        arena.set_evicted(page, distances.evict());
        if distances.is_new_epoch() {
            let recent = distances.recent(account.usage() / PAGE_COST);
            account.recent.store(recent, Ordering::Release);
        }
        self.turn.note_evicted(account.memcg);
    }

    /// Sends that a use brought a page, if anybody wants that.
    pub(super) fn note_fault(&mut self, id: u32, page: u32, write: bool) {
        if let Some(events) = &mut self.events
            && let Some(attached) = &self.arenas[id as usize]
        {
            events.send_fault(attached.arena.view().pages(page, 1).start, write);
        }
    }

    /// A page is no longer away; `used`: because it was touched.
    pub(super) fn note_back(&mut self, id: u32, page: u32, used: bool) {
        let arena = &self.attached(id).arena;
        let number = arena.set_evicted(page, 0);
        // Most were not away: the account, which every fault writes, is left alone then.
        if number != 0 {
            let memcg = arena.account().memcg;
            self.distances.of(memcg).come_back(number, used);
        }
    }

    pub(super) fn has_stores(&self) -> bool {
        self.live().any(|attached| !attached.arena.is_anon())
    }
}

fn pages(bytes: u64) -> u64 {
    if bytes == NO_LIMIT { NO_LIMIT } else { bytes / PAGE as u64 }
}

impl Host for World {
    fn now(&mut self) -> Nanos {
        self.clock.now()
    }

    fn random_below(&mut self, n: u32) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (((self.random >> 32) * u64::from(n)) >> 32) as u32
    }

    fn memcg(&mut self, memcg: MemcgId) -> MemcgView {
        let account = &self.accounts[memcg.index()];
        MemcgView {
            usage: pages(account.usage()),
            min: pages(account.get(Setting::Min)),
            low: pages(account.get(Setting::Low)),
            max: pages(account.get(Setting::Max)),
            swappiness: account.swappiness(),
            swap_left: pages(account.swap_room()).min(self.swap.free_pages()),
        }
    }

    fn breached_low(&mut self, memcg: MemcgId) {
        self.accounts[memcg.index()].note(Happened::Low);
    }

    /// The budget is the one zone; its watermarks are those of the background reserve.
    fn zone(&mut self, _node: NodeId, zone: Zone) -> ZoneView {
        let root = &self.accounts[0];
        let max = root.get(Setting::Max);
        if zone != ZONE || max == NO_LIMIT {
            return ZoneView::default();
        }
        let until = root.background_until();
        let (from, until) = (root.background_from().min(max), until.min(max));
        ZoneView {
            managed: pages(max),
            free: pages(max.saturating_sub(root.usage())),
            min: 0,
            low: pages(max - from),
            high: pages(max - until),
            reserve: 0,
        }
    }

    fn next_pmd(&mut self, mm: MmId, from: Va) -> Option<PmdView> {
        let id = *self.mms.get(mm.index())?;
        let attached = self.arenas[id as usize].as_ref()?;
        let end = attached.arena.offset(attached.arena.pages().len());
        let table = u64::from(TABLE) * PAGE as u64;
        let from = (from.0 < end).then_some((from.0 / PAGE as u64) as u32)?;
        let at = attached.arena.offset(attached.arena.filled_tables(from).next()?);
        Some(PmdView {
            at: Va(at),
            next: Va(at + table),
            mapping_end: Va(end.next_multiple_of(table)),
            backing: attached.arena.store().map_or(Backing::Anon, |_| Backing::File),
            recency: attached.arena.access() != Access::Sequential,
            special: false,
            young: true,
        })
    }

    fn harvest_pmd(
        &mut self,
        mm: MmId,
        at: Va,
        lruvec: LruvecId,
        folios: &Folios,
        out: &mut Harvest,
    ) {
        self.harvest_table(self.mms[mm.index()], at, lruvec, folios, out);
    }

    fn harvest_rmap(
        &mut self,
        folio: FolioId,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    ) {
        self.harvest_page(folio, window, folios, out);
    }

    fn evict(&mut self, folios: &mut Folios, batch: &mut [Eviction]) {
        self.evict_batch(folios, batch);
    }

    fn free(&mut self, folios: &mut Folios, folio: FolioId, shadow: Shadow) {
        let [id, page] = folios[folio].owner;
        self.attached_mut(id).entries.set_shadow(page, shadow);
        self.note_evicted(id, page);
    }

    /// Pages that reclaim met dirty are written next; there is no flusher to wake.
    fn wake_flusher(&mut self, _node: NodeId) {}

    /// The pager keeps no caches of its own.
    fn shrink_slab(&mut self, _memcg: MemcgId, _node: NodeId, _priority: u8) -> SlabWork {
        SlabWork::default()
    }

    #[inline]
    fn trace(&mut self, event: TraceEvent) {
        if let Some(events) = &mut self.events {
            events.send(&event);
        }
    }
}
