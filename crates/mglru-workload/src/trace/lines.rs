//! The line formats with a fixed shape: LIRS, ARC, UCSD and plain numbers. Each function reads
//! one line and says what it stands for, nothing for a line that is to be skipped, or what it
//! expected instead. Blank lines and `#` comments are skipped in all of them.

use super::cursor::Cursor;
use super::record::{PAGE_SHIFT, Run, SECTOR_SHIFT, View};

/// The meaning of a line, or the text that was expected in its place.
pub(super) type Line = Result<Option<Run>, &'static str>;

/// `lirs`: a block number or `*`.
pub(super) fn lirs(line: &mut Cursor) -> Line {
    const EXPECTED: &str = "one decimal block number below 2^64, *, a blank line or a # comment";
    if let Some(block) = line.decimal() {
        return ended(line, Run::one(block, false), EXPECTED);
    }
    if line.spaces() {
        return lirs(line);
    }
    if line.peek() == Some(b'*') {
        line.bump();
        return if line.line_end() { Ok(None) } else { Err(EXPECTED) };
    }
    blank(line, EXPECTED)
}

/// `plain`: a number.
pub(super) fn plain(line: &mut Cursor) -> Line {
    const EXPECTED: &str = "one number below 2^64 (decimal or 0x…), a blank line or a # comment";
    line.spaces();
    match line.peek() {
        Some(b'0'..=b'9') => {
            let page = line.number().ok_or(EXPECTED)?;
            ended(line, Run::one(page, false), EXPECTED)
        }
        _ => blank(line, EXPECTED),
    }
}

/// `arc-lis`: first block, number of blocks, ignored, request number.
pub(super) fn arc(line: &mut Cursor, view: View) -> Line {
    const EXPECTED: &str = "four decimal numbers: start_block nblocks ignored reqno";
    line.spaces();
    if !line.peek().is_some_and(|b| b.is_ascii_digit()) {
        return blank(line, EXPECTED);
    }
    let first = line.decimal().ok_or(EXPECTED)?;
    let nr = following(line).ok_or(EXPECTED)?;
    following(line).and_then(|_| following(line)).ok_or(EXPECTED)?;
    let run = match view {
        View::Pages if nr > 0 => {
            Run::covering(first, SECTOR_SHIFT, u128::from(nr) << SECTOR_SHIFT, false)
        }
        _ => Run::several(first, nr, false),
    };
    ended(line, run.ok_or("at most 16777216 blocks, all of them below 2^64")?, EXPECTED)
}

/// `ucsd-address`: load or store, address, instructions since the access before.
pub(super) fn ucsd(line: &mut Cursor) -> Line {
    const EXPECTED: &str = "l or s, an address 0x… and a decimal number";
    line.spaces();
    let write = match line.peek() {
        Some(b'l') => false,
        Some(b's') => true,
        _ => return blank(line, EXPECTED),
    };
    line.bump();
    let address = line.spaces().then(|| line.hexadecimal()).flatten().ok_or(EXPECTED)?;
    following(line).ok_or(EXPECTED)?;
    ended(line, Run::one(address >> PAGE_SHIFT, write), EXPECTED)
}

fn following(line: &mut Cursor) -> Option<u64> {
    if line.spaces() { line.decimal() } else { None }
}

fn blank(line: &mut Cursor, expected: &'static str) -> Line {
    line.spaces();
    if line.peek() == Some(b'#') {
        line.rest_of_line();
    }
    if line.line_end() { Ok(None) } else { Err(expected) }
}

fn ended(line: &mut Cursor, run: Run, expected: &'static str) -> Line {
    if line.line_end() { Ok(Some(run)) } else { Err(expected) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(line: Line) -> Option<(u64, u64, bool)> {
        line.unwrap().map(|run| (run.first, run.nr, run.write))
    }

    #[test]
    fn good_lines() {
        assert_eq!(pages(lirs(&mut Cursor::new(b"17\r\n"))), Some((17, 1, false)));
        assert_eq!(pages(lirs(&mut Cursor::new(b"*\r\n"))), None);
        assert_eq!(pages(lirs(&mut Cursor::new(b"\n"))), None);
        assert_eq!(pages(plain(&mut Cursor::new(b" 0x11 \n"))), Some((17, 1, false)));
        assert_eq!(pages(plain(&mut Cursor::new(b"# 5\n"))), None);
        let range = |view| pages(arc(&mut Cursor::new(b"15 18 0 3\n"), view));
        assert_eq!(range(View::Requests), Some((15, 18, false)));
        assert_eq!(range(View::Pages), Some((1, 4, false)));
        assert_eq!(pages(ucsd(&mut Cursor::new(b"s 0x2fff 1\n"))), Some((2, 1, true)));
        assert_eq!(pages(ucsd(&mut Cursor::new(b"l 0x3000 1"))), Some((3, 1, false)));
    }

    #[test]
    fn the_largest_numbers_count() {
        const MOST: u64 = u64::MAX;
        assert_eq!(pages(lirs(&mut Cursor::new(b"18446744073709551615"))), Some((MOST, 1, false)));
        assert_eq!(pages(plain(&mut Cursor::new(b"0xffffffffffffffff"))), Some((MOST, 1, false)));
        let last = |view| pages(arc(&mut Cursor::new(b"18446744073709551615 1 0 0"), view));
        assert_eq!(last(View::Requests), Some((MOST, 1, false)));
        assert_eq!(last(View::Pages), Some((MOST >> 3, 1, false)));
        let line = b"l 0xffffffffffffffff 1";
        assert_eq!(pages(ucsd(&mut Cursor::new(line))), Some((MOST >> 12, 1, false)));
    }

    #[test]
    fn comments_and_blanks_are_skipped_and_every_end_ends_a_line() {
        let all: [fn(&mut Cursor) -> Line; 4] =
            [lirs, plain, ucsd, |line| arc(line, View::Requests)];
        for read in all {
            for text in ["\n", "\r\n", "\r", "  \n", "# 1 2\n", " \t# l 0x1 1\r", "#"] {
                let mut cursor = Cursor::new(text.as_bytes());
                assert_eq!(pages(read(&mut cursor)), None, "{text:?}");
                assert!(cursor.is_empty(), "{text:?}");
            }
        }
        let mut cursor = Cursor::new(b"5\r6\r\n7");
        let mut next = || pages(lirs(&mut cursor)).map(|(page, ..)| page);
        assert_eq!([next(), next(), next()], [Some(5), Some(6), Some(7)]);
    }

    #[test]
    fn bad_lines() {
        for text in ["-1\n", "1 2\n", "x\n", "**\n", "* # 5\n", "18446744073709551616\n"] {
            assert!(lirs(&mut Cursor::new(text.as_bytes())).is_err(), "{text:?}");
        }
        for text in [
            "1\n",
            "1 2 3\n",
            "1 2 3 4 5\n",
            "18446744073709551615 2 0 0\n",
            "a 1 0 0\n",
            "0 16777217 0 0\n",
            "-1 1 0 0\n",
        ] {
            let line = arc(&mut Cursor::new(text.as_bytes()), View::Requests);
            assert!(line.is_err(), "{text:?}");
        }
        for text in ["l 0x10\n", "x 0x10 1\n", "l 10 1\n", "l 010 1\n", "l0x10 1\n", "s 0xg 1\n"] {
            assert!(ucsd(&mut Cursor::new(text.as_bytes())).is_err(), "{text:?}");
        }
        for text in ["1,2\n", "0x\n", "1.5\n"] {
            assert!(plain(&mut Cursor::new(text.as_bytes())).is_err(), "{text:?}");
        }
    }
}
