//! Ends of lines: a line feed, a carriage return or both, as systems write them.

/// Length of the whole lines that `data` begins with. A carriage return at its end does not end
/// one: a line feed may follow.
pub(super) fn whole_lines(data: &[u8]) -> usize {
    let sure = data.strip_suffix(b"\r").unwrap_or(data);
    memchr::memrchr2(b'\n', b'\r', sure).map_or(0, |at| at + 1)
}

/// Splits `text` behind its first line, which is given without its end.
pub(super) fn first_line(text: &[u8]) -> (&[u8], &[u8]) {
    let Some(end) = memchr::memchr2(b'\n', b'\r', text) else { return (text, &[]) };
    let (line, rest) = text.split_at(end);
    let rest = rest.strip_prefix(b"\r\n").unwrap_or(&rest[1..]);
    (line, rest)
}

/// Lines of `text`.
pub(super) fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let (line, rest) = first_line(text);
        text = rest;
        Some(line)
    })
}

/// True for a line that says nothing: blanks alone, or a `#` comment.
pub(super) fn is_silent(line: &[u8]) -> bool {
    matches!(line.trim_ascii_start(), [] | [b'#', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_ends_one_line() {
        let all: Vec<&[u8]> = lines(b"a\nb\r\nc\rd\n\re").collect();
        assert_eq!(all, [&b"a"[..], b"b", b"c", b"d", b"", b"e"]);
    }

    #[test]
    fn a_line_is_whole_when_its_end_is() {
        for (data, whole) in [("a\nb", 2), ("a\rb", 2), ("a\r", 0), ("a\r\n", 3), ("a", 0)] {
            assert_eq!(whole_lines(data.as_bytes()), whole, "{data:?}");
        }
        assert_eq!(whole_lines(b"a\r\r"), 2);
    }

    #[test]
    fn comments_and_blanks_are_silent() {
        assert!(is_silent(b"") && is_silent(b" \t") && is_silent(b"  # 5"));
        assert!(!is_silent(b"5 # x"));
    }
}
