//! The state's invariants, one assertion a line (spec §13). Cheap enough to run after every input
//! of a fuzzer, too dear for every step of a large machine.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::folio::{Bit, List};
use crate::state::Lru;
use crate::state::lruvec::{ClassicList, Lruvec};
use crate::types::{FolioId, Gen, LruType, LruvecId, MAX_NR_ZONES, Zone};

impl Lru {
    /// Checks the invariants of structure, I1 to I5.
    ///
    /// # Panics
    /// If one does not hold: the state is corrupt.
    pub fn check(&self) {
        if let Err(broken) = self.invariants() {
            panic!("{broken}");
        }
    }

    /// Checks the invariants of structure, I1 to I5, for callers that go on after a broken one.
    ///
    /// # Errors
    /// Names the first one that does not hold, with where and what was found.
    pub fn invariants(&self) -> Result<(), String> {
        let mut listed = vec![false; self.folios.slots()];
        for index in 0..self.lruvecs.len() {
            let id = LruvecId(index as u32);
            self.check_window(id)?;
            self.check_unevictable(id, &mut listed)?;
            if self.config.is_mglru() {
                self.check_generations(id, &mut listed)?;
            } else {
                self.check_classic(id, &mut listed)?;
            }
        }
        self.check_unlisted(&listed)?;
        self.check_node_sums()?;
        for node in &self.nodes {
            let exists = |memcg| !self.memcgs[memcg].released;
            node.memcg_lru.check(exists)?;
        }
        Ok(())
    }

    fn check_window(&self, id: LruvecId) -> Result<(), String> {
        let mg = &self.lruvecs[id.index()].mg;
        for lru_type in LruType::ALL {
            let gens = mg.nr_gens(lru_type);
            ensure!(gens >= mg.span.kept, "{id:?} {lru_type:?}: I4: {gens} generations");
            ensure!(gens <= mg.span.most, "{id:?} {lru_type:?}: I4: {gens} generations");
        }
        let clocks = if mg.span.one_clock { 1 } else { 2 };
        for (walk, max_seq) in mg.walks.iter().zip(mg.max_seq).take(clocks) {
            let walk_seq = walk.seq;
            ensure!(walk_seq <= max_seq, "{id:?}: I4: walk_seq {walk_seq:?}");
            ensure!(walk_seq.plus(1) >= max_seq, "{id:?}: I4: walk_seq {walk_seq:?}");
        }
        if mg.span.one_clock {
            ensure_eq!(mg.max_seq[0], mg.max_seq[1], "{id:?}: I4: one clock");
        }
        if self.config.version().anon_leads && mg.span.one_clock {
            let [anon, file] = LruType::ALL.map(|t| mg.nr_gens(t));
            ensure!(file <= anon, "{id:?}: I4: file has {file} generations, anon {anon}");
        }
        Ok(())
    }

    fn members(&self, list: List, listed: &mut [bool]) -> Result<Vec<FolioId>, String> {
        let members: Vec<FolioId> = self.folios.iter_from_tail(list).collect();
        for &folio in &members {
            ensure!(!listed[folio.index()], "{folio:?}: I1: on two lists");
            listed[folio.index()] = true;
        }
        Ok(members)
    }

    fn check_unevictable(&self, id: LruvecId, listed: &mut [bool]) -> Result<(), String> {
        let Lruvec { unevictable, nr_unevictable, .. } = self.lruvecs[id.index()];
        let members = self.members(unevictable, listed)?;
        let pages: u64 = members.iter().map(|&f| self.folios[f].pages()).sum();
        ensure_eq!(pages, nr_unevictable, "{id:?}: unevictable pages");
        for folio in members {
            let flags = self.folios[folio].flags;
            ensure!(flags.has(Bit::UNEVICTABLE), "{folio:?}: evictable on the unevictable list");
            ensure_eq!(flags.generation(), None, "{folio:?}: I1: unevictable in a generation");
        }
        Ok(())
    }

    fn check_generations(&self, id: LruvecId, listed: &mut [bool]) -> Result<(), String> {
        let mg = &self.lruvecs[id.index()].mg;
        let mut counted = vec![[[0i64; MAX_NR_ZONES]; 2]; mg.pages.len()];
        for slot in 0..mg.span.most as u8 {
            for lru_type in LruType::ALL {
                let lists = mg.lists[usize::from(slot)][lru_type.index()];
                for (zone, list) in lists.into_iter().enumerate() {
                    for folio in self.members(list, listed)? {
                        self.check_member(id, folio, Gen(slot), lru_type, Zone(zone as u8))?;
                        let own = self.folios[folio].flags.generation().expect("checked");
                        counted[own.index()][lru_type.index()][zone] +=
                            self.folios[folio].pages() as i64;
                    }
                }
            }
        }
        ensure_eq!(counted, mg.pages, "{id:?}: I3: pages of the generations");
        Ok(())
    }

    fn check_member(
        &self,
        id: LruvecId,
        folio: FolioId,
        slot: Gen,
        lru_type: LruType,
        zone: Zone,
    ) -> Result<(), String> {
        let f = &self.folios[folio];
        let mg = &self.lruvecs[id.index()].mg;
        ensure_eq!(f.lruvec, id, "{folio:?}: on a foreign list");
        ensure_eq!(f.lru_type(), lru_type, "{folio:?}: I2: type");
        ensure_eq!(f.flags.zone(), zone, "{folio:?}: I2: zone");
        ensure!(f.flags.has(Bit::LRU), "{folio:?}: I1: listed without its flag");
        ensure!(!f.flags.has(Bit::ACTIVE), "{folio:?}: I1: active in a generation");
        ensure!(!f.flags.has(Bit::UNEVICTABLE), "{folio:?}: I1: unevictable in a generation");
        let own = f.flags.generation().expect("I1: a listed folio has a generation");
        let age = |g: Gen| mg.live(lru_type).find(|&seq| mg.slot(seq) == g);
        let (own, slot) = (age(own), age(slot));
        // A slot that the window left early stands for the next generation of that number.
        let slid = mg.slid[lru_type.index()];
        ensure!(own.is_some() || slid, "{folio:?}: I2: generation outside of the window");
        ensure!(own >= slot || slid, "{folio:?}: I2: its list is younger than its generation");
        Ok(())
    }

    fn check_classic(&self, id: LruvecId, listed: &mut [bool]) -> Result<(), String> {
        let lruvec = &self.lruvecs[id.index()];
        for list in ClassicList::ALL {
            let members = self.members(lruvec.classic.lists[list.index()], listed)?;
            let pages: u64 = members.iter().map(|&f| self.folios[f].pages()).sum();
            ensure_eq!(pages, lruvec.classic_size(list), "{id:?} {list:?}: pages");
            for folio in members {
                let f = &self.folios[folio];
                ensure_eq!(f.lru_type(), list.lru_type(), "{folio:?}: I2: type");
                ensure_eq!(f.flags.has(Bit::ACTIVE), list.is_active(), "{folio:?}: wrong list");
                ensure_eq!(f.flags.generation(), None, "{folio:?}: generation on a classic list");
            }
        }
        Ok(())
    }

    fn check_unlisted(&self, listed: &[bool]) -> Result<(), String> {
        for (id, folio) in self.folios.iter() {
            if !listed[id.index()] {
                ensure!(!folio.flags.has(Bit::LRU), "{id:?}: I1: flagged but on no list");
                ensure_eq!(folio.flags.generation(), None, "{id:?}: I1: generation but no list");
            }
        }
        Ok(())
    }

    fn check_node_sums(&self) -> Result<(), String> {
        for (index, node) in self.nodes.iter().enumerate() {
            let own = |id: &&Lruvec| id.node.index() == index;
            let size = |t: LruType| -> u64 {
                let sizes = self.lruvecs.iter().filter(own).map(|lruvec| {
                    if self.config.is_mglru() {
                        lruvec.mg.reported(t, true) + lruvec.mg.reported(t, false)
                    } else {
                        lruvec.classic_size(ClassicList::of(t, true))
                            + lruvec.classic_size(ClassicList::of(t, false))
                    }
                });
                sizes.sum()
            };
            ensure_eq!(LruType::ALL.map(size), node.lru_pages, "node {index}: I5: evictable pages");
            let inactive = |t: LruType| -> u64 {
                self.lruvecs.iter().filter(own).map(|lruvec| lruvec.mg.reported(t, false)).sum()
            };
            let inactive = LruType::ALL.map(inactive);
            ensure_eq!(inactive, node.inactive_pages, "node {index}: I5: inactive pages");
        }
        Ok(())
    }
}
