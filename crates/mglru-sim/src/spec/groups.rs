//! Limits of a memory cgroup, with the names of cgroup v2.

use serde::{Deserialize, Serialize};

use super::Size;

/// Limits of a group. `"memory.max"` and `memory_max` are the same key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupSpec {
    /// Usage that is never reclaimed.
    #[serde(rename = "memory.min", alias = "memory_min")]
    pub min: Size,
    /// Usage that is not reclaimed while there is any other.
    #[serde(rename = "memory.low", alias = "memory_low")]
    pub low: Size,
    /// Usage beyond which the group is reclaimed and slowed.
    #[serde(rename = "memory.high", alias = "memory_high")]
    pub high: Size,
    /// Usage beyond which nothing is charged.
    #[serde(rename = "memory.max", alias = "memory_max")]
    pub max: Size,
    /// Swap the group may take.
    #[serde(rename = "memory.swap.max", alias = "memory_swap_max")]
    pub swap_max: Size,
    /// Swappiness, 0 to 200; `None`: the machine's.
    #[serde(
        rename = "memory.swappiness",
        alias = "memory_swappiness",
        alias = "swappiness",
        skip_serializing_if = "Option::is_none"
    )]
    pub swappiness: Option<u8>,
}

impl Default for GroupSpec {
    fn default() -> Self {
        Self {
            min: Size(0),
            low: Size(0),
            high: Size::MAX,
            max: Size::MAX,
            swap_max: Size::MAX,
            swappiness: None,
        }
    }
}

impl GroupSpec {
    /// The same limits `ratio` times as large, each to the nearest page.
    pub fn scaled(&self, ratio: f64) -> Self {
        Self {
            min: self.min.scaled(ratio),
            low: self.low.scaled(ratio),
            high: self.high.scaled(ratio),
            max: self.max.scaled(ratio),
            swap_max: self.swap_max.scaled(ratio),
            swappiness: self.swappiness,
        }
    }
}
