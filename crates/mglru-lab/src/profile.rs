//! Counts how much a booted kernel's code costs: instructions by function, while a workload ran.
//!
//! A run writes a [`Profile`] beside its records; [`Side`]s set the runs of several variants or
//! kernels beside each other, and [`Table`] says where they differ.

mod side;
mod symbols;
mod table;

pub use side::{Side, sides};
pub use symbols::Symbols;
#[cfg(test)]
pub(crate) use table::example as table_example;
pub use table::{Per, Row, Table};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Names code that belongs to no function that the kernel names.
pub const UNKNOWN: &str = "?";
/// Ends the name of a profile's file; the run's own name begins it.
pub const FILE: &str = "profile.json";

/// Holds how many instructions a run's code took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Holds the kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// Lists its phases, in time; the first is before any that the workload marks.
    pub phases: Vec<Phase>,
}

/// Holds the figures of one part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Holds the workload's name for it; none before the first that it marks.
    pub name: String,
    /// Says that the record's counters are of this phase too.
    pub measured: bool,
    /// Counts pages that were reclaimed.
    pub reclaimed: u64,
    /// Counts pages that reclaim scanned.
    pub scanned: u64,
    /// Counts instructions of programs.
    pub user: u64,
    /// Counts instructions of the kernel.
    pub system: u64,
    /// Counts the kernel's instructions by function, the most first.
    pub functions: IndexMap<String, u64>,
}

/// Holds instructions as they were counted: of programs, and by the address of a block of the
/// kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counts instructions of programs.
    pub user: u64,
    /// Counts instructions of the kernel.
    pub blocks: Vec<(u64, u64)>,
}

impl Counts {
    /// Reads what QEMU's plugin wrote: lines of address and count, an end after each phase.
    /// Programs stand at address 0. None where it was cut short.
    pub fn parse(text: &str) -> Option<Vec<Self>> {
        let mut phases = Vec::new();
        let mut now = Self::default();
        for line in text.lines() {
            if line == "end" {
                phases.push(std::mem::take(&mut now));
                continue;
            }
            let (address, count) = line.split_once(' ')?;
            let count: u64 = count.parse().ok()?;
            match u64::from_str_radix(address, 16).ok()? {
                0 => now.user += count,
                address => now.blocks.push((address, count)),
            }
        }
        (now == Self::default()).then_some(phases)
    }

    /// Sums the counts by function, the most first and equal ones by name.
    pub fn by_function(&self, symbols: &Symbols) -> IndexMap<String, u64> {
        let mut functions: IndexMap<String, u64> = IndexMap::new();
        for (address, count) in &self.blocks {
            *functions.entry(symbols.at(*address).to_string()).or_default() += count;
        }
        functions.sort_by(|a, n, b, m| m.cmp(n).then_with(|| a.cmp(b)));
        functions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_read_and_what_is_cut_short_is_not() {
        let phases = Counts::parse("0 7\nffffffff81000010 3\nend\nend\n").unwrap();
        assert_eq!((phases.len(), phases[0].user), (2, 7));
        assert_eq!(phases[0].blocks, [(0xffff_ffff_8100_0010, 3)]);
        for torn in ["0 7\n", "0 7\nend\nffff", "0 x\nend\n"] {
            assert_eq!(Counts::parse(torn), None, "{torn}");
        }
    }

    #[test]
    fn blocks_of_a_function_are_summed_and_the_most_come_first() {
        let symbols = Symbols::parse("ffffffff81000000 a\n10 b.cold\n10 b\n");
        let at = |offset: u64| 0xffff_ffff_8100_0000 + offset;
        let blocks = vec![(at(0), 1), (at(0x12), 2), (at(0x20), 3), (5, 1)];
        let found = Counts { user: 0, blocks }.by_function(&symbols);
        let found: Vec<_> = found.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(found, [("b", 5), (UNKNOWN, 1), ("a", 1)]);
    }
}
