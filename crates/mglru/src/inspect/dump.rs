//! The generations of a group, in the layout of the kernel's lru_gen debug text.
//!
//! ```text
//! memcg     1 /mongo
//!  node     0
//!           4      12034          0        3512
//! ```
//! A line per generation, oldest first: sequence number, age in milliseconds, anon and file pages.

use core::fmt::Write;

use alloc::string::String;
use alloc::vec::Vec;

use crate::state::Lru;
use crate::state::controller::TierRates;
use crate::state::generations::Generations;
use crate::types::{FolioId, Gen, LruType, MemcgId, Nanos, NodeId, Seq, Tier};

/// Tells one generation of a group on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationSize {
    /// Numbers the generation: the highest is the youngest.
    pub seq: u64,
    /// Holds the time when the generation began, ns.
    pub born: Nanos,
    /// Counts its pages, anon and file.
    pub pages: [u64; 2],
    /// Names the slots of its folios, anon and file; `None` where a type has no folios that old.
    pub slots: [Option<Gen>; 2],
}

impl Lru {
    /// Formats the generations of `memcg` on all nodes; `path` is the group's name.
    pub fn dump(&self, memcg: MemcgId, path: &str, now: Nanos) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "memcg {:5} {path}", memcg.0);
        for node in 0..self.config.nr_nodes {
            let _ = writeln!(text, " node {node:5}");
            let lruvec = &self.lruvecs[self.lruvec_id(memcg, NodeId(node)).index()];
            write_generations(&mut text, &lruvec.mg, now);
        }
        text
    }

    /// Tells the generations of a group on a node, oldest first; none under the classic LRU.
    pub fn generations(&self, memcg: MemcgId, node: NodeId) -> Vec<GenerationSize> {
        let lruvec = &self.lruvecs[self.lruvec_id(memcg, node).index()];
        if self.config.is_mglru() { live(&lruvec.mg).collect() } else { Vec::new() }
    }

    /// Tells the oldest generation of a type in a group on a node.
    pub fn oldest(&self, memcg: MemcgId, node: NodeId, lru_type: LruType) -> Seq {
        self.lruvecs[self.lruvec_id(memcg, node).index()].mg.first_seq(lru_type)
    }

    /// Tells the tier of a folio.
    pub fn tier_of(&self, folio: FolioId) -> Tier {
        self.tier(self.folios[folio].flags)
    }

    /// Tells the highest tier of each type that eviction takes now; higher ones are protected.
    pub fn tier_limits(&self, memcg: MemcgId, node: NodeId) -> [Tier; 2] {
        LruType::ALL.map(|lru_type| self.tier_limit(self.lruvec_id(memcg, node), lru_type))
    }

    /// Returns refault rates of a group's tiers, as its controller has them now.
    pub fn tier_rates(&self, memcg: MemcgId, node: NodeId) -> TierRates {
        self.lruvecs[self.lruvec_id(memcg, node).index()].mg.controller.rates()
    }
}

fn live(mg: &Generations) -> impl Iterator<Item = GenerationSize> + '_ {
    let last = mg.last_seq().0;
    let oldest = LruType::ALL.map(|t| mg.first_seq(t).0).into_iter().min().unwrap_or(last);
    (oldest..=last).map(move |seq| {
        let behind = last - seq;
        let slots = LruType::ALL.map(|t| {
            let is_live = behind < mg.nr_gens(t);
            is_live.then(|| mg.slot(Seq(mg.max_seq[t.index()].0 - behind)))
        });
        let pages = LruType::ALL.map(|t| slots[t.index()].map_or(0, |slot| mg.size_of(slot, t)));
        let births = (0usize..).zip(slots).filter_map(|(t, slot)| Some(mg.birth[slot?.index()][t]));
        GenerationSize { seq, born: births.min().unwrap_or_default(), pages, slots }
    })
}

fn write_generations(text: &mut String, mg: &Generations, now: Nanos) {
    for GenerationSize { seq, born, pages, .. } in live(mg) {
        let age_ms = now.saturating_sub(born) / 1_000_000;
        let _ = write!(text, " {seq:10} {age_ms:10}");
        for size in pages {
            let _ = write!(text, " {size:10} ");
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Entry, FolioKind, Lru, MemcgId, NodeId, Zone};

    #[test]
    fn the_layout_is_that_of_the_kernel() {
        let mut lru = Lru::new(Config::default(), 0);
        for i in 0..3 {
            let kind = if i == 0 { FolioKind::Anon } else { FolioKind::File };
            let folio = lru.new_folio(kind, MemcgId::ROOT, NodeId(0), Zone(2), 0, [i, 0]);
            lru.add(folio, Entry::Plain);
        }
        let expected = "\
memcg     0 /
 node     0
          0       6124          0           2 
          1       6124          0           0 
          2       6124          1           0 
          3       6124          0           0 
";
        assert_eq!(lru.dump(MemcgId::ROOT, "/", 6_124_000_000), expected);
    }
}
