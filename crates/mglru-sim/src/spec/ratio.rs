//! A ratio written as a decimal and kept in thousandths, so that no float reaches a decision.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const EXPECTED: &str = "a ratio from 1 to 100";

/// Holds a ratio of at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u32);

impl Default for Ratio {
    fn default() -> Self {
        Self(3_000)
    }
}

impl Ratio {
    /// Makes a ratio from thousandths; below 1 it is 1.
    pub fn from_thousandths(thousandths: u32) -> Self {
        Self(thousandths.max(1_000))
    }

    /// Returns the ratio in thousandths, at least 1000.
    pub fn thousandths(self) -> u32 {
        self.0
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1_000.0)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Decimal)
    }
}

struct Decimal;

impl Visitor<'_> for Decimal {
    type Value = Ratio;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Ratio, E> {
        match (1.0..=100.0).contains(&value) {
            true => Ok(Ratio((value * 1_000.0).round() as u32)),
            false => Err(E::invalid_value(de::Unexpected::Float(value), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Ratio, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Ratio, E> {
        self.visit_f64(value as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Plan {
        ratio: Ratio,
    }

    fn parse(text: &str) -> Result<u32, String> {
        let plan = toml::from_str::<Plan>(text).map_err(|e| e.to_string())?;
        Ok(plan.ratio.thousandths())
    }

    #[test]
    fn whole_and_broken_numbers() {
        assert_eq!(parse("ratio = 3"), Ok(3_000));
        assert_eq!(parse("ratio = 2.8"), Ok(2_800));
    }

    #[test]
    fn nothing_below_one() {
        for text in ["ratio = 0", "ratio = 0.999", "ratio = -3", "ratio = nan", "ratio = 101"] {
            assert!(parse(text).unwrap_err().contains(EXPECTED), "{text}");
        }
    }
}
