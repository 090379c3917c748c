//! Chooses the parts of a state that are compared: levels and counters of all the workload's groups
//! together.

use mglru_guest::kernel_text::{generations, value};
use mglru_guest::report::Snapshot;
use serde::Serialize;

/// Describes a figure of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Names the field, as in `--on`.
    pub name: &'static str,
    /// Says in a few words what it counts.
    pub about: &'static str,
    /// Says that the field goes up and down; others only grow, from what the boot left.
    pub is_level: bool,
    /// Holds the size of a page in the field's unit.
    pub page: u64,
}

const fn counter(name: &'static str, about: &'static str) -> Field {
    Field { name, about, is_level: false, page: 1 }
}

const fn level(name: &'static str, about: &'static str) -> Field {
    Field { name, about, is_level: true, page: 1 }
}

impl Field {
    const fn of(self, page: u64) -> Self {
        Self { page, ..self }
    }
}

const KIB: u64 = 4;
const BYTES: u64 = 4096;

/// Lists every field, in the order in which a table shows those that part at the same access.
pub const FIELDS: [Field; 16] = [
    level("resident", "pages of the workload's files that are cached"),
    counter("pgmajfault", "faults that read"),
    counter("pgpgin", "KiB read from disks, by the whole machine").of(KIB),
    counter("pgpgout", "KiB written to disks, by the whole machine").of(KIB),
    counter("pgsteal", "pages reclaimed"),
    counter("pgscan", "pages scanned"),
    counter("refault_file", "file pages that came back soon (workingset_refault_file)"),
    counter("refault_anon", "anonymous pages that came back soon (workingset_refault_anon)"),
    counter("activate", "refaults taken for active at once (workingset_activate_*)"),
    counter("nodereclaim", "shadow nodes dropped (workingset_nodereclaim)"),
    counter("pgactivate", "pages activated"),
    level("file", "bytes of page cache").of(BYTES),
    level("anon", "bytes of anonymous memory").of(BYTES),
    level("active_file", "bytes of active page cache: the two youngest generations").of(BYTES),
    counter("newest", "sequence number of the youngest generation"),
    level("oldest_file", "file pages of the oldest generation"),
];

/// Holds the values of all fields in a state.
pub type Values = [u64; FIELDS.len()];

/// Reads the fields of a state.
pub fn values(state: &Snapshot) -> Values {
    let groups = || state.groups.iter().filter(|(path, _)| *path != "/").map(|(_, group)| group);
    let stat = |name: &str| groups().map(|g| value(&g.stat, name).unwrap_or(0)).sum::<u64>();
    let machine = |name: &str| value(&state.vmstat, name).unwrap_or(0);
    FIELDS.map(|field| match field.name {
        "resident" => state.resident.iter().sum(),
        "pgpgin" | "pgpgout" => machine(field.name),
        "refault_file" | "refault_anon" => stat(&format!("workingset_{}", field.name)),
        "activate" => stat("workingset_activate_file") + stat("workingset_activate_anon"),
        "nodereclaim" => stat("workingset_nodereclaim"),
        "newest" => generation(state, |nodes| nodes.last().map(|g| g.seq)),
        "oldest_file" => generation(state, |nodes| nodes.first().map(|g| g.file)),
        name => stat(name),
    })
}

/// A figure of the generations of the workload's groups, summed over groups and nodes.
fn generation(
    state: &Snapshot,
    of: impl Fn(&[mglru_guest::kernel_text::Generation]) -> Option<u64>,
) -> u64 {
    let memcgs = generations(&state.lru_gen);
    let mine = memcgs.iter().filter(|memcg| state.groups.contains_key(&memcg.path));
    let mine = mine.filter(|memcg| memcg.path != "/");
    mine.flat_map(|memcg| &memcg.nodes).filter_map(|node| of(&node.generations)).sum()
}

/// Subtracts the first state from the counters, which the boot has moved already; levels stay.
pub fn since(values: &Values, start: &Values) -> Values {
    std::array::from_fn(|at| match FIELDS[at].is_level {
        true => values[at],
        false => values[at].saturating_sub(start[at]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_guest::report::GroupState;

    pub fn state(stat: &str, lru_gen: &str, resident: u64) -> Snapshot {
        let group = GroupState { stat: stat.to_string(), ..GroupState::default() };
        let root = GroupState { stat: "pgscan 99\n".to_string(), ..GroupState::default() };
        Snapshot {
            vmstat: "pgpgin 40\n".to_string(),
            lru_gen: lru_gen.to_string(),
            groups: [("/a".to_string(), group), ("/".to_string(), root)].into(),
            resident: vec![resident],
            ..Snapshot::default()
        }
    }

    #[test]
    fn fields_are_those_of_the_workloads_groups() {
        let lru_gen = "memcg 1 /\n node 0\n 9 0 7 7\nmemcg 2 /a\n node 0\n 3 20 0 5\n 4 1 0 8\n";
        let stat = "pgscan 7\nworkingset_refault_file 3\nworkingset_activate_file 2\nfile 4096\n";
        let values = values(&state(stat, lru_gen, 6));
        let of = |name| values[FIELDS.iter().position(|field| field.name == name).unwrap()];
        assert_eq!((of("resident"), of("pgscan"), of("pgpgin"), of("activate")), (6, 7, 40, 2));
        assert_eq!((of("refault_file"), of("newest"), of("oldest_file")), (3, 4, 5));
    }

    #[test]
    fn counters_start_at_the_first_state_and_levels_do_not() {
        let at = |pgscan: u64, file: u64| {
            values(&state(&format!("pgscan {pgscan}\nfile {file}\n"), "", 1))
        };
        let since = since(&at(30, 8192), &at(10, 4096));
        let of = |name| since[FIELDS.iter().position(|field| field.name == name).unwrap()];
        assert_eq!((of("pgscan"), of("file"), of("resident"), of("pgpgin")), (20, 8192, 1, 0));
    }
}
