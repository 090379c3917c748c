//! Fields of lines: numbers, times, operations, keys, and numbers for the spaces that they name.

use hashbrown::HashMap;

use crate::rng::splitmix;
use crate::trace::cursor::Cursor;
use crate::trace::event::Operation;

/// Words for operations; those without one are passed over.
const WORDS: [(Option<Operation>, &[&str]); 4] = [
    (
        Some(Operation::Read),
        &[
            "r",
            "read",
            "rs",
            "l",
            "load",
            "get",
            "gets",
            "get_lease",
            "copy",
            "0",
            "08",
            "28",
            "88",
            "a8",
        ],
    ),
    (
        Some(Operation::Write),
        &[
            "w",
            "write",
            "ws",
            "s",
            "store",
            "set",
            "set_lease",
            "put",
            "add",
            "replace",
            "cas",
            "append",
            "prepend",
            "incr",
            "decr",
            "1",
            "0a",
            "2a",
            "8a",
            "aa",
        ],
    ),
    (Some(Operation::Discard), &["d", "delete", "discard", "trim", "unmap"]),
    (None, &["head", "touch", "flush", "f", "n"]),
];

/// Words around an operation that say nothing, as object stores write it.
const FRAME: (&[u8], &[u8]) = (b"rest.", b".object");

/// Reads an operation, `Some(None)` for one to be passed over; nothing for no operation.
pub(super) fn operation(field: &[u8]) -> Option<Option<Operation>> {
    let word = field.to_ascii_lowercase();
    let inner = word.strip_prefix(FRAME.0).and_then(|rest| rest.strip_suffix(FRAME.1));
    let word = inner.unwrap_or(&word);
    let known = WORDS.iter().find(|(_, words)| words.iter().any(|w| w.as_bytes() == word));
    known.map(|&(operation, _)| operation)
}

/// Reads a number below 2^64, decimal or `0x…`.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(field);
    cursor.number().filter(|_| cursor.is_empty())
}

/// Reads digits of hexadecimal, with `0x` before them or without.
pub(super) fn hexadecimal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)
}

/// Reads a time with or without decimals, in units of so many nanoseconds.
pub(super) fn time(field: &[u8], nanoseconds: u64) -> Option<u64> {
    let at = field.iter().position(|&b| b == b'.').unwrap_or(field.len());
    let (whole, decimals) = field.split_at(at);
    let mut total = number(whole)?.checked_mul(nanoseconds)?;
    let decimals = decimals.strip_prefix(b".").unwrap_or_default();
    let mut unit = nanoseconds;
    for digit in decimals {
        if !digit.is_ascii_digit() {
            return None;
        }
        unit /= 10;
        total = total.checked_add(u64::from(digit - b'0') * unit)?;
    }
    Some(total)
}

/// The number of an object: decimal numbers below 2^64 are their own, other keys are hashed.
pub(super) fn key(field: &[u8]) -> u64 {
    let is_canonical = field.first() != Some(&b'0') || field.len() == 1;
    let own = is_canonical
        .then(|| Cursor::new(field))
        .and_then(|mut cursor| cursor.decimal().filter(|_| cursor.is_empty()));
    own.unwrap_or_else(|| hash(field))
}

/// FNV-1a of the bytes, mixed.
fn hash(bytes: &[u8]) -> u64 {
    let add = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    splitmix(bytes.iter().fold(0xcbf2_9ce4_8422_2325, add))
}

/// Fields between blanks.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Numbers of spaces, in the order of their first appearance.
#[derive(Default)]
pub(super) struct Spaces {
    numbers: HashMap<Vec<u8>, u32>,
    fresh: Vec<(u32, String)>,
}

impl Spaces {
    /// The number of a space; nothing if there are 2^32 already.
    pub(super) fn number(&mut self, name: &[u8]) -> Result<u32, String> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        let number = u32::try_from(self.numbers.len()).map_err(|_| "fewer than 2^32 spaces")?;
        self.numbers.insert(name.to_vec(), number);
        self.fresh.push((number, String::from_utf8_lossy(name).into_owned()));
        Ok(number)
    }

    /// Takes the names that are new.
    pub(super) fn names(&mut self) -> Vec<(u32, String)> {
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_decimals_and_their_bounds() {
        assert_eq!(time(b"1.5", 1_000_000_000), Some(1_500_000_000));
        assert_eq!(time(b"0.0000000019", 1_000_000_000), Some(1));
        assert_eq!(time(b"128166372003061629", 100), Some(12_816_637_200_306_162_900));
        assert_eq!(time(b"18446744073", 1_000_000_000), Some(18_446_744_073_000_000_000));
        for wrong in ["", ".5", "1.x", "-1", "99999999999", "1e5"] {
            assert_eq!(time(wrong.as_bytes(), 1_000_000_000), None, "{wrong:?}");
        }
    }

    #[test]
    fn keys_are_numbers_or_hashed() {
        assert_eq!((key(b"0"), key(b"17"), key(b"18446744073709551615")), (0, 17, u64::MAX));
        let others: [&[u8]; 6] =
            [b"007", b"18446744073709551616", b"nz:u:eeW511", b"-1", b"", b"x"];
        for other in others {
            assert!(key(other) > 1 << 32, "{other:?}");
        }
        assert_ne!(key(b"a"), key(b"b"));
    }

    #[test]
    fn words_for_operations() {
        assert_eq!(operation(b"REST.PUT.OBJECT"), Some(Some(Operation::Write)));
        assert_eq!(operation(b"Read"), Some(Some(Operation::Read)));
        assert_eq!(operation(b"delete"), Some(Some(Operation::Discard)));
        assert_eq!(operation(b"REST.HEAD.OBJECT"), Some(None));
        assert_eq!(operation(b"erase"), None);
    }
}
