//! Limits of a memory cgroup, with the names of cgroup v2. `"memory.max"`, `memory_max` and the
//! dotted key `memory.max` (to TOML a table inside a table) are the same.

use serde::{Deserialize, Serialize};

use super::Size;

/// Sets the limits of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct GroupSpec {
    /// Sets the usage that is never reclaimed.
    #[serde(rename = "memory.min")]
    pub min: Size,
    /// Sets the usage that is not reclaimed while there is any other.
    #[serde(rename = "memory.low")]
    pub low: Size,
    /// Sets the usage beyond which the group is reclaimed and slowed.
    #[serde(rename = "memory.high")]
    pub high: Size,
    /// Sets the usage beyond which nothing is charged.
    #[serde(rename = "memory.max")]
    pub max: Size,
    /// Bounds the swap the group may take.
    #[serde(rename = "memory.swap.max")]
    pub swap_max: Size,
    /// Sets the swappiness, 0 to 200; `None`: the machine's.
    #[serde(rename = "memory.swappiness", skip_serializing_if = "Option::is_none")]
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
    /// Returns the same limits `ratio` times as large, each to the nearest page.
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

/// A group's table as it may be written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "memory.min", alias = "memory_min")]
    min: Option<Size>,
    #[serde(rename = "memory.low", alias = "memory_low")]
    low: Option<Size>,
    #[serde(rename = "memory.high", alias = "memory_high")]
    high: Option<Size>,
    #[serde(rename = "memory.max", alias = "memory_max")]
    max: Option<Size>,
    #[serde(rename = "memory.swap.max", alias = "memory_swap_max")]
    swap_max: Option<Size>,
    #[serde(rename = "memory.swappiness", alias = "memory_swappiness", alias = "swappiness")]
    swappiness: Option<u8>,
    #[serde(default)]
    memory: Memory,
}

/// Receives the dotted keys.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Memory {
    min: Option<Size>,
    low: Option<Size>,
    high: Option<Size>,
    max: Option<Size>,
    swappiness: Option<u8>,
    swap: Swap,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Swap {
    max: Option<Size>,
}

impl TryFrom<Written> for GroupSpec {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Memory { min, low, high, max, swappiness, swap } = written.memory;
        let none = Self::default();
        Ok(Self {
            min: either("memory.min", written.min, min)?.unwrap_or(none.min),
            low: either("memory.low", written.low, low)?.unwrap_or(none.low),
            high: either("memory.high", written.high, high)?.unwrap_or(none.high),
            max: either("memory.max", written.max, max)?.unwrap_or(none.max),
            swap_max: either("memory.swap.max", written.swap_max, swap.max)?
                .unwrap_or(none.swap_max),
            swappiness: either("memory.swappiness", written.swappiness, swappiness)?,
        })
    }
}

fn either<T>(key: &str, one: Option<T>, other: Option<T>) -> Result<Option<T>, String> {
    match (&one, &other) {
        (Some(_), Some(_)) => Err(format!("{key} is written twice")),
        _ => Ok(one.or(other)),
    }
}
