//! An [`Lru`] on a [`Toy`] machine, and the things that happen there: faults, reads, writes,
//! reclaim from start to end.

use mglru::folio::Bit;
use mglru::host::Backing;
use mglru::{
    Config, Counter, Entry, FolioId, FolioKind, Gfp, Lru, MemcgId, MmId, Reclaim, Shadow, Step,
    Throttle, Zone,
};

use super::{Group, Mapping, NODE, NORMAL, Pte, TABLE, Toy};

/// The policy and the machine beneath it.
#[derive(Clone, Debug)]
pub struct World {
    /// The policy.
    pub lru: Lru,
    /// The machine.
    pub toy: Toy,
    /// Lists the throttles that reclaimers slept on, in order.
    pub sleeps: Vec<Throttle>,
    /// The invariants are checked after every step of a reclaim, not only at its end.
    pub checks_steps: bool,
    next_key: u32,
}

impl World {
    /// An empty machine under these rules.
    pub fn new(config: Config) -> Self {
        let toy = Toy::default();
        Self {
            lru: Lru::new(config, toy.now),
            toy,
            sleeps: Vec::new(),
            checks_steps: true,
            next_key: 0,
        }
    }

    /// An empty machine under a named variant.
    pub fn variant(name: &str) -> Self {
        Self::new(Config::variant(name).expect("a known variant"))
    }

    /// An empty machine under a named variant with some keys set otherwise.
    pub fn with(name: &str, settings: &[(&str, &str)]) -> Self {
        let mut config = Config::variant(name).expect("a known variant");
        for (key, value) in settings {
            config.set(key, value).expect("a known key");
        }
        Self::new(config)
    }

    /// A new group.
    pub fn group(&mut self, parent: MemcgId) -> MemcgId {
        let id = self.lru.add_memcg(parent, self.toy.now);
        self.toy.groups.push(Group::below(Some(parent.index())));
        for _ in 0..self.lru.config().nr_nodes {
            self.toy.lruvec_groups.push(id.index());
        }
        id
    }

    /// A new address space with one mapping of 64 tables per backing: anon, shmem, file.
    pub fn mm(&mut self, memcg: MemcgId) -> MmId {
        let id = self.lru.add_mm(memcg);
        let mut space = super::Space::default();
        for (i, backing) in [Backing::Anon, Backing::Shmem, Backing::File].into_iter().enumerate() {
            let start = i as u64 * 64 * TABLE;
            let end = start + 64 * TABLE;
            let (recency, special, exec) = (true, false, false);
            space.mappings.push(Mapping { start, end, backing, recency, special, exec });
        }
        self.toy.spaces.push(space);
        id
    }

    /// First page of the mapping of this backing.
    pub fn start_of(&self, mm: MmId, backing: Backing) -> u64 {
        let mappings = &self.toy.spaces[mm.index()].mappings;
        mappings.iter().find(|m| m.backing == backing).expect("such a mapping").start
    }

    /// A new folio on no list, charged.
    pub fn unlisted(&mut self, kind: FolioKind, memcg: MemcgId, zone: Zone, order: u8) -> FolioId {
        let key = self.next_key;
        self.next_key += 1;
        let id = self.lru.new_folio(kind, memcg, NODE, zone, order, [key, 0]);
        self.toy.groups[memcg.index()].charged += 1 << order;
        id
    }

    /// A new folio of one page, listed.
    pub fn add(&mut self, kind: FolioKind, memcg: MemcgId, entry: Entry) -> FolioId {
        let id = self.unlisted(kind, memcg, NORMAL, 0);
        self.lru.add(id, entry);
        id
    }

    /// A clean file folio that was read.
    pub fn file(&mut self, memcg: MemcgId) -> FolioId {
        self.add(FolioKind::File, memcg, Entry::Plain)
    }

    /// Many of them, the first one oldest.
    pub fn files(&mut self, memcg: MemcgId, n: usize) -> Vec<FolioId> {
        (0..n).map(|_| self.file(memcg)).collect()
    }

    /// Many unmapped anon folios, fresh.
    pub fn anons(&mut self, memcg: MemcgId, n: usize) -> Vec<FolioId> {
        (0..n).map(|_| self.add(FolioKind::Anon, memcg, Entry::Plain)).collect()
    }

    /// A page of a slot that held `shadow` returns.
    pub fn refault(&mut self, memcg: MemcgId, shadow: Shadow, entry: Entry) -> FolioId {
        let id = self.unlisted(FolioKind::File, memcg, NORMAL, 0);
        self.lru.refault(id, shadow, entry == Entry::Fault { recency: true });
        self.lru.add(id, entry);
        id
    }

    /// Maps a folio; its entry is young, as after a fault.
    pub fn map(&mut self, folio: FolioId, mm: MmId, page: u64) {
        let pte = Pte { folio, young: true, dirty: false };
        let was = self.toy.spaces[mm.index()].ptes.insert(page, pte);
        assert!(was.is_none(), "page {page} is mapped already");
        self.toy.spaces[mm.index()].young_tables.insert(page / TABLE);
        let entry = &mut self.lru.folios_mut()[folio];
        entry.set_mapcount(entry.mapcount() + 1);
    }

    /// A fault that brings a new folio in, for a page in the mapping its kind belongs to.
    pub fn fault(&mut self, kind: FolioKind, memcg: MemcgId, mm: MmId, page: u64) -> FolioId {
        let folio = self.add(kind, memcg, Entry::Fault { recency: true });
        self.map(folio, mm, page);
        self.lru.mm_ran(mm, NODE);
        folio
    }

    /// A fault of the `nth` page of the mapping that `kind` belongs to.
    pub fn fault_nth(&mut self, kind: FolioKind, memcg: MemcgId, mm: MmId, nth: u64) -> FolioId {
        let backing = match kind {
            FolioKind::Anon => Backing::Anon,
            FolioKind::Shmem => Backing::Shmem,
            FolioKind::File => Backing::File,
        };
        let page = self.start_of(mm, backing) + nth;
        self.fault(kind, memcg, mm, page)
    }

    /// The folio is used through every entry that maps it.
    pub fn touch(&mut self, folio: FolioId) {
        for (mm, page) in self.toy.places(folio) {
            let space = &mut self.toy.spaces[mm.index()];
            space.ptes.get_mut(&page).expect("a place").young = true;
            space.young_tables.insert(page / TABLE);
            self.lru.mm_ran(mm, NODE);
        }
    }

    /// The accessed bits of every entry that maps the folio are cleared, as if long ago.
    pub fn rest(&mut self, folio: FolioId) {
        for (mm, page) in self.toy.places(folio) {
            let pte = self.toy.spaces[mm.index()].ptes.get_mut(&page);
            pte.expect("a place").young = false;
        }
    }

    /// The folio is written by the flusher, from start to end.
    pub fn write_back(&mut self, folio: FolioId) {
        self.lru.clean(folio);
        self.lru.start_writeback(folio);
        self.lru.end_writeback(folio);
    }

    /// The write of a folio is complete.
    pub fn end_writeback(&mut self, folio: FolioId) {
        self.toy.stored.insert(folio);
        self.lru.end_writeback(folio);
    }

    /// Halves a folio; its entries stay with the lower half.
    pub fn split(&mut self, folio: FolioId) -> FolioId {
        let key = self.next_key;
        self.next_key += 1;
        let upper = self.lru.split(folio, [key, 0]);
        self.lru.folios_mut()[upper].set_mapcount(0);
        upper
    }

    /// Truncation or exit.
    pub fn drop_folio(&mut self, folio: FolioId) {
        for (mm, page) in self.toy.places(folio) {
            self.toy.spaces[mm.index()].ptes.remove(&page);
        }
        let f = self.lru.folios()[folio];
        let group = self.toy.lruvec_groups[f.lruvec.index()];
        self.toy.groups[group].charged -= f.pages();
        self.toy.stored.remove(&folio);
        self.lru.folios_mut()[folio].set_mapcount(0);
        self.lru.remove(folio);
        self.lru.free_folio(folio);
    }

    /// Steps a reclaim call to its end; the invariants are checked after every step.
    pub fn run(&mut self, mut reclaim: Reclaim) -> u64 {
        for _ in 0..200_000 {
            if let Some(reclaimed) = self.step(&mut reclaim) {
                return reclaimed;
            }
        }
        panic!("reclaim does not end");
    }

    /// One step; `Some` when the call is over. A call that sleeps on a folio gets it written.
    pub fn step(&mut self, reclaim: &mut Reclaim) -> Option<u64> {
        let step = reclaim.step(&mut self.lru, &mut self.toy);
        if self.checks_steps || matches!(step, Step::Done { .. }) {
            self.lru.check();
        }
        match step {
            Step::Again(_) => None,
            Step::Done { reclaimed } => Some(reclaimed),
            Step::Sleep { reason, at_most } => {
                self.sleeps.push(reason);
                match reason {
                    Throttle::Folio(folio) => self.end_writeback(folio),
                    _ => self.toy.now += at_most,
                }
                None
            }
        }
    }

    /// Reclaims from a group at its limit.
    pub fn reclaim(&mut self, memcg: MemcgId, pages: u64) -> u64 {
        self.run(Reclaim::memcg(memcg, pages, Gfp::default()))
    }

    /// Makes a new generation, with a forced walk of all page tables.
    pub fn age(&mut self, memcg: MemcgId) {
        let swappiness = self.toy.groups[memcg.index()].swappiness;
        let id = self.lru.lruvec_id(memcg, NODE);
        assert!(self.lru.debug_age(id, swappiness, true, &mut self.toy), "nobody else ages");
        self.lru.check();
    }

    /// Evicts from the generations that may be evicted, at most `goal` pages, without aging.
    pub fn evict(&mut self, memcg: MemcgId, goal: u64) -> u64 {
        let (max, _) = self.window(memcg);
        let swappiness = self.toy.groups[memcg.index()].swappiness;
        let id = self.lru.lruvec_id(memcg, NODE);
        let seq = mglru::Seq(max - 2);
        let evicted = self.lru.debug_evict(id, seq, swappiness, goal, &mut self.toy);
        self.lru.check();
        evicted.expect("that generation may be evicted")
    }

    /// Steps a call while it stays at the first priority.
    pub fn run_first_priority(&mut self, mut reclaim: Reclaim) -> Reclaim {
        while reclaim.priority() == mglru::DEF_PRIORITY && self.step(&mut reclaim).is_none() {}
        reclaim
    }

    /// Sequence numbers of a group: youngest, oldest of both types.
    pub fn window(&self, memcg: MemcgId) -> (u64, u64) {
        let lines = self.generations(memcg);
        (lines.last().expect("two at least").0, lines[0].0)
    }

    /// Sequence number, anon and file pages of each generation, oldest first.
    pub fn generations(&self, memcg: MemcgId) -> Vec<(u64, u64, u64)> {
        let text = self.lru.dump(memcg, "/", self.toy.now);
        let lines = text.lines().skip(2);
        lines
            .map(|line| {
                let words: Vec<u64> =
                    line.split_whitespace().map(|w| w.parse().expect("a number")).collect();
                (words[0], words[2], words[3])
            })
            .collect()
    }

    /// How many generations below the youngest the folio's field says it is.
    pub fn age_of(&self, memcg: MemcgId, folio: FolioId) -> u64 {
        let generation = self.lru.folios()[folio].flags.generation().expect("in a generation");
        let (max, _) = self.window(memcg);
        let most = u64::from(self.lru.config().generations);
        (max % most + most - u64::from(generation.0)) % most
    }

    /// Is the bit set?
    pub fn has(&self, folio: FolioId, bit: Bit) -> bool {
        self.lru.folios()[folio].flags.has(bit)
    }

    /// A counter of the machine.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.lru.counters()[counter]
    }

    /// Was this key evicted?
    pub fn is_freed(&self, key: u32) -> bool {
        self.toy.freed.iter().any(|f| f.owner[0] == key)
    }

    /// Keys of the evicted folios, in order.
    pub fn freed_keys(&self) -> Vec<u32> {
        self.toy.freed.iter().map(|f| f.owner[0]).collect()
    }
}
