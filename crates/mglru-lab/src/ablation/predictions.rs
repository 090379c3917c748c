//! Lists the effects that an ablation should see of each patch: the lines "Obs" of spec §10.3, as
//! far as a record has counters for them, and the same of the rules that releases have besides.

use serde::Serialize;

/// Holds the predicted effect of a patch on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// Expects the figure to rise.
    Up,
    /// Expects the figure to fall.
    Down,
    /// Expects no change at all: every counter of every run stays the same.
    Same,
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Same => "same",
        })
    }
}

/// Describes the effect that a patch is predicted to have on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Names the patch.
    pub patch: &'static str,
    /// Names the figure, a metric of records; for [`Expected::Same`] a name for all of them.
    pub metric: &'static str,
    /// Holds the expected direction.
    pub expected: Expected,
}

/// Stands for all counters of a record.
pub const ALL_COUNTERS: &str = "every counter";

const fn of(patch: &'static str, metric: &'static str, expected: Expected) -> Prediction {
    Prediction { patch, metric, expected }
}

/// Lists all predictions, in the order of the series.
pub const PREDICTIONS: &[Prediction] = &[
    of("p01", ALL_COUNTERS, Expected::Same),
    of("p02", ALL_COUNTERS, Expected::Same),
    of("p03", ALL_COUNTERS, Expected::Same),
    of("p04", "aging_passes", Expected::Up),
    of("p04", "reclaim_passes/reclaim_calls", Expected::Down),
    of("p04", "slabs_scanned", Expected::Down),
    of("p05", "pgrefill/reclaim_calls", Expected::Down),
    of("p06", "lru_lock_held_max", Expected::Down),
    of("p06", "lru_lock_held_folios/lru_lock_holds", Expected::Down),
    of("p06", "pgsteal_direct/reclaim_calls", Expected::Down),
    of("p06p", "pswpout", Expected::Down),
    of("p07", "zero_progress_reclaims", Expected::Down),
    of("p07", "oom_kill", Expected::Down),
    of("p08", "pgscan_skip", Expected::Down),
    of("p08", "pglazyfreed", Expected::Up),
    of("p09", "dirty_scanned", Expected::Down),
    of("p09", "pgactivate", Expected::Up),
    of("p09", "nr_vmscan_immediate_reclaim", Expected::Up),
    of("p09", "pgrefill", Expected::Down),
    of("p10", "flusher_wakeups", Expected::Up),
    of("p10", "ops_per_s", Expected::Up),
    of("p10", "latency_us.mean", Expected::Down),
    of("p10", "pgpgin", Expected::Down),
    of("p10", "workingset_refault_file", Expected::Down),
    of("p11", ALL_COUNTERS, Expected::Same),
    of("p12", ALL_COUNTERS, Expected::Same),
    of("p13", ALL_COUNTERS, Expected::Same),
    of("p14", "throttle_congested", Expected::Up),
    of("p14", "oom_kill", Expected::Down),
    of("prefault", "workingset_activate_file", Expected::Down),
    of("couple_both", "aging_passes", Expected::Up),
    of("blind_shadow_limit", "workingset_refault_file", Expected::Down),
    of("reparent", "aging_passes", Expected::Up),
    of("stale_protection", "pgsteal_proactive", Expected::Up),
    of("drain_entry", "aging_passes", Expected::Up),
    of("drain_entry", "pgpgin", Expected::Up),
    of("touch_ladder", "pgactivate", Expected::Up),
    of("goal_stop", "pgsteal_direct/reclaim_calls", Expected::Down),
    of("swapin_drain", "pswpin", Expected::Up),
    of("exec_first_touch", "pgpgin", Expected::Down),
    of("anon_only_kept", "pgsteal_file", Expected::Down),
];

#[cfg(test)]
mod tests {
    use super::*;
    use mglru::config::{Patches, Releases};

    #[test]
    fn every_patch_has_a_prediction_and_they_stand_in_order() {
        let mut patches: Vec<&str> = PREDICTIONS.iter().map(|p| p.patch).collect();
        patches.dedup();
        let names = Patches::NAMES.iter().chain(Releases::NAMES);
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        assert_eq!(patches, names);
    }
}
