//! The trace formats, and how one is told by name or content.
//!
//! | name | a record | its page |
//! |---|---|---|
//! | `lirs` | one decimal number a line; blank lines and `*` are skipped | the number |
//! | `arc-lis` | `start nblocks ignored reqno` | `nblocks` 512-byte blocks from `start` |
//! | `u32le` | 4 bytes, little endian | the number |
//! | `lcs-csv` | CSV headed `version,time,op,size,lbn`, `op` a SCSI opcode | `lbn` |
//! | `ucsd-address` | `l` or `s`, `0xADDR`, a number | `ADDR >> 12` |
//! | `plain` | one number a line, or `0x…`; blank lines and `#…` are skipped | the number |
//! | `csv` | CSV with a header, see the head of `csv.rs` | by column |
//! | `oracle-general` | 24 bytes: u32 time, u64 id, u32 size, i64 next | the id |

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::csv::LCS_HEADER;
use super::cursor::Cursor;

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Block numbers as in the LIRS authors' traces.
    Lirs,
    /// Block ranges as in the ARC authors' traces.
    ArcLis,
    /// Raw little-endian 32-bit numbers.
    U32le,
    /// CloudPhysics I/O as libCacheSim ships it.
    LcsCsv,
    /// Loads and stores by address.
    UcsdAddress,
    /// One number a line.
    Plain,
    /// Comma-separated values with a header.
    Csv,
    /// libCacheSim's binary format.
    OracleGeneral,
}

/// Names: the first of a format is the one printed, the others are accepted.
const NAMES: [(&str, Format); 12] = [
    ("lirs", Format::Lirs),
    ("arc-lis", Format::ArcLis),
    ("u32le", Format::U32le),
    ("lcs-csv", Format::LcsCsv),
    ("ucsd-address", Format::UcsdAddress),
    ("plain", Format::Plain),
    ("csv", Format::Csv),
    ("oracle-general", Format::OracleGeneral),
    ("u32le-dense", Format::U32le),
    ("u32", Format::U32le),
    ("arc", Format::ArcLis),
    ("oracleGeneral", Format::OracleGeneral),
];

/// Suffixes that settle the format; `.csv` is settled by its header.
const SUFFIXES: [(&str, Format); 6] = [
    ("trc", Format::Lirs),
    ("lis", Format::ArcLis),
    ("u32", Format::U32le),
    ("addr", Format::UcsdAddress),
    ("oraclegeneral", Format::OracleGeneral),
    ("plain", Format::Plain),
];

impl Format {
    /// The names users may give, one per format.
    pub fn known() -> String {
        let names: Vec<&str> = NAMES[..8].iter().map(|&(name, _)| name).collect();
        names.join(", ")
    }

    /// Tells the format by the file's suffix (`x.trc.zst`) or else by its first bytes.
    pub(super) fn detect(path: &Path, head: &[u8]) -> Option<Self> {
        let inner = bare_name(path);
        let suffix = inner.extension().map(|s| s.to_string_lossy().to_ascii_lowercase());
        let by_name = |suffix| SUFFIXES.iter().find(|&&(s, _)| s == suffix).map(|&(_, f)| f);
        suffix.as_deref().and_then(by_name).or_else(|| sniff(head))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|&(_, format)| format == self);
        f.write_str(name.expect("every format has a name").0)
    }
}

impl FromStr for Format {
    type Err = UnknownFormatName;

    fn from_str(name: &str) -> Result<Self, UnknownFormatName> {
        let known = NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        known.map(|&(_, format)| format).ok_or_else(|| UnknownFormatName(name.to_string()))
    }
}

/// No trace format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown trace format \"{0}\" (known: {known})", known = Format::known())]
pub struct UnknownFormatName(pub String);

/// Name of a trace without folder, compression suffix and format suffix: `arc_P12`.
pub fn trace_name(path: &Path) -> String {
    let inner = bare_name(path);
    inner.file_stem().unwrap_or(inner.as_os_str()).to_string_lossy().into_owned()
}

/// A file's name without the suffixes that say nothing of the format: `x.oracleGeneral.bin.zst`.
fn bare_name(path: &Path) -> PathBuf {
    let mut name = PathBuf::from(path.file_name().unwrap_or_default());
    for suffixes in [&["zst", "zstd", "gz"][..], &["bin"]] {
        if name.extension().and_then(|s| s.to_str()).is_some_and(|s| suffixes.contains(&s)) {
            name.set_extension("");
        }
    }
    name
}

/// Tells a text format by its first line that is not blank.
fn sniff(head: &[u8]) -> Option<Format> {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let line = lines.find(|line| !line.is_empty())?;
    if line.eq_ignore_ascii_case(LCS_HEADER.as_bytes()) {
        return Some(Format::LcsCsv);
    }
    let is_text = line.is_ascii() && !line.iter().any(|b| b.is_ascii_control() && *b != b'\t');
    let has_letter = line.iter().any(u8::is_ascii_alphabetic);
    let fields: Vec<&[u8]> =
        line.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty()).collect();
    match fields.as_slice() {
        _ if !is_text => None,
        [b"*"] => Some(Format::Lirs),
        [b"l" | b"s", address, _] if address.starts_with(b"0x") => Some(Format::UcsdAddress),
        _ if has_letter && line.contains(&b',') => Some(Format::Csv),
        [b"page" | b"block" | b"lbn" | b"address"] => Some(Format::Csv),
        [a, b, c, d] if [a, b, c, d].iter().all(|f| is_number(f)) => Some(Format::ArcLis),
        [one] if is_number(one) => Some(Format::Plain),
        _ if line[0] == b'#' => Some(Format::Plain),
        _ => None,
    }
}

fn is_number(field: &[u8]) -> bool {
    let mut cursor = Cursor::new(field);
    cursor.number().is_some() && cursor.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffix_decides_before_content_and_compression_is_ignored() {
        let detect = |name: &str, head: &[u8]| Format::detect(Path::new(name), head);
        assert_eq!(detect("x.trc.zst", b"1\n"), Some(Format::Lirs));
        assert_eq!(detect("a/b.c/x.LIS", b"1\n"), Some(Format::ArcLis));
        assert_eq!(detect("x.u32.gz", b"1\n"), Some(Format::U32le));
        assert_eq!(detect("x.oracleGeneral.bin.zst", b""), Some(Format::OracleGeneral));
        assert_eq!(detect("x.csv", b"version,time,op,size,lbn\r\n1,"), Some(Format::LcsCsv));
        assert_eq!(detect("x.csv", b"time,page\n1,2\n"), Some(Format::Csv));
    }

    #[test]
    fn content_decides_where_the_name_is_silent() {
        let detect = |head: &[u8]| Format::detect(Path::new("trace"), head);
        assert_eq!(detect(b"\n12\r\n13"), Some(Format::Plain));
        assert_eq!(detect(b"0x12\n"), Some(Format::Plain));
        assert_eq!(detect(b"# made by hand\n1\n"), Some(Format::Plain));
        assert_eq!(detect(b"*\n12\n"), Some(Format::Lirs));
        assert_eq!(detect(b"1 8 0 0\n"), Some(Format::ArcLis));
        assert_eq!(detect(b"s 0x1fffff58 1\n"), Some(Format::UcsdAddress));
        assert_eq!(detect(b"page\n4\n"), Some(Format::Csv));
        assert_eq!(detect(b"\x01\x00\x00\x00"), None);
        assert_eq!(detect(b"hello world\n"), None);
        assert_eq!(detect(b""), None);
    }

    #[test]
    fn names_go_both_ways() {
        for (name, format) in NAMES {
            assert_eq!(name.parse(), Ok(format));
        }
        assert_eq!(Format::OracleGeneral.to_string(), "oracle-general");
        let error = "elf".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("\"elf\"") && error.contains("ucsd-address"), "{error}");
        assert_eq!(trace_name(Path::new("/t/arc_P12.lis.zst")), "arc_P12");
        assert_eq!(trace_name(Path::new("run.1.trc")), "run.1");
    }
}
