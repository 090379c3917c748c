//! A group's limits as a plan writes them, with cgroup v2 names, checked against each other.

use toml::{Table, Value};

use crate::error::KeyError;
use crate::size::{self, NO_LIMIT};

/// Names a group's table may hold.
pub const KEYS: [&str; 6] = [
    "memory.min",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.max",
    "memory.swappiness",
];

/// Limits of one group, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `memory.min`
    pub min: u64,
    /// `memory.low`
    pub low: u64,
    /// `memory.high`
    pub high: u64,
    /// `memory.max`
    pub max: u64,
    /// `memory.swap.max`
    pub swap_max: u64,
    /// Swappiness of the group alone (0..200); `None`: the machine's.
    pub swappiness: Option<u8>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { min: 0, low: 0, high: NO_LIMIT, max: NO_LIMIT, swap_max: NO_LIMIT, swappiness: None }
    }
}

impl Limits {
    /// Reads a group's flattened table (`memory.max = "10GiB"`).
    ///
    /// # Errors
    /// Names the key that is unknown, out of range or contradicts another.
    pub fn parse(table: &Table) -> Result<Self, KeyError> {
        let mut limits = Self::default();
        for (key, value) in table {
            limits.set(key, value)?;
        }
        limits.check()
    }

    /// The same limits `scale` times as large, to the nearest page.
    pub fn scaled(self, scale: f64) -> Self {
        let times = |bytes| size::scaled(bytes, scale);
        Self {
            min: times(self.min),
            low: times(self.low),
            high: times(self.high),
            max: times(self.max),
            swap_max: times(self.swap_max),
            swappiness: self.swappiness,
        }
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), KeyError> {
        match key {
            "memory.min" => self.min = bytes(key, value)?,
            "memory.low" => self.low = bytes(key, value)?,
            "memory.high" => self.high = bytes(key, value)?,
            "memory.max" => self.max = bytes(key, value)?,
            "memory.swap.max" => self.swap_max = bytes(key, value)?,
            "memory.swappiness" => self.swappiness = Some(swappiness(key, value)?),
            _ => return Err(KeyError::unknown_whole(key, KEYS)),
        }
        Ok(())
    }

    fn check(self) -> Result<Self, KeyError> {
        if self.max == 0 {
            return Err(KeyError::value("memory.max", 0, "must be at least one page (4096)"));
        }
        for (key, protection) in [("memory.min", self.min), ("memory.low", self.low)] {
            if protection != NO_LIMIT && protection > self.max {
                let max = size::format(self.max);
                let problem = format!("must not exceed memory.max ({max})");
                return Err(KeyError::value(key, size::format(protection), problem));
            }
        }
        Ok(self)
    }
}

impl KeyError {
    /// An unknown key whose dots belong to its name.
    fn unknown_whole<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let near = crate::error::did_you_mean(key, known);
        Self::key(key, format!("unknown key{near}"))
    }
}

fn bytes(key: &str, value: &Value) -> Result<u64, KeyError> {
    let problem = match value {
        Value::Integer(n) if *n >= 0 => return Ok(*n as u64),
        Value::String(text) => match size::parse(text) {
            Ok(bytes) => return Ok(bytes),
            Err(problem) => problem,
        },
        _ => "expected a size such as 4096, 64MiB, 10GiB or max".to_string(),
    };
    Err(KeyError::value(key, value, problem))
}

fn swappiness(key: &str, value: &Value) -> Result<u8, KeyError> {
    match value.as_integer() {
        Some(n @ 0..=200) => Ok(n as u8),
        _ => Err(KeyError::value(key, value, "must be a whole number 0..200")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Limits, String> {
        Limits::parse(&text.parse().unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn reads_limits() {
        let got = parse("\"memory.max\" = \"1GiB\"\n\"memory.swappiness\" = 0").unwrap();
        let want = Limits { max: 1 << 30, swappiness: Some(0), ..Limits::default() };
        assert_eq!(got, want);
    }

    #[test]
    fn low_above_max_is_a_contradiction() {
        assert_eq!(
            parse("\"memory.max\" = \"1GiB\"\n\"memory.low\" = \"2GiB\"").unwrap_err(),
            "memory.low = 2GiB: must not exceed memory.max (1GiB)"
        );
    }

    #[test]
    fn names_what_is_wrong() {
        assert_eq!(
            parse("\"memory.maxx\" = 1").unwrap_err(),
            "memory.maxx: unknown key (did you mean memory.max, memory.min, memory.swap.max?)"
        );
        assert_eq!(
            parse("\"memory.swappiness\" = 250").unwrap_err(),
            "memory.swappiness = 250: must be a whole number 0..200"
        );
        assert_eq!(
            parse("\"memory.max\" = -1").unwrap_err(),
            "memory.max = -1: expected a size such as 4096, 64MiB, 10GiB or max"
        );
    }
}
