//! Many groups that come, grow, are protected and go while several root reclaimers walk: the memcg
//! LRU stays whole after every step (I21), protection holds (I23), and all walks end.

use mglru::{Config, Counter, FolioId, Gfp, MemcgId, Reclaim, Step};

use crate::toy::{NODE, NORMAL, World, draw};

/// Steps after which a call must have ended.
const PATIENCE: usize = 100_000;

/// The groups, the reclaimers and their seed.
pub struct Crowd {
    world: World,
    online: Vec<MemcgId>,
    offline: Vec<MemcgId>,
    /// Below `memory.min` for ever.
    safe: Vec<MemcgId>,
    calls: Vec<Reclaim>,
    rng: u64,
}

impl Crowd {
    pub fn new(config: Config, seed: u64) -> Self {
        let mut world = World::new(config);
        world.toy.random = seed;
        world.checks_steps = false;
        let calls = Vec::new();
        let [online, offline, safe] = [const { Vec::new() }; 3];
        Self { world, online, offline, safe, calls, rng: seed }
    }

    fn draw(&mut self, n: usize) -> usize {
        draw(&mut self.rng, n as u32) as usize
    }

    /// Something happens to the groups, and some reclaimers go on.
    pub fn step(&mut self) {
        match self.draw(12) {
            0..3 => self.create(),
            3..7 => self.grow(),
            7 => self.protect(),
            8 => self.remove(),
            9 => self.release(),
            _ if self.calls.len() < 4 => {
                self.calls.push(Reclaim::direct(NODE, NORMAL, 0, Gfp::default()));
            }
            _ => {}
        }
        for _ in 0..self.draw(20) {
            self.reclaim_step();
        }
        self.world.lru.check();
    }

    /// Every fourth group may never lose a page.
    fn create(&mut self) {
        let g = self.world.group(MemcgId::ROOT);
        if g.0 % 4 == 0 {
            self.world.toy.groups[g.index()].min = u64::MAX;
            self.safe.push(g);
            self.world.files(g, 100);
        } else {
            self.online.push(g);
        }
    }

    fn any(&mut self) -> Option<MemcgId> {
        let nth = self.draw(self.online.len().max(1));
        self.online.get(nth).copied()
    }

    fn grow(&mut self) {
        let Some(g) = self.any() else { return };
        let pages = [1, 30, 200, 1000][self.draw(4)];
        self.world.files(g, pages);
    }

    fn protect(&mut self) {
        let Some(g) = self.any() else { return };
        let all = self.world.toy.groups[g.index()].charged;
        let group = &mut self.world.toy.groups[g.index()];
        (group.min, group.low) =
            [(0, 0), (0, all), (all, all), (all / 2, all)][self.rng as usize % 4];
    }

    fn remove(&mut self) {
        if self.online.is_empty() {
            return;
        }
        let nth = self.draw(self.online.len());
        let g = self.online.swap_remove(nth);
        self.world.lru.offline_memcg(g);
        self.offline.push(g);
    }

    /// What is left of a removed group is truncated, and with it the group goes.
    fn release(&mut self) {
        let Some(g) = self.offline.pop() else { return };
        let lruvec = self.world.lru.lruvec_id(g, NODE);
        let folios = self.world.lru.folios().iter();
        let left: Vec<FolioId> =
            folios.filter(|(_, f)| f.lruvec == lruvec).map(|(id, _)| id).collect();
        left.into_iter().for_each(|id| self.world.drop_folio(id));
        self.world.lru.release_memcg(g);
    }

    fn reclaim_step(&mut self) {
        if self.calls.is_empty() {
            return;
        }
        let nth = self.draw(self.calls.len());
        let step = self.calls[nth].step(&mut self.world.lru, &mut self.world.toy);
        if matches!(step, Step::Done { .. }) {
            self.calls.swap_remove(nth);
        }
    }

    /// The reclaimers are left alone.
    pub fn finish(&mut self) {
        for _ in 0..PATIENCE {
            if self.calls.is_empty() {
                return self.check_safe();
            }
            self.reclaim_step();
        }
        panic!("{} reclaimers are still walking", self.calls.len());
    }

    fn check_safe(&self) {
        if self.world.lru.config().releases.stale_protection {
            // Root reclaim does not know of protection until kswapd has run (spec §K72.11).
            return;
        }
        for &g in &self.safe {
            let stolen = self.world.lru.memcg_counters(g)[Counter::PgstealFile];
            assert_eq!(stolen, 0, "{g:?}: I23: a group below min lost pages");
        }
    }
}
