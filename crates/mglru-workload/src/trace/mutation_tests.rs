//! Damaged traces: every format and every kind of compression, some hundred mutations each. What
//! is read must be what a second, naive reader makes of the same bytes, or an error of one line.

use super::packed_tests::PACKS;
use super::tests::File;
use super::*;
use crate::rng::splitmix;

const MUTANTS: u64 = 400;

/// Reads a trace; nothing if it is not to be read.
type Said = Option<Vec<(u64, bool)>>;

/// A trace of each format, each with reads of 60 pages.
fn originals() -> Vec<(Format, Vec<u8>)> {
    let pages = || (0..60u64).map(|i| i * i % 23);
    let text = |head: &str, line: fn(u64) -> String| {
        pages().fold(head.to_string(), |text, page| text + &line(page) + "\n").into_bytes()
    };
    let binary = |record: fn(u64) -> Vec<u8>| pages().flat_map(record).collect();
    vec![
        (Format::Lirs, text("*\n", |page| page.to_string())),
        (Format::Plain, text("# p\n", |page| format!("{page:#x}"))),
        (Format::ArcLis, text("", |page| format!("{page} 2 0 1"))),
        (Format::UcsdAddress, text("", |page| format!("s {:#x} 1", page << 12))),
        (Format::Csv, text("time,page,op\n", |page| format!("9,{page},w"))),
        (Format::LcsCsv, text("version,time,op,size,lbn\n", |page| format!("1,2,2a,512,{page}"))),
        (Format::U32le, binary(|page| (page as u32).to_le_bytes().to_vec())),
        (
            Format::OracleGeneral,
            binary(|page| [&[0; 4], &page.to_le_bytes()[..], &[0; 12]].concat()),
        ),
    ]
}

/// Draws below a limit.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = splitmix(self.0);
        (self.0 % limit.max(1) as u64) as usize
    }
}

const HUGE: [&str; 8] = [
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "0xffffffffffffffff",
    "0x10000000000000000",
    "4294967296",
    "4503599627370496",
    "-1",
];

/// One of many ways to damage a trace.
pub(super) fn mutant(original: &[u8], seed: u64) -> Vec<u8> {
    let mut draw = Draw(seed);
    let mut bytes = original.to_vec();
    let at = draw.below(bytes.len());
    let to = (at + 1 + draw.below(12)).min(bytes.len());
    match seed % 10 {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << draw.below(8),
        2 => drop(bytes.splice(at..at, (0..7).map(|_| draw.below(256) as u8))),
        3 => drop(bytes.splice(at..at, HUGE[draw.below(HUGE.len())].bytes())),
        4 => drop(bytes.splice(at..to, HUGE[draw.below(HUGE.len())].bytes())),
        5 => drop(bytes.drain(at..to)),
        6 => bytes.extend_from_within(at..to),
        7 => drop(bytes.splice(at..at, *b"\r\n")),
        8 => drop(bytes.splice(at..at, *b"\n# 5\r \r")),
        _ => bytes = original.split(|&b| b == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]),
    }
    bytes
}

fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let all = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| all)
}

fn number(text: &str) -> Option<u64> {
    hexadecimal(text).or_else(|| decimal(text))
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let text: String = bytes.iter().map(|&b| char::from(b)).collect();
    text.replace("\r\n", "\n").split(['\n', '\r']).map(String::from).collect()
}

fn line(format: Format, line: &str) -> Said {
    let line = line.trim_matches([' ', '\t']);
    if line.is_empty() || line.starts_with('#') || (format == Format::Lirs && line == "*") {
        return Some(Vec::new());
    }
    let fields: Vec<&str> = line.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    match (format, fields.as_slice()) {
        (Format::Lirs, [page]) => Some(vec![(decimal(page)?, false)]),
        (Format::Plain, [page]) => Some(vec![(number(page)?, false)]),
        (Format::UcsdAddress, [op @ ("l" | "s"), address, gap]) => {
            decimal(gap)?;
            Some(vec![(hexadecimal(address)? >> 12, *op == "s")])
        }
        (Format::ArcLis, [first, nr, rest @ ..]) if rest.len() == 2 => {
            let (first, nr) = (decimal(first)?, decimal(nr)?);
            rest.iter().try_for_each(|field| decimal(field).map(drop))?;
            if nr > 1 << 24 {
                return None;
            }
            (0..nr).map(|i| Some((first.checked_add(i)?, false))).collect()
        }
        _ => None,
    }
}

fn fields(line: &str) -> Vec<String> {
    let blank = |c: char| c.is_ascii_whitespace();
    let field = |field: &str| {
        let field = field.trim_matches(blank);
        let inner = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner.unwrap_or(field).to_ascii_lowercase()
    };
    line.split(',').map(field).collect()
}

fn csv(format: Format, bytes: &[u8]) -> Said {
    let silent = |line: &String| {
        let line = line.trim_start_matches(|c: char| c.is_ascii_whitespace());
        line.is_empty() || line.starts_with('#')
    };
    let all: Vec<String> = lines(bytes).into_iter().filter(|line| !silent(line)).collect();
    let Some((head, rows)) = all.split_first() else { return Some(Vec::new()) };
    let plain = head.trim_matches(|c: char| c.is_ascii_whitespace()).to_ascii_lowercase();
    if format == Format::LcsCsv && plain != "version,time,op,size,lbn" {
        return None;
    }
    let names = fields(head);
    let among = |wanted: &[&str]| -> Vec<usize> {
        (0..names.len()).filter(|&at| wanted.contains(&&names[at][..])).collect()
    };
    let (keys, ops) = (among(&["page", "block", "lbn", "address"]), among(&["op"]));
    let sizes = among(&["size"]);
    if keys.len() != 1 || ops.len() > 1 || sizes.len() > 1 {
        return None;
    }
    let row = |row: &String| {
        let fields = fields(row);
        let key = number(fields.get(keys[0])?).filter(|_| fields.len() == names.len())?;
        sizes.iter().try_for_each(|&at| number(&fields[at]).map(drop))?;
        let write = match ops.first().map(|&at| &fields[at][..]) {
            None | Some("r" | "read" | "l" | "load" | "get" | "08" | "28" | "88" | "a8") => false,
            Some("w" | "write" | "s" | "store" | "set" | "put" | "0a" | "2a" | "8a" | "aa") => true,
            _ => return None,
        };
        Some((if names[keys[0]] == "address" { key >> 12 } else { key }, write))
    };
    rows.iter().map(row).collect()
}

/// Reads a trace the simple way.
fn naive(format: Format, bytes: &[u8]) -> Said {
    let whole = |size| (bytes.len() % size == 0).then(|| bytes.chunks(size));
    match format {
        Format::U32le => {
            let page = |r: &[u8]| (u32::from_le_bytes(r.try_into().unwrap()).into(), false);
            Some(whole(4)?.map(page).collect())
        }
        Format::OracleGeneral => {
            let page = |r: &[u8]| (u64::from_le_bytes(r[4..12].try_into().unwrap()), false);
            Some(whole(24)?.map(page).collect())
        }
        Format::Csv | Format::LcsCsv => csv(format, bytes),
        _ => lines(bytes)
            .iter()
            .map(|text| line(format, text))
            .collect::<Option<Vec<_>>>()
            .map(|all| all.concat()),
    }
}

/// Reads a trace, and checks that its errors are one line each.
fn read(format: Format, bytes: &[u8]) -> Said {
    let file = File::new("mutant", bytes);
    let all = || -> Result<Vec<(u64, bool)>, TraceError> {
        let mut reader = TraceReader::open(&file.0, Some(format), View::Requests)?;
        let (mut block, mut all) = (Vec::new(), Vec::new());
        while reader.read_block(&mut block)? {
            all.extend(block.iter().map(|r| (r.page, r.write)));
        }
        Ok(all)
    };
    match all() {
        Ok(said) => Some(said),
        Err(TraceError::Empty { .. }) => Some(Vec::new()),
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.contains("mutant"), "{text:?}");
            None
        }
    }
}

#[test]
fn mutants_of_every_format_are_read_as_a_naive_reader_does() {
    for (format, original) in originals() {
        assert!(read(format, &original).is_some_and(|said| said.len() >= 60), "{format}");
        let mut refused = 0;
        for seed in 0..MUTANTS {
            let bytes = mutant(&original, seed);
            let said = read(format, &bytes);
            refused += u64::from(said.is_none());
            assert_eq!(said, naive(format, &bytes), "{format}: {}", bytes.escape_ascii());
        }
        assert!((MUTANTS / 10..MUTANTS).contains(&refused), "{format}: {refused} refused");
    }
}

#[test]
fn mutants_of_compressed_traces_are_read_whole_or_refused() {
    let (format, original) = originals().pop().unwrap();
    let whole = naive(format, &original);
    for (name, pack) in PACKS {
        let packed = pack(&original);
        let mut refused = 0;
        for seed in (0..MUTANTS).filter(|seed| !matches!(seed % 10, 7..)) {
            let bytes = mutant(&packed, seed);
            // Without its magic number a stream is any bytes.
            if bytes.starts_with(&packed[..6]) {
                let said = read(format, &bytes);
                refused += u64::from(said.is_none());
                assert!(said.is_none() || said == whole, "{name}: seed {seed}: {said:?}");
            }
        }
        assert!(refused > MUTANTS / 3, "{name}: {refused} refused");
    }
}
