//! Comma-separated values with a header line. Columns are found by name, in any order and case;
//! others are ignored. Fields may be blank-padded or quoted, commas inside quotes are not
//! supported. Blank lines and lines that begin with `#` are skipped, before the header too.
//!
//! Exactly one column says what is asked for, in decimal or `0x…`: `page` (page number), `block`
//! (block number, a page each), `lbn` (512-byte sector) or `address` (byte). The others may be
//! absent: `op` is `r read l load get`, `w write s store set put`, or a SCSI opcode in hex (`28`,
//! `2a`, …), reads without it; `size` is in bytes and matters to the view by pages only; `time` is
//! ignored.

use super::cursor::Cursor;
use super::line_ends::is_silent;
use super::record::{PAGE_SHIFT, RUN_MAX, Run, SECTOR_SHIFT, View};

/// The header that is expected.
const HEADER: &str = "a header with exactly one column page, block, lbn or address (what another \
                      program recorded: mglru trace import)";

/// Header of `lcs-csv`.
pub(super) const LCS_HEADER: &str = "version,time,op,size,lbn";

const READS: [&str; 9] = ["r", "read", "l", "load", "get", "08", "28", "88", "a8"];
const WRITES: [&str; 10] = ["w", "write", "s", "store", "set", "put", "0a", "2a", "8a", "aa"];

/// Names the unit that the key column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Page,
    Sector,
    Address,
}

/// Where the columns are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    key: Key,
    key_at: usize,
    op_at: Option<usize>,
    size_at: Option<usize>,
    nr: usize,
}

impl Columns {
    /// Finds the columns in a header line; else says what was expected.
    pub(super) fn parse(header: &[u8]) -> Result<Self, String> {
        let names: Vec<String> = fields(header)
            .map(|field| String::from_utf8_lossy(field).to_ascii_lowercase())
            .collect();
        let place = |wanted: &str| {
            let mut places = (0..names.len()).filter(|&at| names[at] == wanted);
            let place = places.next();
            match places.next() {
                None => Ok(place),
                Some(_) => Err(format!("a header with one column {wanted}")),
            }
        };
        let keys = [
            ("page", Key::Page),
            ("block", Key::Page),
            ("lbn", Key::Sector),
            ("address", Key::Address),
        ];
        let mut found = Vec::new();
        for (name, key) in keys {
            found.extend(place(name)?.map(|at| (at, key)));
        }
        let [(key_at, key)] = found[..] else {
            return Err(HEADER.into());
        };
        let (op_at, size_at) = (place("op")?, place("size")?);
        Ok(Columns { key, key_at, op_at, size_at, nr: names.len() })
    }

    /// Reads a line; nothing for a blank one or a comment, else what was expected.
    pub(super) fn read(&self, line: &[u8], view: View) -> Result<Option<Run>, String> {
        if is_silent(line) {
            return Ok(None);
        }
        let (mut key, mut write, mut size, mut nr) = (None, Some(false), Some(0), 0);
        for (at, field) in fields(line).enumerate() {
            nr = at + 1;
            match at {
                _ if at == self.key_at => key = number(field),
                _ if Some(at) == self.op_at => write = is_write(field),
                _ if Some(at) == self.size_at => size = number(field),
                _ => {}
            }
        }
        if nr != self.nr {
            return Err(format!("{} fields as in the header", self.nr));
        }
        let key = key.ok_or_else(|| format!("a number in column {}", self.key_at + 1))?;
        let write = write.ok_or("an op such as r, w, read, write, 28 or 2a")?;
        let size = size.ok_or("a number of bytes in column size")?;
        self.run(key, size, write, view)
            .map(Some)
            .ok_or_else(|| format!("at most {RUN_MAX} pages, all of them below 2^64"))
    }

    fn run(&self, key: u64, size: u64, write: bool, view: View) -> Option<Run> {
        let covering = |shift| Run::covering(key, shift, size.into(), write);
        match (self.key, view) {
            (Key::Page | Key::Sector, View::Requests) => Some(Run::one(key, write)),
            (Key::Address, View::Requests) => Some(Run::one(key >> PAGE_SHIFT, write)),
            (Key::Page, View::Pages) => covering(PAGE_SHIFT),
            (Key::Sector, View::Pages) => covering(SECTOR_SHIFT),
            (Key::Address, View::Pages) => covering(0),
        }
    }
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b',').map(|field| {
        let field = field.trim_ascii();
        match field {
            [b'"', inner @ .., b'"'] => inner,
            _ => field,
        }
    })
}

fn number(field: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(field);
    cursor.number().filter(|_| cursor.is_empty())
}

fn is_write(op: &[u8]) -> Option<bool> {
    let among = |names: &[&str]| names.iter().any(|n| n.as_bytes().eq_ignore_ascii_case(op));
    if among(&READS) {
        return Some(false);
    }
    among(&WRITES).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str, line: &str, view: View) -> Result<Option<(u64, u64, bool)>, String> {
        let columns = Columns::parse(header.as_bytes())?;
        let run = columns.read(line.as_bytes(), view)?;
        Ok(run.map(|run| (run.first, run.nr, run.write)))
    }

    #[test]
    fn every_key_in_both_views() {
        let lcs = "1,5633898,2a,6656,40409911";
        assert_eq!(read(LCS_HEADER, lcs, View::Requests), Ok(Some((40409911, 1, true))));
        assert_eq!(read(LCS_HEADER, lcs, View::Pages), Ok(Some((40409911 / 8, 3, true))));
        let address = |view| read("Time, Address ,OP", "0,0x2fff,r", view);
        assert_eq!(address(View::Requests), Ok(Some((2, 1, false))));
        assert_eq!(address(View::Pages), Ok(Some((2, 1, false))));
        assert_eq!(read("page,size", "7,8193", View::Pages), Ok(Some((7, 3, false))));
        assert_eq!(read("page,size", "7,8193", View::Requests), Ok(Some((7, 1, false))));
        assert_eq!(read("block", "\"9\"\r", View::Pages), Ok(Some((9, 1, false))));
        assert_eq!(read("block", "\r", View::Pages), Ok(None));
        assert_eq!(read("block", " # 9", View::Pages), Ok(None));
    }

    #[test]
    fn the_largest_keys_count_in_both_views() {
        const MOST: u64 = u64::MAX;
        let text = MOST.to_string();
        for (header, by_page, shift) in [
            ("page", MOST, 0),
            ("block", MOST, 0),
            ("lbn", MOST >> 3, 0),
            ("address", MOST >> 12, 12),
        ] {
            let read = |view| read(header, &text, view);
            assert_eq!(read(View::Requests), Ok(Some((MOST >> shift, 1, false))), "{header}");
            assert_eq!(read(View::Pages), Ok(Some((by_page, 1, false))), "{header}");
        }
        let at_2_52 = read("page,size", "4503599627370496,8192", View::Pages);
        assert_eq!(at_2_52, Ok(Some((1 << 52, 2, false))));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |header, line| read(header, line, View::Pages).unwrap_err();
        assert!(wrong("time,size", "").contains("exactly one column"));
        assert!(wrong("page,lbn", "").contains("exactly one column"));
        assert!(wrong("page,op", "1").contains("2 fields"));
        assert!(wrong("page,op", "1,r,3").contains("2 fields"));
        assert!(wrong("op,page", "r,x").contains("column 2"));
        assert!(wrong("page,op", "1,erase").contains("an op"));
        assert!(wrong("page,size", "1,-5").contains("bytes"));
        assert!(wrong("lbn,size", "18446744073709551615,513").contains("below 2^64"));
        assert!(wrong("page,size", "0,99999999999999").contains("at most 16777216 pages"));
        assert!(wrong("page,page", "").contains("one column page"));
        assert!(wrong("page,op,OP", "").contains("one column op"));
    }
}
