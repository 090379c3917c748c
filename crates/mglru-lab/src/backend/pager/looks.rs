//! Looks at a running pager now and then, for the curves of the page, as at a simulated machine.

use std::time::Duration;

use mglru_guest::kernel_text;
use mglru_sim::outcome::{Figures, GroupOutcome, Snapshot};
use mglru_sim::samples::{COLUMNS, Samples};

use super::counters::value;
use crate::samples::{GroupSeries, Series};

/// Time between the first looks, ns.
const FIRST: u64 = 20_000_000;

/// Keeps looks, evenly spread over the run.
pub struct Looks(Samples<Look>);

struct Look {
    at_ns: u64,
    ops: u64,
    counters: Figures,
    groups: Vec<GroupOutcome>,
}

impl Looks {
    pub fn new() -> Self {
        Self(Samples::every(FIRST))
    }

    /// Returns how long it is until the next look.
    pub fn wait(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(self.0.next().saturating_sub(now_ns))
    }

    pub fn is_due(&self, now_ns: u64) -> bool {
        self.0.is_due(now_ns)
    }

    /// Keeps a look; without one there the next is due a while later.
    pub fn push(&mut self, at_ns: u64, ops: u64, snapshot: Option<Snapshot>) {
        match snapshot {
            None => self.0.skip(at_ns),
            Some(Snapshot { counters, groups, .. }) => {
                self.0.push(at_ns, Look { at_ns, ops, counters, groups });
            }
        }
    }

    /// Turns the looks into columns.
    pub fn series(&self) -> Series {
        let rows = self.0.rows();
        let column =
            |name: &str| rows.iter().map(|look| value(&look.counters, name).unwrap_or(0)).collect();
        let names = rows.first().map_or(&[][..], |look| &look.counters);
        let counters = names.iter().map(|(name, _)| (name.to_string(), column(name))).collect();
        let groups = rows.first().map_or(&[][..], |look| &look.groups);
        let groups = groups.iter().enumerate();
        let mut series = Series::empty();
        series.at_ns = rows.iter().map(|look| look.at_ns).collect();
        series.ops = rows.iter().map(|look| look.ops).collect();
        series.counters = counters;
        series.groups = groups.map(|(at, group)| (group.name.clone(), self.group(at))).collect();
        series
    }

    fn group(&self, at: usize) -> GroupSeries {
        let looks = || self.0.rows().iter().filter_map(|look| look.groups.get(at));
        let column = |name| looks().map(|look| value(&look.stat, name).unwrap_or(0)).collect();
        let columns = COLUMNS.iter().map(|name| (name.to_string(), column(in_stat(name))));
        let generations = looks().map(|look| generations(&look.lru_gen)).collect();
        GroupSeries { columns: columns.collect(), generations, ..GroupSeries::default() }
    }
}

/// Names a column as the pager's statistics do.
fn in_stat(column: &'static str) -> &'static str {
    match column {
        "current" => "memory.current",
        "dirty" => "file_dirty",
        "writeback" => "file_writeback",
        "swap" => "memory.swap.current",
        same => same,
    }
}

/// Reads the generations of the first node, oldest first.
fn generations(lru_gen: &str) -> Vec<[u64; 4]> {
    let groups = kernel_text::generations(lru_gen);
    let node = groups.first().and_then(|group| group.nodes.first());
    let rows = node.map_or(&[][..], |node| &node.generations).iter();
    // Only ages are known; nothing drawn depends on when a generation began.
    rows.map(|one| [one.seq, 0, one.anon, one.file]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LRU_GEN: &str = "\
memcg     1 /
 node     0
          3       1200         10          20
";

    #[test]
    fn looks_thin_out_and_keep_their_order() {
        let mut looks = Looks::new();
        for at in 0..1300 {
            let snapshot = Snapshot {
                counters: vec![("pgpgin", at)],
                groups: vec![GroupOutcome {
                    name: "/".to_string(),
                    stat: vec![("file_dirty", at)],
                    events: Default::default(),
                    pressure: Default::default(),
                    lru_gen: LRU_GEN.to_string(),
                }],
                resident: Vec::new(),
            };
            looks.push(at, at, Some(snapshot));
        }
        let series = looks.series();
        assert!(series.at_ns.len() < 512 && series.at_ns.is_sorted(), "{}", series.at_ns.len());
        assert_eq!(series.counters["pgpgin"], series.at_ns);
        assert_eq!(series.groups["/"].columns["dirty"], series.at_ns);
        assert_eq!(series.groups["/"].generations[0], [[3, 0, 10, 20]]);
    }
}
