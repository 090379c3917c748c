//! A machine that lives: folios come, are used, dirtied, written and reclaimed, from one seed.

use std::collections::BTreeSet;

use mglru::folio::Bit;
use mglru::{Config, FolioId, FolioKind, Gfp, MemcgId, MmId, Reclaim, Shadow};

use crate::toy::{NODE, NORMAL, World};

/// Holds what can be distinguished from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    dump: String,
    freed: Vec<(u32, Shadow)>,
    counters: Vec<(&'static str, u64)>,
    flusher_wakes: u64,
}

/// The machine and its seed.
pub struct Churn {
    pub world: World,
    pub group: MemcgId,
    /// Only the machine reclaims, never a group.
    pub root_only: bool,
    mm: MmId,
    created: u64,
    dropped: u64,
    freed: BTreeSet<u32>,
    rng: u64,
}

impl Churn {
    pub fn new(config: Config, seed: u64) -> Self {
        let mut world = World::new(config);
        let group = world.group(MemcgId::ROOT);
        let mm = world.mm(group);
        let rng = seed | 1;
        let (created, dropped, freed) = (0, 0, BTreeSet::new());
        Self { world, group, root_only: false, mm, created, dropped, freed, rng }
    }

    fn draw(&mut self, n: u64) -> u64 {
        self.rng = self.rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.rng >> 33) % n
    }

    fn pick(&mut self) -> Option<FolioId> {
        let live: Vec<FolioId> = self.world.lru.folios().iter().map(|(id, _)| id).collect();
        let nth = self.draw(live.len().max(1) as u64) as usize;
        live.get(nth).copied()
    }

    /// Something happens.
    pub fn step(&mut self) {
        match self.draw(20) {
            0..4 => {
                let n = 1 + self.draw(30) as usize;
                self.created += n as u64;
                self.world.files(self.group, n);
            }
            4..7 => self.fault(),
            7..12 => self.use_folio(),
            12 => self.dirty(),
            13 => self.write(),
            14 => self.drop_one(),
            15 => self.world.toy.swap_is_fast = self.draw(2) == 0,
            _ => self.reclaim(),
        }
        self.world.lru.check();
        self.world.toy.now += 1_000_000;
    }

    fn fault(&mut self) {
        let kind = [FolioKind::Anon, FolioKind::File, FolioKind::Shmem][self.draw(3) as usize];
        for _ in 0..1 + self.draw(20) {
            let nth = self.draw(2000);
            let backing = match kind {
                FolioKind::Anon => mglru::host::Backing::Anon,
                FolioKind::File => mglru::host::Backing::File,
                FolioKind::Shmem => mglru::host::Backing::Shmem,
            };
            let page = self.world.start_of(self.mm, backing) + nth;
            if self.world.toy.spaces[self.mm.index()].ptes.contains_key(&page) {
                continue;
            }
            self.created += 1;
            self.world.fault(kind, self.group, self.mm, page);
        }
    }

    fn use_folio(&mut self) {
        for _ in 0..10 {
            let Some(folio) = self.pick() else { return };
            self.world.touch(folio);
            self.world.lru.accessed(folio);
        }
    }

    fn dirty(&mut self) {
        for _ in 0..10 {
            let Some(folio) = self.pick() else { return };
            if !self.world.lru.folios()[folio].flags.has(Bit::ANON) {
                self.world.lru.set_dirty(folio);
            }
        }
    }

    /// What is being written is done; some of what is dirty is being written.
    fn write(&mut self) {
        let ids: Vec<FolioId> = self.world.lru.folios().iter().map(|(id, _)| id).collect();
        for id in ids {
            if self.world.has(id, Bit::WRITEBACK) {
                self.world.end_writeback(id);
            } else if self.world.has(id, Bit::DIRTY) && self.draw(2) == 0 {
                self.world.lru.clean(id);
                self.world.lru.start_writeback(id);
            }
        }
    }

    fn drop_one(&mut self) {
        if let Some(folio) = self.pick() {
            self.world.drop_folio(folio);
            self.dropped += 1;
        }
    }

    fn reclaim(&mut self) {
        let kind = if self.root_only { 0 } else { self.draw(3) };
        let gfp = Gfp { io: self.draw(4) > 0, fs: true };
        let pages = 1 + self.draw(60);
        self.world.run(match kind {
            0 => Reclaim::direct(NODE, NORMAL, 0, gfp),
            1 => Reclaim::memcg(self.group, pages, gfp),
            _ => Reclaim::proactive(self.group, pages, None),
        });
    }

    /// Every folio ever made is alive, was dropped, or was evicted once.
    pub fn check_conservation(&mut self) {
        let new = self.world.toy.freed.iter().skip(self.freed.len());
        for freed in new {
            assert!(self.freed.insert(freed.owner[0]), "key {} freed twice", freed.owner[0]);
        }
        let live = self.world.lru.folios().live() as u64;
        assert_eq!(self.created, live + self.dropped + self.freed.len() as u64);
        self.world.lru.drain_parked();
        let sizes = self.world.lru.sizes(self.group, NODE);
        let listed = sizes.inactive_anon
            + sizes.active_anon
            + sizes.inactive_file
            + sizes.active_file
            + sizes.unevictable;
        assert_eq!(listed, self.world.toy.usage(self.group.index()), "at rest all are listed");
    }

    pub fn trace(&self) -> Trace {
        let freed = self.world.toy.freed.iter();
        Trace {
            dump: self.world.lru.dump(self.group, "/", self.world.toy.now),
            freed: freed.map(|f| (f.owner[0], f.shadow)).collect(),
            counters: self.world.lru.counters().iter().collect(),
            flusher_wakes: self.world.toy.flusher_wakes,
        }
    }
}
