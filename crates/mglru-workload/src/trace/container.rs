//! Tells a file's kind by its first bytes: a compressed stream that is read, or one of the
//! containers that are not. A binary trace has no mark of its own, so that a container that went
//! unnoticed would be read as page numbers.

use super::unpack::Codec;

/// Bytes that suffice to recognise any container; that many make up a header of tar.
pub(super) const HEAD_BYTES: usize = 512;

/// Something that is not a bare trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// Holds a compressed stream that is read.
    Packed(Codec),
    /// Holds a frame for other programs, which may begin a stream of zstd or lz4.
    Skippable,
    /// Names the kind of a file that is no trace.
    Foreign(&'static str),
}

/// First bytes of containers that are not read.
const FOREIGN: [(&[u8], &str); 18] = [
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"PK\x07\x08", "a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"LZIP\x01", "an lzip stream"),
    (b"\x89LZO\0\r\n\x1a\n", "an lzop stream"),
    (b"\xff\x06\0\0sNaPpY", "a snappy stream"),
    (b"\x02\x21\x4c\x18", "an lz4 stream of the legacy kind"),
    (b"\x1e\xb5\x2f\xfd", "a zstd stream of an old version"),
    (b"\x25\xb5\x2f\xfd", "a zstd stream of an old version"),
    (b"\x26\xb5\x2f\xfd", "a zstd stream of an old version"),
    (b"\x27\xb5\x2f\xfd", "a zstd stream of an old version"),
    (b"\x93NUMPY", "a numpy file"),
    (b"PAR1\x15", "a parquet file"),
    (b"ARROW1\0\0", "an arrow file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"SQLite format 3\0", "an SQLite database"),
];

/// Tells a container by its first bytes, up to [`HEAD_BYTES`] of them.
pub(super) fn recognise(head: &[u8]) -> Option<Container> {
    let codec = Codec::ALL.into_iter().find(|codec| codec.begins(head));
    if let Some(codec) = codec {
        return Some(Container::Packed(codec));
    }
    if is_skippable(head) {
        return Some(Container::Skippable);
    }
    let foreign = FOREIGN.iter().find(|(magic, _)| is_magic(head, magic)).map(|&(_, name)| name);
    let foreign = foreign.or_else(|| is_compress(head).then_some("a compress (.Z) stream"));
    let foreign = foreign.or_else(|| is_lzma(head).then_some("an lzma stream"));
    let foreign = foreign.or_else(|| is_tar(head).then_some("a tar archive"));
    foreign.map(Container::Foreign)
}

/// True for the magic number and, in a file cut short, for a part of it that is no small number.
pub(super) fn is_magic(head: &[u8], magic: &[u8]) -> bool {
    let is_cut = head.len() >= 4 && !head.ends_with(&[0, 0]) && magic.starts_with(head);
    head.starts_with(magic) || is_cut
}

/// The sixteen magic numbers of skippable frames, which zstd and lz4 share.
pub(super) fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// True for characters and line ends alone: no trace of binary records.
pub(super) fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character may be cut by the end of the head.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let is_line_end = |c| matches!(c, '\n' | '\r');
    let is_plain = |c: char| !c.is_control() || c == '\t' || is_line_end(c);
    whole.chars().all(is_plain) && (whole.contains(is_line_end) || whole.len() >= 16)
}

/// `compress` writes the most bits of a code, 9 to 16, into its third byte.
fn is_compress(head: &[u8]) -> bool {
    matches!(head, [0x1f, 0x9d, flags, ..] if (9..=16).contains(&(flags & 0x7f)))
}

/// The bare stream of LZMA has no magic number: usual properties, a dictionary of 2^n or 3·2^n
/// bytes, and a length that is unknown or sane.
fn is_lzma(head: &[u8]) -> bool {
    let [0x5d, dict @ .., _, _, _, _, _, _, _, _] = &head[..head.len().min(13)] else {
        return false;
    };
    let Ok(dict) = dict.try_into().map(u32::from_le_bytes) else { return false };
    let length = u64::from_le_bytes(head[5..13].try_into().expect("thirteen bytes are there"));
    let is_usual = dict.is_power_of_two() || (dict % 3 == 0 && (dict / 3).is_power_of_two());
    dict >= 1 << 12 && is_usual && (length == u64::MAX || length < 1 << 38)
}

/// A header of tar holds the sum of its own bytes in octal, blanks in the sum's own place.
fn is_tar(head: &[u8]) -> bool {
    const SUM: std::ops::Range<usize> = 148..156;
    if head.len() < HEAD_BYTES || head[0] == 0 {
        return false;
    }
    let digits = head[SUM].trim_ascii().split(|&b| b == 0 || b == b' ').next();
    let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let Some(wanted) = text.and_then(|text| u64::from_str_radix(text, 8).ok()) else {
        return false;
    };
    let byte = |(at, &b): (usize, &u8)| u64::from(if SUM.contains(&at) { b' ' } else { b });
    head[..HEAD_BYTES].iter().enumerate().map(byte).sum::<u64>() == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(head: &[u8]) -> Option<&'static str> {
        match recognise(head)? {
            Container::Foreign(name) => Some(name),
            _ => None,
        }
    }

    #[test]
    fn streams_that_are_read_are_recognised() {
        let read: [(&[u8], Codec); 5] = [
            (b"\x1f\x8b\x08\x00", Codec::Gzip),
            (b"\x28\xb5\x2f\xfd\x04", Codec::Zstd),
            (b"\xfd7zXZ\0\0", Codec::Xz),
            (b"BZh91AY&SY", Codec::Bzip2),
            (b"\x04\x22\x4d\x18\x64", Codec::Lz4),
        ];
        for (head, codec) in read {
            assert_eq!(recognise(head), Some(Container::Packed(codec)));
        }
        assert_eq!(recognise(b"BZh9\x17\x72\x45\x38\x50\x90"), recognise(b"BZh11AY&SY"));
        assert_eq!(recognise(b"\x5f\x2a\x4d\x18"), Some(Container::Skippable));
    }

    #[test]
    fn others_are_named_and_cut_short_too() {
        for (magic, name) in FOREIGN {
            assert_eq!(foreign(&[magic, b"rest"].concat()), Some(name));
        }
        assert_eq!(foreign(b"7z\xbc\xaf"), Some("a 7z archive"));
        assert_eq!(foreign(b"\x1f\x9d\x90\x31"), Some("a compress (.Z) stream"));
        let lzma = [&b"\x5d\0\0\x80\0"[..], &[0xff; 8], b"x"].concat();
        assert_eq!(foreign(&lzma), Some("an lzma stream"));
        assert_eq!(recognise(b"\xfd7zX"), Some(Container::Packed(Codec::Xz)));
    }

    /// A header as tar of 1979 wrote it, without a magic number.
    fn tar() -> Vec<u8> {
        let mut head = vec![0; HEAD_BYTES];
        head[..5].copy_from_slice(b"t.u32");
        head[100..107].copy_from_slice(b"0000644");
        head[148..156].fill(b' ');
        let sum: u64 = head.iter().map(|&b| u64::from(b)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        head
    }

    #[test]
    fn tar_is_recognised_by_its_sum() {
        let mut head = tar();
        assert_eq!(foreign(&head), Some("a tar archive"));
        head[0] ^= 1;
        assert_eq!(foreign(&head), None);
        assert_eq!(foreign(&[0; HEAD_BYTES]), None);
    }

    #[test]
    fn numbers_are_no_container() {
        for number in 0..1u32 << 16 {
            let head = number.to_le_bytes();
            assert_eq!(recognise(&head), None, "{number}");
            assert!(!is_text(&head), "{number}");
        }
    }

    #[test]
    fn text_is_lines_of_characters() {
        for text in ["1\n2\n", "# größer\r\n1\r\n", "17\r18\r", "a,b,c,d,e,f,g,h,i"] {
            assert!(is_text(text.as_bytes()), "{text:?}");
        }
        assert!(is_text(&"1\nä".as_bytes()[..3]), "a character that is cut");
        for binary in [&b"1\n2\0"[..], b"\xff\xff\xff\n", b"\x01\n", b"abcd"] {
            assert!(!is_text(binary), "{binary:?}");
        }
    }
}
