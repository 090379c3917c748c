//! Which pages of files are cached on one side alone.

use serde::Serialize;

/// Pages of a file on one side alone, as ranges from first to last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alone {
    /// The file's number.
    pub file: usize,
    /// The ranges of each side.
    pub ranges: [Vec<(u64, u64)>; 2],
}

/// What differs between the bitmaps of both sides, a file each.
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
    fn pages_of_one_side_alone_are_ranges() {
        let (a, b) = (["f1".to_string()], ["10".to_string()]);
        let alone = alone([&a, &b]);
        assert_eq!(alone, [Alone { file: 0, ranges: [vec![(1, 4)], vec![]] }]);
        assert_eq!(super::alone([&a, &a]), []);
    }
}
