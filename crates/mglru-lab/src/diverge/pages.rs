//! Which pages of files are cached on one side alone.

use std::str::FromStr;

use serde::Serialize;

/// Names pages of a file by their numbers, first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    file: usize,
    first: usize,
    last: usize,
}

impl FromStr for Pages {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<usize>().ok();
        let read = || {
            let (file, pages) = text.split_once(':')?;
            let (first, last) = pages.split_once('-')?;
            Some(Self { file: number(file)?, first: number(first)?, last: number(last)? })
        };
        let pages = read().filter(|pages| pages.first <= pages.last);
        pages.ok_or_else(|| "want FILE:FIRST-LAST, such as 0:0-4095".to_string())
    }
}

impl Pages {
    /// Counts how many of them are set in the bitmaps of all files.
    pub fn cached(self, files: &[String]) -> u64 {
        let bits = files.get(self.file).map_or_else(Vec::new, |file| bits(file));
        let range = bits.iter().skip(self.first).take(self.last - self.first + 1);
        range.filter(|bit| **bit).count() as u64
    }
}

/// Lists the pages of a file that one side alone has, as ranges from first to last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alone {
    /// Numbers the file.
    pub file: usize,
    /// Holds the ranges of each side.
    pub ranges: [Vec<(u64, u64)>; 2],
}

/// Lists the differences between the bitmaps of both sides, a file each.
pub fn alone(sides: [&[String]; 2]) -> Vec<Alone> {
    let files = sides[0].iter().zip(sides[1]).enumerate();
    let compared = files.map(|(file, (a, b))| {
        let (a, b) = (bits(a), bits(b));
        let only = |of: &[bool], other: &[bool]| {
            let pages = (0..of.len()).filter(|at| of[*at] && !other.get(*at).unwrap_or(&false));
            ranges(pages.map(|page| page as u64))
        };
        Alone { file, ranges: [only(&a, &b), only(&b, &a)] }
    });
    compared.filter(|alone| alone.ranges.iter().any(|ranges| !ranges.is_empty())).collect()
}

/// The first page lies in a digit's lowest bit.
fn bits(text: &str) -> Vec<bool> {
    let digits = text.chars().map(|digit| digit.to_digit(16).unwrap_or(0));
    digits.flat_map(|four| (0..4).map(move |bit| four >> bit & 1 == 1)).collect()
}

fn ranges(pages: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for page in pages {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == page => *last = page,
            _ => found.push((page, page)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_named_are_counted_and_others_are_not() {
        // Pages 0, 1 and 4 to 7 of the second file.
        let files = ["f".to_string(), "3f".to_string()];
        let cached = |text: &str| text.parse::<Pages>().map(|pages| pages.cached(&files));
        assert_eq!((cached("1:1-5"), cached("0:0-9"), cached("2:0-9")), (Ok(3), Ok(4), Ok(0)));
        for text in ["1", "1:5", "1:5-4", "a:1-2", "1:-1-2"] {
            assert!(cached(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pages_of_one_side_alone_are_ranges() {
        let (a, b) = (["f1".to_string()], ["10".to_string()]);
        let alone = alone([&a, &b]);
        assert_eq!(alone, [Alone { file: 0, ranges: [vec![(1, 4)], vec![]] }]);
        assert_eq!(super::alone([&a, &a]), []);
    }
}
