//! How far two sides may be apart before they count as parted.

use std::fmt;
use std::str::FromStr;

use super::fields::Field;

/// Pages that never count beside a share: reclaim takes them in batches, one side a batch earlier.
const PAGES: u64 = 64;

/// Differences up to this do not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Allows so much, in the unit of the field.
    Exact(u64),
    /// Allows a share of the larger side, and so many pages on top of it.
    Share {
        /// Per cent.
        percent: f64,
        /// Pages, or events about pages.
        pages: u64,
    },
}

impl Tolerance {
    /// Allows nothing: two kernels do exactly the same until they part.
    pub const OF_KERNELS: Self = Self::Exact(0);
    /// Allows for a model, which is never the same in small numbers.
    pub const OF_A_MODEL: Self = Self::Share { percent: 5.0, pages: PAGES };

    /// Tells whether two values of a field are further apart.
    pub fn is_exceeded(self, field: &Field, [a, b]: [u64; 2]) -> bool {
        let apart = a.abs_diff(b);
        match self {
            Self::Exact(most) => apart > most,
            Self::Share { percent, pages } => {
                apart as f64 > percent / 100.0 * a.max(b) as f64 + (pages * field.page) as f64
            }
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Exact(most) => write!(f, "{most}"),
            Self::Share { percent, pages } => write!(f, "{percent}%+{pages}"),
        }
    }
}

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || "want N, P% or P%+PAGES, such as 0, 2% or 2%+32".to_string();
        let Some((percent, rest)) = text.split_once('%') else {
            return text.parse().map(Self::Exact).map_err(|_| wanted());
        };
        let percent = percent.parse().ok().filter(|p| (0.0..=100.0).contains(p));
        let pages = match rest {
            "" => Some(PAGES),
            _ => rest.strip_prefix('+').and_then(|pages| pages.parse::<u32>().ok().map(u64::from)),
        };
        let both = percent.zip(pages);
        both.map(|(percent, pages)| Self::Share { percent, pages }).ok_or_else(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::FIELDS;
    use super::*;

    #[test]
    fn a_tolerance_is_a_number_or_a_share_and_pages() {
        let read = |text: &str| text.parse::<Tolerance>();
        assert_eq!(read("7"), Ok(Tolerance::Exact(7)));
        assert_eq!(read("2%"), Ok(Tolerance::Share { percent: 2.0, pages: PAGES }));
        assert_eq!(read("0.5%+3").unwrap().to_string(), "0.5%+3");
        for text in ["", "x", "-1", "101%", "nan%", "2%3", "2%+", "%", "1.5"] {
            assert!(read(text).unwrap_err().starts_with("want N, P%"), "{text}");
        }
    }

    #[test]
    fn pages_are_counted_in_the_fields_own_unit() {
        let field = |name| FIELDS.iter().find(|field| field.name == name).unwrap();
        let exceeded = |name, a, b| {
            Tolerance::Share { percent: 10.0, pages: 2 }.is_exceeded(field(name), [a, b])
        };
        assert!(!exceeded("pgscan", 100, 88) && exceeded("pgscan", 100, 87));
        assert!(!exceeded("file", 0, 9_102) && exceeded("file", 0, 9_103));
        assert!(!exceeded("pgpgin", 8, 0) && exceeded("pgpgin", 9, 0));
        assert!(Tolerance::Exact(3).is_exceeded(field("file"), [0, 4]));
    }
}
