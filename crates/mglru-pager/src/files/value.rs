//! Values as cgroup files have them.

use crate::error::PagerError;
use crate::sys::PAGE;

/// Returns a limit's text.
pub fn limit_text(limit: Option<u64>) -> String {
    limit.map_or_else(|| "max\n".into(), |bytes| format!("{bytes}\n"))
}

/// Parses `max`, or bytes with a suffix K, M, G or T, rounded down to whole pages.
pub fn parse_limit(file: &'static str, text: &str) -> Result<Option<u64>, PagerError> {
    if text == "max" {
        return Ok(None);
    }
    let bad = || PagerError::Value { file, text: text.into() };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(bad()),
    };
    let number: u64 = Some(digits)
        .filter(|d| !d.starts_with('+'))
        .and_then(|d| d.parse().ok())
        .ok_or_else(bad)?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(bad)?;
    Ok(Some(bytes - bytes % PAGE as u64))
}

/// Parses a plain number up to `most`.
pub fn parse_number(file: &'static str, text: &str, most: u64) -> Result<u64, PagerError> {
    let number = text.parse().ok().filter(|&number| number <= most);
    number.ok_or_else(|| PagerError::Value { file, text: text.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_reads_them() {
        let read = |text| parse_limit("memory.max", text).unwrap();
        assert_eq!(read("max"), None);
        assert_eq!([read("0"), read("8192"), read("8191")], [0, 8192, 4096].map(Some));
        assert_eq!([read("8K"), read("3m"), read("2G")], [8 << 10, 3 << 20, 2 << 30].map(Some));
        assert_eq!(limit_text(read("1T")), "1099511627776\n");
        assert_eq!(limit_text(None), "max\n");
        for bad in ["", "-1", "+1", "K", "1KB", "1.5M", "0x10", "99999999999T", "max K", "ä"] {
            let error = parse_limit("memory.max", bad).unwrap_err().to_string();
            assert_eq!(error, format!("memory.max: `{bad}` is not a value"), "{bad}");
        }
    }

    #[test]
    fn numbers_have_a_bound() {
        assert_eq!(parse_number("memory.swappiness", "200", 200).unwrap(), 200);
        assert!(parse_number("memory.swappiness", "201", 200).is_err());
        assert!(parse_number("memory.swappiness", "-1", 200).is_err());
    }
}
