//! Which patch of the 2026 series, or rule of a release, needs which (spec §10.3): a patch is put
//! in with all it needs, and taken out with all that needs it.

use mglru::config::{Patches, Releases};

/// Lists the patches that each patch needs directly; the others need nothing.
const NEEDS: &[(&str, &[&str])] = &[
    ("p05", &["p04"]),
    ("p06", &["p03", "p04"]),
    ("p06p", &["p05"]),
    ("p07", &["p04"]),
    ("p10", &["p05", "p09"]),
    ("p11", &["p09"]),
    ("p12", &["p10"]),
    ("p13", &["p10"]),
    ("p14", &["p09", "p10"]),
    ("drain_entry", &["prefault"]),
    ("touch_ladder", &["prefault"]),
    ("swapin_drain", &["drain_entry"]),
];

/// Does `patch` need `other`, at once or by way of others?
pub fn needs(patch: &str, other: &str) -> bool {
    let at_once = NEEDS.iter().find(|(name, _)| *name == patch).map_or(&[][..], |(_, all)| all);
    at_once.iter().any(|need| *need == other || needs(need, other))
}

/// Lists all that `patch` needs, in the order of the series.
pub fn needed(patch: &str) -> Vec<&'static str> {
    names().filter(|other| needs(patch, other)).collect()
}

/// Returns all patches that need `patch`, in the order of the series.
pub fn dependents(patch: &str) -> Vec<&'static str> {
    names().filter(|other| needs(other, patch)).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    Patches::NAMES.iter().chain(Releases::NAMES).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_patches_are_named_and_none_needs_a_later_one() {
        let place = |patch: &str| names().position(|name| name == patch);
        for (patch, all) in NEEDS {
            for need in *all {
                assert!(place(need).unwrap() < place(patch).unwrap(), "{patch} needs {need}");
            }
        }
    }

    #[test]
    fn needs_are_followed_to_their_end() {
        assert_eq!(needed("p14"), ["p04", "p05", "p09", "p10"]);
        assert_eq!(needed("p06"), ["p03", "p04"]);
        assert_eq!(dependents("p09"), ["p10", "p11", "p12", "p13", "p14"]);
        assert_eq!(dependents("p04"), ["p05", "p06", "p06p", "p07", "p10", "p12", "p13", "p14"]);
        assert_eq!(needed("swapin_drain"), ["prefault", "drain_entry"]);
        for free in ["p01", "p02", "p08", "goal_stop", "couple_both"] {
            assert!(needed(free).is_empty() && dependents(free).is_empty(), "{free}");
        }
    }
}
