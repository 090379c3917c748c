//! The line formats with a fixed shape: LIRS, ARC, UCSD and plain numbers. Each function reads
//! one line and says what it stands for, nothing for a line that is to be skipped, or what it
//! expected instead.

use super::cursor::Cursor;
use super::record::{PAGE_SHIFT, Run, View, sector_address};

/// What a line stands for, or what was expected in its place.
pub(super) type Line = Result<Option<Run>, &'static str>;

/// `lirs`: a block number, `*` or nothing.
pub(super) fn lirs(line: &mut Cursor) -> Line {
    const EXPECTED: &str = "one decimal block number below 2^64, a blank line or *";
    if line.peek() == Some(b'*') {
        line.bump();
        return blank(line, EXPECTED);
    }
    match line.decimal() {
        Some(block) if line.line_end() => Ok(Some(Run::one(block, false))),
        Some(_) => Err(EXPECTED),
        None => blank(line, EXPECTED),
    }
}

/// `plain`: a number, a `#` comment or nothing.
pub(super) fn plain(line: &mut Cursor) -> Line {
    const EXPECTED: &str = "one number below 2^64 (decimal or 0x…), a blank line or a # comment";
    line.spaces();
    match line.peek() {
        Some(b'#') => {
            while line.peek().is_some_and(|b| b != b'\n') {
                line.bump();
            }
            blank(line, EXPECTED)
        }
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
    if matches!(line.peek(), Some(b'\n' | b'\r')) {
        return blank(line, EXPECTED);
    }
    let first = line.decimal().ok_or(EXPECTED)?;
    let nr = following(line).ok_or(EXPECTED)?;
    following(line).and_then(|_| following(line)).ok_or(EXPECTED)?;
    let run = match view {
        View::Requests => first.checked_add(nr).map(|_| Run { first, nr, write: false }),
        View::Pages if nr == 0 => Some(Run { first, nr, write: false }),
        View::Pages => sector_address(first)
            .zip(sector_address(nr))
            .and_then(|(at, bytes)| Run::covering(at, bytes, false)),
    };
    ended(line, run.ok_or("blocks whose numbers fit into 64 bits")?, EXPECTED)
}

/// `ucsd-address`: load or store, address, instructions since the access before.
pub(super) fn ucsd(line: &mut Cursor) -> Line {
    const EXPECTED: &str = "l or s, an address 0x… and a decimal number";
    let write = match line.peek() {
        Some(b'l') => false,
        Some(b's') => true,
        _ => return blank(line, EXPECTED),
    };
    line.bump();
    let is_hex = line.spaces() && line.peek() == Some(b'0');
    let address = line.number().filter(|_| is_hex).ok_or(EXPECTED)?;
    following(line).ok_or(EXPECTED)?;
    ended(line, Run::one(address >> PAGE_SHIFT, write), EXPECTED)
}

fn following(line: &mut Cursor) -> Option<u64> {
    if line.spaces() { line.decimal() } else { None }
}

fn blank(line: &mut Cursor, expected: &'static str) -> Line {
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
    fn bad_lines() {
        for text in ["-1\n", "1 2\n", "x\n", "**\n", "18446744073709551616\n"] {
            assert!(lirs(&mut Cursor::new(text.as_bytes())).is_err(), "{text:?}");
        }
        for text in ["1\n", "1 2 3\n", "1 2 3 4 5\n", "18446744073709551615 2 0 0\n", "a 1 0 0\n"] {
            let line = arc(&mut Cursor::new(text.as_bytes()), View::Requests);
            assert!(line.is_err(), "{text:?}");
        }
        for text in ["l 0x10\n", "x 0x10 1\n", "l 10 1\n", "l0x10 1\n", "s 0xg 1\n"] {
            assert!(ucsd(&mut Cursor::new(text.as_bytes())).is_err(), "{text:?}");
        }
        for text in ["1,2\n", "0x\n", "1.5\n"] {
            assert!(plain(&mut Cursor::new(text.as_bytes())).is_err(), "{text:?}");
        }
    }
}
