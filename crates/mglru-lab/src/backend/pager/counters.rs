//! Reads the pager's counters at a mark and at the end, under the kernel's names.

use mglru_pager::FaultStat;
use mglru_sim::outcome::{Figures, GroupOutcome, Snapshot};

use super::mapped::Mapped;

/// `pgpgin` counts KiB.
const KIB_PER_PAGE: u64 = 4;

impl Mapped {
    /// Reads the counters of all groups together, and of each group.
    pub fn snapshot(&self) -> Result<Snapshot, String> {
        self.snapshot_of(self.groups.len())
    }

    /// Reads the counters of all groups together, and of the first `n` groups.
    pub fn snapshot_of(&self, n: usize) -> Result<Snapshot, String> {
        let mut groups = Vec::new();
        for (name, group) in self.groups.iter().take(n) {
            let stat = group.stat().map_err(|e| e.to_string())?;
            let lru_gen = group.lru_gen().map_err(|e| e.to_string())?;
            groups.push(GroupOutcome {
                name: name.clone(),
                stat: stat.iter().collect(),
                events: Default::default(),
                pressure: Default::default(),
                lru_gen,
            });
        }
        let counters = counters(&self.faults(), &groups);
        Ok(Snapshot { counters, groups, resident: Vec::new() })
    }
}

fn counters(&[files, memory]: &[FaultStat; 2], groups: &[GroupOutcome]) -> Figures {
    let mut counters = vec![
        ("pgfault", files.missing + files.protect + memory.missing + memory.protect),
        ("pgmajfault", files.major + memory.major),
        ("pgpgin", KIB_PER_PAGE * (files.major + files.read_around)),
        ("pswpin", memory.major + memory.read_around),
        ("faults_throttled", files.throttled + memory.throttled),
    ];
    // The root's figures have those of all groups below in them.
    let all = |name: &str| value(&groups[0].stat, name).unwrap_or(0);
    counters
        .extend(mglru::Counter::ALL.iter().map(|counter| (counter.name(), all(counter.name()))));
    counters
}

pub fn value(figures: &Figures, name: &str) -> Option<u64> {
    figures.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}
