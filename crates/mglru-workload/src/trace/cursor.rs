//! Numbers out of text, eight digits at a time: a trace of decimal numbers is read about as fast
//! as it is decompressed.

const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
/// Added to a byte, carries into its high bit exactly when the byte exceeds 9.
const ABOVE_NINE: u64 = 0x7676_7676_7676_7676;

/// A place in some text; every method moves it past what it reads.
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the beginning of `text`.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Cursor { text, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// True when all is read.
    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.text.len()
    }

    /// The byte that comes next.
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Moves past one byte.
    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    /// Moves past spaces and tabs; false if there are none.
    pub(super) fn spaces(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at > start
    }

    /// Moves past trailing blanks and the line's end (`\n`, `\r` or both); false if something
    /// else is in the way.
    #[inline]
    pub(super) fn line_end(&mut self) -> bool {
        self.spaces();
        match self.peek() {
            None => {}
            Some(b'\n') => self.at += 1,
            Some(b'\r') => {
                self.at += 1;
                self.at += usize::from(self.peek() == Some(b'\n'));
            }
            Some(_) => return false,
        }
        true
    }

    /// Moves to the end of the line.
    pub(super) fn rest_of_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    }

    fn is_hex(&self) -> bool {
        let prefix = self.text.get(self.at..self.at + 2);
        prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(b"0x"))
    }

    /// A decimal number below 2^64.
    pub(super) fn decimal(&mut self) -> Option<u64> {
        if let Some(chunk) = self.text.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let digits = u64::from_le_bytes(*chunk) ^ ZEROS;
            let other = (((digits & !HIGH_BITS) + ABOVE_NINE) | digits) & HIGH_BITS;
            let nr = other.trailing_zeros() / 8;
            if (1..8).contains(&nr) {
                self.at += nr as usize;
                return Some(eight_digits(digits << (64 - 8 * nr)));
            }
        }
        self.digits(10)
    }

    /// A hexadecimal number below 2^64 behind its prefix `0x`.
    #[inline]
    pub(super) fn hexadecimal(&mut self) -> Option<u64> {
        if !self.is_hex() {
            return None;
        }
        self.at += 2;
        self.digits(16)
    }

    /// A number, decimal or hexadecimal with `0x`.
    pub(super) fn number(&mut self) -> Option<u64> {
        if self.is_hex() { self.hexadecimal() } else { self.decimal() }
    }

    fn digits(&mut self, radix: u32) -> Option<u64> {
        let start = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.peek().and_then(|b| (b as char).to_digit(radix)) {
            value = value.checked_mul(radix.into())?.checked_add(digit.into())?;
            self.at += 1;
        }
        (self.at > start).then_some(value)
    }
}

/// Value of eight digits (each 0 to 9, not ASCII), the most significant in the lowest byte.
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10 * 256 + 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 * 65536 + 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10000 * (1 << 32) + 1) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_every_length_and_position() {
        for value in [0, 7, 42, 999, 1234567, 12345678, 99999999, 123456789, u64::MAX] {
            for tail in ["", "\n", " 5", ",xxxxxxxxxx", "\u{ff}xxxxxxxxx", ":::::::::"] {
                let text = format!("{value}{tail}");
                let mut cursor = Cursor::new(text.as_bytes());
                assert_eq!(cursor.decimal(), Some(value), "{text:?}");
                assert_eq!(cursor.position(), value.to_string().len(), "{text:?}");
            }
        }
    }

    #[test]
    fn no_number_and_too_large_a_number_are_refused() {
        for text in ["", "x", "-1234567890", " 1", "18446744073709551616"] {
            assert_eq!(Cursor::new(text.as_bytes()).decimal(), None, "{text:?}");
        }
        assert_eq!(Cursor::new(b"0x").number(), None);
        assert_eq!(Cursor::new(b"0x10000000000000000").number(), None);
    }

    #[test]
    fn leading_zeros_and_hexadecimal() {
        assert_eq!(Cursor::new(b"0000000000000000000000000012,").decimal(), Some(12));
        assert_eq!(Cursor::new(b"0x1fffff58").number(), Some(0x1fff_ff58));
        assert_eq!(Cursor::new(b"0XfF").number(), Some(255));
        assert_eq!(Cursor::new(b"0").number(), Some(0));
    }
}
