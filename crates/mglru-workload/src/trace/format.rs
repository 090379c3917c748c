//! The trace formats, and how one is recognised by name or content.
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
//! | `compact` | the project's own format, see `compact.rs` | the page |
//!
//! The formats of lines also skip blank lines and lines that begin with `#`, end lines with a line
//! feed, a carriage return or both, and may begin with the byte order mark of UTF-8.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::compact::MAGIC;
use super::csv::LCS_HEADER;
use super::cursor::Cursor;
use super::line_ends::{is_silent, lines};

/// Names a trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Holds block numbers as in the LIRS authors' traces.
    Lirs,
    /// Holds block ranges as in the ARC authors' traces.
    ArcLis,
    /// Holds raw little-endian 32-bit numbers.
    U32le,
    /// Holds CloudPhysics I/O as libCacheSim ships it.
    LcsCsv,
    /// Loads and stores by address.
    UcsdAddress,
    /// Holds one number a line.
    Plain,
    /// Holds comma-separated values with a header.
    Csv,
    /// Holds libCacheSim's binary format.
    OracleGeneral,
    /// Holds this project's format, recognised by its first bytes.
    Compact,
}

/// The mark that editors put before text in UTF-8.
pub(super) const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Names: the first of a format is the one printed, the others are accepted.
const NAMES: [(&str, Format); 13] = [
    ("lirs", Format::Lirs),
    ("arc-lis", Format::ArcLis),
    ("u32le", Format::U32le),
    ("lcs-csv", Format::LcsCsv),
    ("ucsd-address", Format::UcsdAddress),
    ("plain", Format::Plain),
    ("csv", Format::Csv),
    ("oracle-general", Format::OracleGeneral),
    ("compact", Format::Compact),
    ("u32le-dense", Format::U32le),
    ("u32", Format::U32le),
    ("arc", Format::ArcLis),
    ("oracleGeneral", Format::OracleGeneral),
];

/// Formats, each of which has its printed name at the head of [`NAMES`].
const FORMATS: usize = 9;

/// Suffixes of compressed files, readable or not: they say nothing of the format.
const PACKED: [&str; 17] = [
    "zst", "zstd", "gz", "xz", "bz2", "lz4", "gzip", "bzip2", "bz", "br", "lz", "lzma", "lzo", "z",
    "zz", "sz", "snappy",
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
    /// Lists the names users may give, one per format.
    pub fn known() -> String {
        let names: Vec<&str> = NAMES[..FORMATS].iter().map(|&(name, _)| name).collect();
        names.join(", ")
    }

    /// True for records of bytes, false for lines of characters.
    pub(super) fn is_binary(self) -> bool {
        matches!(self, Format::U32le | Format::OracleGeneral | Format::Compact)
    }

    /// Tells the format by the file's suffix (`x.trc.zst`) or else by its first bytes.
    pub(super) fn detect(path: &Path, head: &[u8]) -> Option<Guess> {
        if head.starts_with(&MAGIC) {
            return Some(Guess { format: Format::Compact, by: "content" });
        }
        let head = head.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(head);
        let inner = bare_name(path);
        let suffix = inner.extension().map(|s| s.to_string_lossy().to_ascii_lowercase());
        let suffix = suffix.as_deref().unwrap_or_default();
        let by_name = SUFFIXES.iter().find(|&&(s, _)| s == suffix);
        let by_name = by_name.map(|&(_, format)| Guess { format, by: "name" });
        let by_content = || sniff(head).map(|format| Guess { format, by: "content" });
        let csv = || (suffix == "csv").then_some(Guess { format: Format::Csv, by: "name" });
        // A comment that is longer than the head hides what it is about.
        let is_comment = lines(head).any(|line| line.trim_ascii_start().starts_with(b"#"));
        let plain = || is_comment.then_some(Guess { format: Format::Plain, by: "content" });
        by_name.or_else(by_content).or_else(csv).or_else(plain)
    }
}

/// Holds a format that nobody named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guess {
    pub(super) format: Format,
    /// The sign that suggested it.
    by: &'static str,
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = NAMES[..FORMATS].iter().filter(|&&(_, format)| format != self.format);
        let others: Vec<&str> = others.map(|&(name, _)| name).collect();
        let (format, by, others) = (self.format, self.by, others.join(", "));
        write!(f, "{format} (guessed from the {by}; others: {others})")
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

/// Reports that no trace format has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown trace format \"{0}\" (known: {known})", known = Format::known())]
pub struct UnknownFormatName(pub String);

/// Returns the name of a trace without folder, compression suffix and format suffix: `arc_P12`.
pub fn trace_name(path: &Path) -> String {
    let inner = bare_name(path);
    inner.file_stem().unwrap_or(inner.as_os_str()).to_string_lossy().into_owned()
}

/// A file's name without the suffixes that say nothing of the format: `x.oracleGeneral.bin.zst`.
fn bare_name(path: &Path) -> PathBuf {
    let mut name = PathBuf::from(path.file_name().unwrap_or_default());
    if packed_suffix(path).is_some() {
        name.set_extension("");
    }
    if name.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("bin")) {
        name.set_extension("");
    }
    name
}

/// The suffix by which a file's name says that it is compressed.
pub(super) fn packed_suffix(path: &Path) -> Option<&str> {
    let suffix = path.extension()?.to_str()?;
    PACKED.iter().any(|packed| packed.eq_ignore_ascii_case(suffix)).then_some(suffix)
}

/// Tells a text format by its first line that says something.
fn sniff(head: &[u8]) -> Option<Format> {
    let line = lines(head).find(|line| !is_silent(line))?.trim_ascii();
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
    fn a_guess_names_the_other_formats() {
        let guess = Format::detect(Path::new("t"), b"1\n").unwrap().to_string();
        let expected = "plain (guessed from the content; others: lirs, arc-lis, u32le, lcs-csv, \
            ucsd-address, csv, oracle-general, compact)";
        assert_eq!(guess, expected);
    }

    #[test]
    fn suffix_decides_before_content_and_compression_is_ignored() {
        let detect =
            |name: &str, head: &[u8]| Format::detect(Path::new(name), head).map(|g| g.format);
        assert_eq!(detect("x.trc.zst", b"1\n"), Some(Format::Lirs));
        assert_eq!(detect("a/b.c/x.LIS", b"1\n"), Some(Format::ArcLis));
        for packed in ["gz", "GZ", "xz", "bz2", "lz4", "Z", "br"] {
            assert_eq!(detect(&format!("x.u32.{packed}"), b"1\n"), Some(Format::U32le));
        }
        assert_eq!(detect("x.csv", b"1,2\n"), Some(Format::Csv));
        assert_eq!(detect("x.csv", b"# a long comment"), Some(Format::Csv));
        assert_eq!(detect("x.oracleGeneral.bin.zst", b""), Some(Format::OracleGeneral));
        assert_eq!(detect("x.csv", b"version,time,op,size,lbn\r\n1,"), Some(Format::LcsCsv));
        assert_eq!(detect("x.csv", b"time,page\n1,2\n"), Some(Format::Csv));
    }

    #[test]
    fn content_decides_where_the_name_is_silent() {
        let detect =
            |head: &[u8]| Format::detect(Path::new("trace"), head).map(|guess| guess.format);
        assert_eq!(detect(b"\n12\r\n13"), Some(Format::Plain));
        assert_eq!(detect(b"0x12\n"), Some(Format::Plain));
        assert_eq!(detect(b"# made by hand\n1\n"), Some(Format::Plain));
        assert_eq!(detect(b"*\n12\n"), Some(Format::Lirs));
        assert_eq!(detect(b"1 8 0 0\n"), Some(Format::ArcLis));
        assert_eq!(detect(b"s 0x1fffff58 1\n"), Some(Format::UcsdAddress));
        assert_eq!(detect(b"page\n4\n"), Some(Format::Csv));
        assert_eq!(detect(b"\xef\xbb\xbf# of a pool\r\r*\r12\r"), Some(Format::Lirs));
        assert_eq!(detect(b"# a\n\n  # b\ntime,page\n"), Some(Format::Csv));
        assert_eq!(detect(b"# nothing else\n"), Some(Format::Plain));
        assert_eq!(detect(b"\r\n\r\n"), None);
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
        assert_eq!(trace_name(Path::new("a.u32.xz")), "a");
    }
}
