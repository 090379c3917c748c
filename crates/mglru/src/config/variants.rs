//! Named sets of rules: the kernels and versions that are compared.

use alloc::string::ToString;

use super::*;

/// Describes a named set of rules.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Names the variant on the command line.
    pub name: &'static str,
    /// Lists the rules that the name stands for.
    pub says: &'static str,
    make: fn() -> Config,
}

/// Lists all named variants.
pub const VARIANTS: &[Variant] = &[
    Variant { name: "classic", says: "active/inactive lists (MGLRU off)", make: classic },
    Variant { name: "before", says: "MGLRU before the 2026 series (6.14 to 7.1)", make: before },
    Variant { name: "v2", says: "version 2 of the 2026 series", make: v2 },
    Variant { name: "v4", says: "version 4 of the 2026 series", make: v4 },
    Variant { name: "v5", says: "version 5 of the 2026 series", make: v5 },
    Variant { name: "after", says: "the 2026 series as merged for 7.2 (v7)", make: after },
    Variant { name: "fifo", says: "control: first in, first out", make: fifo },
    Variant { name: "random", says: "control: random replacement", make: random },
    Variant {
        name: "L0",
        says: "2.6.32: lumpy reclaim, no compaction",
        make: || lumpy(Contig::L0),
    },
    Variant { name: "L1", says: "3.2: lumpy reclaim and compaction", make: || lumpy(Contig::L1) },
    Variant {
        name: "L2",
        says: "3.3-git: order-0 reclaim for compaction",
        make: || lumpy(Contig::L2),
    },
    Variant { name: "L3", says: "L2 with lumpy reclaim removed", make: || lumpy(Contig::L3) },
    Variant {
        name: "misport",
        says: "a faulty backport of version 5 to a phone's 6.12",
        make: misport,
    },
    Variant { name: "misport-4", says: "v5 with its defect 4: ages too early", make: misport_4 },
    Variant { name: "misport-6", says: "v5 with its defect 6: a whole budget", make: misport_6 },
    Variant { name: "misport-7", says: "v5 with its defect 7: an endless budget", make: misport_7 },
    Variant {
        name: "k6.12",
        says: "Debian's 6.12.117: mainline 6.12 and stable backports",
        make: k612,
    },
    Variant { name: "k7.1", says: "Linux 7.1: `before` and the release's own rules", make: k71 },
    Variant { name: "k7.2", says: "Linux 7.2: `after` and the release's own rules", make: k72 },
    Variant { name: "k7.3", says: "Linux 7.3: `after` and the release's own rules", make: k73 },
];

fn classic() -> Config {
    Config { lru: Algorithm::Classic, ..Config::default() }
}

/// Kernels of 2009 to 2012: active and inactive lists, kswapd may write dirty file pages.
fn lumpy(contig: Contig) -> Config {
    Config { lru: Algorithm::Classic, contig, node_dirty_flag: true, ..Config::default() }
}

fn fifo() -> Config {
    Config { lru: Algorithm::Fifo, ..Config::default() }
}

fn random() -> Config {
    Config { lru: Algorithm::Random, ..Config::default() }
}

fn before() -> Config {
    Config { patches: Patches::NONE, floor: Floor::None, ..Config::default() }
}

/// Version 2 as posted: 13 patches of version 5's numbering.
#[rustfmt::skip]
const V2: &[&str] = &[
    "p01", "p02", "p03", "p04", "p05", "p06", "p07", "p09", "p10", "p11", "p12", "p13", "p14",
];
/// Versions 4 and 5.
#[rustfmt::skip]
const V4: &[&str] = &[
    "p01", "p02", "p03", "p04", "p05", "p06", "p07", "p08", "p09", "p10", "p11", "p12", "p13",
    "p14",
];
/// Version 7, as merged.
#[rustfmt::skip]
const V7: &[&str] = &[
    "p01", "p02", "p03", "p04", "p05", "p06", "p06p", "p07", "p08", "p09", "p10", "p11", "p12",
    "p13", "p14", "prefault",
];

/// The rules since the series with these of its patches.
fn series(patches: &[&str], floor: Floor) -> Config {
    let mut listed = Patches::NONE;
    for name in patches {
        *listed.switch(name).expect("a patch of the series") = true;
    }
    Config { patches: listed, floor, ..Config::default() }
}

fn v2() -> Config {
    series(V2, Floor::V2)
}

fn v4() -> Config {
    series(V4, Floor::V4)
}

fn v5() -> Config {
    series(V4, Floor::V5)
}

fn after() -> Config {
    series(V7, Floor::V7)
}

/// Its base kernel also lacks proportional protection and keeps the node's dirty flag.
fn misport() -> Config {
    let (proportional_protection, node_dirty_flag) = (false, true);
    Config { misport: Misport::ALL, proportional_protection, node_dirty_flag, ..v5() }
}

fn misport_4() -> Config {
    Config { misport: Misport { ages_at_first: true, ..Misport::NONE }, ..v5() }
}

fn misport_6() -> Config {
    Config { misport: Misport { whole_budget: true, ..Misport::NONE }, ..v5() }
}

fn misport_7() -> Config {
    Config { misport: Misport { endless_budget: true, ..Misport::NONE }, ..v5() }
}

fn k612() -> Config {
    Config {
        refs_model: RefsModel::K612,
        aging_rule: AgingRule::K612,
        patches: Patches { p09: true, ..Patches::NONE },
        floor: Floor::None,
        proportional_protection: false,
        node_dirty_flag: true,
        stable_612: true,
        releases: Releases { stale_protection: true, ..Releases::NONE },
        ..Config::default()
    }
}

fn k71() -> Config {
    let releases = Releases {
        couple_both: true,
        reparent: true,
        blind_shadow_limit: true,
        stale_protection: true,
        ..Releases::NONE
    };
    Config { releases, ..before() }
}

fn k72() -> Config {
    let releases = Releases {
        drain_entry: true,
        touch_ladder: true,
        goal_stop: true,
        swapin_drain: true,
        couple_both: true,
        reparent: true,
        blind_shadow_limit: true,
        stale_protection: true,
        ..Releases::NONE
    };
    Config { releases, ..after() }
}

fn k73() -> Config {
    let releases = Releases {
        couple_both: true,
        reparent: true,
        drain_entry: true,
        touch_ladder: true,
        goal_stop: true,
        exec_first_touch: true,
        anon_only_kept: true,
        ..Releases::NONE
    };
    Config { releases, ..after() }
}

impl Config {
    /// Returns the variant of this name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownVariant`].
    pub fn variant(name: &str) -> Result<Self, ConfigError> {
        let found = VARIANTS.iter().find(|v| v.name == name);
        found.map(|v| (v.make)()).ok_or_else(|| ConfigError::UnknownVariant(name.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_series_as_merged() {
        assert_eq!(Config::default(), after());
    }
}
