//! Sizes and numbers of the compact format.

use flate2::Crc;

use crate::trace::event::{Head, TimeUnit};

/// The first bytes of a trace; no text and no number of a small page begins so.
pub(in crate::trace) const MAGIC: [u8; 8] = *b"\x89MGLRUT\n";
/// Version of the layout.
pub(super) const VERSION: u8 = 1;
/// Bytes of the head: magic, version, flags, page shift, unit of time, checksum.
pub(super) const HEAD_BYTES: usize = 16;
/// The flag of a trace of several spaces.
const SPACES: u8 = 1;

/// Most events of a block.
pub(super) const BLOCK_EVENTS: usize = 1 << 17;
/// Columns of a block.
pub(super) const COLUMNS: usize = 8;
/// Bytes before a block's columns: number of events, and the compressed length of each column.
pub(super) const BLOCK_HEAD_BYTES: usize = 4 + 4 * COLUMNS;
/// In place of a block's number of events: the end mark, which counts all events.
pub(super) const END: u32 = u32::MAX;
/// Bytes of the end mark.
pub(super) const END_BYTES: usize = 4 + 8 + CHECKSUM_BYTES;
/// Bytes of a checksum.
pub(super) const CHECKSUM_BYTES: usize = 4;
/// Most bytes of the names of one block.
pub(super) const NAMES_MAX: usize = 1 << 20;
/// Longest name of a space.
pub(super) const NAME_BYTES: usize = 4096;

/// A column of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Says how each event's page is written.
    Tokens = 0,
    /// Holds low bytes of numbers.
    Low = 1,
    /// Holds second bytes of numbers.
    High = 2,
    /// Holds pages, spaces and lengths that have to be written in full.
    Literals = 3,
    /// Says what happened.
    Operations = 4,
    /// Holds the pages of each event.
    Lengths = 5,
    /// Differences of times.
    Times = 6,
    /// Holds names of spaces that appear here.
    Names = 7,
}

impl Column {
    /// All columns, as they lie in a block.
    pub(super) const ALL: [Column; COLUMNS] = [
        Column::Tokens,
        Column::Low,
        Column::High,
        Column::Literals,
        Column::Operations,
        Column::Lengths,
        Column::Times,
        Column::Names,
    ];

    /// Most bytes that the column has for `nr` events.
    pub(super) fn most(self, nr: usize) -> usize {
        match self {
            Column::Literals => nr * 3 * VARINT_BYTES,
            Column::Times => nr * VARINT_BYTES,
            Column::Names => NAMES_MAX,
            _ => nr,
        }
    }
}

/// Longest number of variable length.
const VARINT_BYTES: usize = 10;

/// Adds up a checksum (CRC-32).
pub(super) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}

/// Writes the head.
pub(super) fn head_bytes(head: Head) -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8] = VERSION;
    bytes[9] = if head.spaces { SPACES } else { 0 };
    bytes[10] = head.page_shift;
    bytes[11] = head.time as u8;
    let sum = checksum(&[&bytes[..12]]);
    bytes[12..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Reads the head; else says what is wrong.
pub(super) fn read_head(bytes: &[u8; HEAD_BYTES]) -> Result<Head, String> {
    let [.., a, b, c, d] = *bytes;
    let version = bytes[8];
    if version != VERSION {
        return Err(format!("version {version} of the format, where {VERSION} is read"));
    }
    if u32::from_le_bytes([a, b, c, d]) != checksum(&[&bytes[..12]]) {
        return Err("damaged: the checksum of the head is another".to_string());
    }
    let time = TimeUnit::from_number(bytes[11]);
    match (bytes[9], bytes[10], time) {
        (0..=SPACES, 0 | 12, Some(time)) => {
            Ok(Head { page_shift: bytes[10], time, spaces: bytes[9] == SPACES })
        }
        _ => Err("damaged: the head has an unknown value".to_string()),
    }
}

/// Appends a number, seven bits a byte, the low ones first.
pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from `bytes` at `at`; nothing if none ends there.
#[inline]
pub(super) fn take_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Folds a difference so that small ones of either sign are small numbers.
pub(super) fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// Undoes [`zigzag`].
pub(super) fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 1 << 35, u64::MAX - 1, u64::MAX] {
            let (mut bytes, mut at) = (Vec::new(), 0);
            put_varint(value, &mut bytes);
            assert_eq!((take_varint(&bytes, &mut at), at), (Some(value), bytes.len()));
            assert_eq!(unzigzag(zigzag(value)), value);
            assert_eq!(take_varint(&bytes[..bytes.len() - 1], &mut 0), None);
        }
        assert_eq!((zigzag(u64::MAX), zigzag(1)), (1, 2));
        assert_eq!(take_varint(&[0xff; 11], &mut 0), None);
    }

    #[test]
    fn a_head_is_held_to_its_checksum_and_version() {
        let head = Head { page_shift: 12, time: TimeUnit::Nanosecond, spaces: true };
        let bytes = head_bytes(head);
        assert_eq!(read_head(&bytes), Ok(head));
        for (at, expected) in [(8, "version"), (10, "checksum"), (13, "checksum")] {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert!(read_head(&damaged).unwrap_err().contains(expected), "{at}");
        }
    }
}
