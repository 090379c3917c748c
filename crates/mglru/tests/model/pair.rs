//! The core on the toy machine and the naive model side by side, fed from one seed.

mod compare;

use std::collections::BTreeMap;

use mglru::folio::Bit;
use mglru::{Config, Entry, FolioId, FolioKind, Gfp, MemcgId, MmId, Reclaim, Shadow, Zone};

use crate::naive::{Key, Mm, Naive, Page, Pte};
use crate::toy::{NODE, World};

/// One thing that happens to both.
#[derive(Clone, Copy, Debug)]
pub enum Input {
    New { kind: FolioKind, order: u8, zone: u8, entry: Entry, place: Option<(usize, u64)> },
    Refault { nth: usize, order: u8, fault: bool },
    Accessed(usize),
    Touch(usize, bool),
    Dirty(usize),
    StartWriteback(usize),
    EndWriteback(usize),
    Lock(usize),
    Pin(usize),
    Mlock(usize),
    Deactivate(usize),
    LazyFree(usize),
    Drop(usize),
    Split(usize),
    Swappiness(u8),
    Swap { left: u64, fast: bool },
    Low(u64),
    Memcg { pages: u64, io: bool },
    Direct { zone: u8, io: bool },
    Proactive(u64),
    Machine(u64),
}

/// Both of them.
pub struct Pair {
    pub world: World,
    pub naive: Naive,
    group: MemcgId,
    mms: Vec<MmId>,
    ids: BTreeMap<Key, FolioId>,
    shadows: Vec<(FolioKind, Shadow, crate::naive::Shadow)>,
    kinds: BTreeMap<Key, FolioKind>,
    rng: u64,
}

impl Pair {
    pub fn new(config: Config, seed: u64) -> Self {
        let mut world = World::new(config.clone());
        world.checks_steps = false;
        let group = world.group(MemcgId::ROOT);
        let mms: Vec<MmId> = (0..2).map(|_| world.mm(group)).collect();
        let mut naive = Naive::new(config);
        naive.mms = vec![Mm { ran: true, young_tables: Default::default() }; mms.len()];
        let (ids, kinds, shadows) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let rng = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        (world.toy.random, naive.bins.random) = (rng, rng);
        Self { world, naive, group, mms, ids, shadows, kinds, rng }
    }

    fn draw(&mut self, n: u64) -> u64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        (self.rng >> 11) % n
    }

    /// The next input of this seed: mostly arrivals and accesses, now and then reclaim.
    pub fn next_input(&mut self) -> Input {
        let nth = self.draw(1 << 30) as usize;
        match self.draw(100) {
            0..32 => self.next_arrival(),
            32..38 => {
                let order = [0, 0, 0, 2, 4][self.draw(5) as usize];
                Input::Refault { nth, order, fault: self.draw(2) == 0 }
            }
            38..52 => Input::Accessed(nth),
            52..64 => Input::Touch(nth, self.draw(4) == 0),
            64..68 => Input::Dirty(nth),
            68..71 => Input::StartWriteback(nth),
            71..76 => Input::EndWriteback(nth),
            76..78 => Input::Lock(nth),
            78 => Input::Pin(nth),
            79 => Input::Mlock(nth),
            80..82 => Input::Deactivate(nth),
            82 => Input::LazyFree(nth),
            83 if nth % 2 == 0 => Input::Drop(nth),
            83 => Input::Split(nth),
            84 => {
                let choice = self.draw(6) as usize;
                Input::Swappiness([60, 0, 1, 100, 200, 60][choice])
            }
            85 => {
                let left = [1 << 20, 1 << 20, 30, 0, 100][self.draw(5) as usize];
                Input::Swap { left, fast: self.draw(2) == 0 }
            }
            86 => Input::Low([0, 40, 200][self.draw(3) as usize]),
            87..94 => Input::Memcg { pages: 1 + self.draw(80), io: self.draw(5) > 0 },
            94..97 => Input::Direct { zone: 2 + self.draw(2) as u8, io: self.draw(5) > 0 },
            97 => Input::Machine(1 + self.draw(400)),
            _ => Input::Proactive(1 + self.draw(200)),
        }
    }

    fn next_arrival(&mut self) -> Input {
        let kind = match self.draw(10) {
            0..5 => FolioKind::File,
            5..9 => FolioKind::Anon,
            _ => FolioKind::Shmem,
        };
        let order = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 3, 5, 6, 9][self.draw(16) as usize];
        let zone = [2, 2, 2, 2, 0, 1, 3][self.draw(7) as usize];
        let first = match kind {
            FolioKind::Anon => 0,
            FolioKind::Shmem => 64 * 512,
            FolioKind::File => 128 * 512,
        };
        let page = first + self.draw(3) * 512 + self.draw(200);
        let faulted = kind != FolioKind::File || self.draw(2) == 0;
        let place = faulted.then(|| (self.draw(2) as usize, page));
        let entry = match (faulted, self.draw(4)) {
            (true, 0) => Entry::Fault { recency: false },
            (true, _) => Entry::Fault { recency: true },
            (false, 0) => Entry::Referenced,
            (false, _) => Entry::Plain,
        };
        Input::New { kind, order, zone, entry, place }
    }

    /// The nth live folio that fits.
    fn pick(&self, nth: usize, fits: impl Fn(&Page) -> bool) -> Option<(Key, FolioId)> {
        let keys: Vec<Key> =
            self.naive.pages.iter().filter(|(_, p)| fits(p)).map(|(&k, _)| k).collect();
        let key = *keys.get(nth.checked_rem(keys.len())?)?;
        Some((key, self.ids[&key]))
    }

    /// Lets it happen to both.
    pub fn apply(&mut self, input: Input) {
        match input {
            Input::New { kind, order, zone, entry, place } => {
                self.arrive(kind, order, zone, entry, place, None);
            }
            Input::Refault { nth, order, fault } => self.refault(nth, order, fault),
            Input::Swappiness(s) => {
                self.world.toy.groups[1].swappiness = s;
                self.naive.swappiness = s;
            }
            Input::Swap { left, fast } => {
                self.world.toy.groups[1].swap_left = left;
                self.naive.swap_left = left;
                self.world.toy.swap_is_fast = fast;
            }
            Input::Low(low) => {
                self.world.toy.groups[1].low = low;
                self.naive.low = low;
            }
            Input::Memcg { .. } | Input::Direct { .. } => self.reclaim(input),
            Input::Proactive(_) | Input::Machine(_) => self.reclaim(input),
            _ => self.happen(input),
        }
        self.world.lru.check();
        self.world.toy.now += 1_000_000;
    }

    fn arrive(
        &mut self,
        kind: FolioKind,
        order: u8,
        zone: u8,
        entry: Entry,
        place: Option<(usize, u64)>,
        shadow: Option<(Shadow, crate::naive::Shadow)>,
    ) {
        let taken = |(mm, at): (usize, u64)| self.world.toy.spaces[mm].ptes.contains_key(&at);
        let place = place.filter(|&p| !taken(p));
        let fault = entry == Entry::Fault { recency: true };
        let world = &mut self.world;
        let id = world.unlisted(kind, self.group, Zone(zone), order);
        if let Some((shadow, _)) = shadow {
            world.lru.refault(id, shadow, fault);
        }
        world.lru.add(id, entry);
        let key = world.lru.folios()[id].owner[0];
        if let Some((mm, page)) = place {
            world.map(id, self.mms[mm], page);
            world.lru.mm_ran(self.mms[mm], NODE);
            self.naive.mms[mm].ran = true;
            self.naive.mms[mm].young_tables.insert(page / 512);
        }
        let page = Page {
            kind,
            swapbacked: kind != FolioKind::File,
            n: 1 << order,
            zone: usize::from(zone),
            refs: 0,
            referenced: entry == Entry::Referenced,
            workingset: false,
            active: false,
            dirty: false,
            writeback: false,
            reclaim: false,
            swapcache: false,
            locked: false,
            pinned: false,
            mlocked: false,
            stored: false,
            seq: None,
            pte: place.map(|(mm, page)| Pte { mm, page, young: true, dirty: false }),
        };
        self.naive.add(key, page, fault, shadow.map(|(_, naive)| naive));
        self.ids.insert(key, id);
        self.kinds.insert(key, kind);
    }

    fn refault(&mut self, nth: usize, order: u8, fault: bool) {
        let Some(nth) = nth.checked_rem(self.shadows.len()) else { return };
        let (kind, core, naive) = self.shadows.swap_remove(nth);
        let entry = if fault { Entry::Fault { recency: true } } else { Entry::Plain };
        self.arrive(kind, order, 2, entry, None, Some((core, naive)));
    }

    fn happen(&mut self, input: Input) {
        match input {
            Input::Accessed(nth) => {
                let Some((key, id)) = self.pick(nth, |_| true) else { return };
                self.world.lru.accessed(id);
                self.naive.accessed(key);
            }
            Input::Touch(nth, write) => self.touch(nth, write),
            Input::Dirty(nth) => {
                let file = |p: &Page| p.kind == FolioKind::File;
                let Some((key, id)) = self.pick(nth, file) else { return };
                self.world.lru.set_dirty(id);
                self.naive.pages.get_mut(&key).unwrap().dirty = true;
            }
            Input::StartWriteback(nth) => self.start_writeback(nth),
            Input::EndWriteback(nth) => {
                let Some((key, id)) = self.pick(nth, |p| p.writeback) else { return };
                self.world.end_writeback(id);
                self.naive.end_writeback(key);
            }
            Input::Lock(nth) => {
                let Some((key, id)) = self.pick(nth, |_| true) else { return };
                let page = self.naive.pages.get_mut(&key).unwrap();
                page.locked = !page.locked;
                self.world.lru.folios_mut()[id].flags.put(Bit::LOCKED, page.locked);
            }
            Input::Pin(nth) => {
                let Some((key, id)) = self.pick(nth, |_| true) else { return };
                let page = self.naive.pages.get_mut(&key).unwrap();
                page.pinned = !page.pinned;
                self.world.lru.folios_mut()[id].flags.put(Bit::PINNED, page.pinned);
            }
            Input::Mlock(nth) => {
                let Some((key, id)) = self.pick(nth, |_| true) else { return };
                let locked = !self.naive.pages[&key].mlocked;
                self.world.lru.set_mlocked(id, locked);
                self.naive.set_mlocked(key, locked);
            }
            Input::Deactivate(nth) => {
                let Some((key, id)) = self.pick(nth, |_| true) else { return };
                self.world.lru.deactivate(id);
                self.naive.deactivate(key);
            }
            Input::LazyFree(nth) => {
                let idle = |p: &Page| p.kind == FolioKind::Anon && !p.writeback;
                let Some((key, id)) = self.pick(nth, idle) else { return };
                self.world.lru.lazyfree(id);
                self.naive.lazyfree(key);
            }
            Input::Drop(nth) => {
                let Some((key, id)) = self.pick(nth, |_| true) else { return };
                self.world.drop_folio(id);
                self.naive.forget(key);
            }
            Input::Split(nth) => self.split(nth),
            _ => unreachable!("applied elsewhere"),
        }
    }

    /// A use through the page table; a write to a file dirties its folio at once.
    fn touch(&mut self, nth: usize, write: bool) {
        let Some((key, id)) = self.pick(nth, |p| p.pte.is_some()) else { return };
        self.world.touch(id);
        let page = self.naive.pages.get_mut(&key).unwrap();
        let pte = page.pte.as_mut().unwrap();
        pte.young = true;
        self.naive.mms[pte.mm].ran = true;
        self.naive.mms[pte.mm].young_tables.insert(pte.page / 512);
        if write {
            pte.dirty = true;
            let space = &mut self.world.toy.spaces[pte.mm];
            space.ptes.get_mut(&pte.page).expect("mapped").dirty = true;
            if page.kind == FolioKind::File {
                page.dirty = true;
                self.world.lru.set_dirty(id);
            }
        }
    }

    /// A folio is halved; what maps it stays with the lower half.
    fn split(&mut self, nth: usize) {
        let fits = |p: &Page| p.kind == FolioKind::File && p.n > 1 && !p.writeback;
        let Some((key, id)) = self.pick(nth, fits) else { return };
        let upper = self.world.split(id);
        let new = self.world.lru.folios()[upper].owner[0];
        self.naive.split(key, new);
        self.ids.insert(new, upper);
        self.kinds.insert(new, self.kinds[&key]);
    }

    /// The flusher starts to write a file folio: its entry is clean from now on.
    fn start_writeback(&mut self, nth: usize) {
        let fits = |p: &Page| p.kind == FolioKind::File && p.dirty && !p.writeback;
        let Some((key, id)) = self.pick(nth, fits) else { return };
        let page = self.naive.pages.get_mut(&key).unwrap();
        page.dirty = false;
        page.writeback = true;
        if let Some(pte) = &mut page.pte {
            pte.dirty = false;
            let space = &mut self.world.toy.spaces[pte.mm];
            space.ptes.get_mut(&pte.page).expect("mapped").dirty = false;
        }
        self.world.lru.clean(id);
        self.world.lru.start_writeback(id);
    }

    fn reclaim(&mut self, input: Input) {
        use crate::naive::control;
        let fast = self.world.toy.swap_is_fast;
        let gfp = |io| Gfp { io, fs: io };
        let (core, naive) = match input {
            Input::Memcg { pages, io } => {
                let core = self.world.run(Reclaim::memcg(self.group, pages, gfp(io)));
                let sc = control(pages);
                (core, self.naive.reclaim(crate::naive::Control { io, swap_is_fast: fast, ..sc }))
            }
            Input::Direct { zone, io } => {
                let core = self.world.run(Reclaim::direct(NODE, Zone(zone), 0, gfp(io)));
                let sc = crate::naive::Control {
                    io,
                    swap_is_fast: fast,
                    global: true,
                    reclaim_idx: usize::from(zone),
                    ..control(32)
                };
                (core, self.naive.reclaim(sc))
            }
            Input::Proactive(pages) => {
                let core = self.world.run(Reclaim::proactive(self.group, pages, None));
                let sc = crate::naive::Control { swap_is_fast: fast, ..control(pages) };
                (core, self.naive.request(pages, sc))
            }
            Input::Machine(pages) => {
                let core = self.world.run(Reclaim::proactive(MemcgId::ROOT, pages, None));
                let sc =
                    crate::naive::Control { swap_is_fast: fast, global: true, ..control(pages) };
                (core, self.naive.request(pages, sc))
            }
            _ => unreachable!("not a reclaim"),
        };
        assert_eq!(core, naive, "{input:?}: pages reclaimed");
        let drawn = (self.world.toy.random, self.naive.bins.random);
        assert_eq!(drawn.0, drawn.1, "{input:?}: random numbers drawn");
    }
}
