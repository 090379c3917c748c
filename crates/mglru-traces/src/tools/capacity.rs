//! Sizes of caches as people write them: pages (`4096`), bytes (`64MiB`) or a share of the trace's
//! distinct pages (`1%`).

use std::str::FromStr;

use mglru_sim::spec::{PAGE_SIZE, Size};

/// Decimals a percentage may have.
const DECIMALS_MAX: usize = 6;

/// Gives the size of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capacity {
    /// Counts pages, at least one.
    Pages(u64),
    /// Holds a share of the distinct pages, in millionths of a percent.
    Share(u64),
}

/// A hundred percent.
const WHOLE: u64 = 100 * 10u64.pow(DECIMALS_MAX as u32);

/// Reports a text that is not the size of a cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("size \"{text}\": expected {expected}")]
pub struct BadCapacity {
    text: String,
    expected: &'static str,
}

impl BadCapacity {
    /// Describes the forms that would have been right.
    pub fn expected(&self) -> String {
        format!("expected {}", self.expected)
    }
}

impl Capacity {
    /// Depends on the trace.
    pub fn is_share(&self) -> bool {
        matches!(self, Capacity::Share(_))
    }

    /// Returns the pages for a trace of `unique` distinct ones: shares are rounded to the nearest
    /// page (halves up) and are at least one.
    pub fn pages(&self, unique: u32) -> u64 {
        match *self {
            Capacity::Pages(pages) => pages,
            Capacity::Share(share) => {
                let scaled = u128::from(share) * u128::from(unique) + u128::from(WHOLE / 2);
                ((scaled / u128::from(WHOLE)) as u64).max(1)
            }
        }
    }
}

impl FromStr for Capacity {
    type Err = BadCapacity;

    fn from_str(text: &str) -> Result<Self, BadCapacity> {
        let bad = |expected| BadCapacity { text: text.to_string(), expected };
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(bad("pages (4096), bytes (64MiB) or a share of the distinct pages (1%)"));
        }
        if let Some(percent) = text.strip_suffix('%') {
            const EXPECTED: &str = "a share above 0% and at most 100%, up to 6 decimals";
            let share = millionths(percent).filter(|share| (1..=WHOLE).contains(share));
            return share.map(Capacity::Share).ok_or_else(|| bad(EXPECTED));
        }
        let pages = if is_number(text) {
            text.parse().map_err(|_| bad("fewer than 2^64 pages"))?
        } else {
            let size: Result<Size, _> = text.parse();
            let Size(bytes) = size.map_err(|_| bad("bytes with a unit, such as 64MiB"))?;
            if bytes % PAGE_SIZE != 0 {
                return Err(bad("a multiple of the page size, 4096 bytes"));
            }
            bytes / PAGE_SIZE
        };
        if pages == 0 { Err(bad("at least one page")) } else { Ok(Capacity::Pages(pages)) }
    }
}

/// A decimal number times a million, exactly.
fn millionths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > DECIMALS_MAX {
        return None;
    }
    let fraction: u64 = format!("{decimals:0<DECIMALS_MAX$}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(10u64.pow(DECIMALS_MAX as u32))?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_size() {
        let pages = |text: &str, unique| text.parse::<Capacity>().unwrap().pages(unique);
        assert_eq!(pages("4096", 0), 4096);
        assert_eq!(pages("64MiB", 0), 16384);
        assert_eq!(pages("4096B", 0), 1);
        assert_eq!(pages("1%", 1011), 10);
        assert_eq!(pages("5%", 1011), 51);
        assert_eq!(pages("0.1%", 6_015), 6);
        assert_eq!(pages("50%", 3), 2);
        assert_eq!(pages("0.000001%", 5), 1);
        assert_eq!(pages("100%", u32::MAX), u64::from(u32::MAX));
    }

    #[test]
    fn what_is_no_size() {
        let wrong = ["", "0", "-1", "x", "max", "0%", "101%", "1.%", ".5%", "1e3%", "0.0000001%"];
        let sized = ["4097B", "0MiB", "5 apples", "99999999999999999999", "99999999999TiB"];
        for text in wrong.iter().chain(&sized) {
            let error = text.parse::<Capacity>().unwrap_err().to_string();
            assert!(error.contains(&format!("\"{text}\"")), "{error}");
        }
    }
}
