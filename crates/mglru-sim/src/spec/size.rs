//! Sizes as people write them: `10GiB`, `64M`, `4096`, `max`. Suffixes are binary, and `K`, `KB`
//! and `KiB` mean the same, as in cgroupfs.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PAGE_SIZE;

const EXPECTED: &str = "a size such as 4096, 64MiB, 10GiB or max";

/// Counts bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// Stands for no limit.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the size in whole pages; no limit stays `u64::MAX`.
    pub fn pages(self) -> u64 {
        match self {
            Self::MAX => u64::MAX,
            Self(bytes) => bytes / PAGE_SIZE,
        }
    }

    /// Multiplies the size by `ratio`, to the nearest page and at least one; 0 and no limit stay.
    pub fn scaled(self, ratio: f64) -> Self {
        match self {
            Self(0) | Self::MAX => self,
            Self(bytes) => {
                let pages = (bytes as f64 * ratio / PAGE_SIZE as f64).round() as u64;
                Self(pages.max(1).saturating_mul(PAGE_SIZE))
            }
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}`: expected {EXPECTED}");
        let trimmed = text.trim();
        if trimmed == "max" {
            return Ok(Self::MAX);
        }
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, suffix) = trimmed.split_at(digits.unwrap_or(trimmed.len()));
        let unit = unit(suffix.trim()).ok_or_else(refuse)?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(Self).ok_or_else(refuse);
        }
        let bytes = number.parse::<f64>().map_err(|_| refuse())? * unit as f64;
        // `as` would silently cut what is too large.
        match bytes < u64::MAX as f64 {
            true => Ok(Self(bytes.round() as u64)),
            false => Err(refuse()),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let fits = units.iter().find(|(shift, _)| self.0 != 0 && self.0.trailing_zeros() >= *shift);
        match (*self, fits) {
            (Self::MAX, _) => f.write_str("max"),
            (_, Some((shift, name))) => write!(f, "{}{name}", self.0 >> shift),
            (_, None) => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BytesOrText)
    }
}

struct BytesOrText;

impl Visitor<'_> for BytesOrText {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size(bytes))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
        let negative = |_| E::invalid_value(de::Unexpected::Signed(bytes), &self);
        u64::try_from(bytes).map(Size).map_err(negative)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        text.parse().map_err(E::custom)
    }
}

fn unit(suffix: &str) -> Option<u64> {
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    Some(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for bytes in [0, 1, 4096, 160 << 20, 10 << 30, 3 << 40, (10 << 30) + 1, u64::MAX] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
    }

    #[test]
    fn fractions_and_short_suffixes() {
        assert_eq!("4.5G".parse(), Ok(Size(4_831_838_208)));
        assert_eq!(" 64 m ".parse(), Ok(Size(64 << 20)));
    }

    #[test]
    fn refuses_nonsense() {
        for text in ["", "-1", "1.2.3", "GiB", "12q", "99999999999T", "1e400", "inf", "."] {
            let error = text.parse::<Size>().unwrap_err();
            assert!(error.contains("expected a size"), "{text}: {error}");
        }
    }

    #[test]
    fn scaling_keeps_whole_pages() {
        assert_eq!(Size(10 << 30).scaled(1.0 / 64.0), Size(160 << 20));
        assert_eq!(Size(4096).scaled(0.001), Size(4096));
        assert_eq!((Size::MAX.scaled(0.5), Size(0).scaled(2.0)), (Size::MAX, Size(0)));
        assert_eq!((Size::MAX.pages(), Size(8191).pages()), (u64::MAX, 1));
    }
}
