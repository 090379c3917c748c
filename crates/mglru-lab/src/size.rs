//! Sizes as people write them: `10GiB`, `64M`, `4096`, `max`.

/// Bytes of a limit that is no limit.
pub const NO_LIMIT: u64 = u64::MAX;

/// Bytes per page.
pub const PAGE: u64 = 4096;

/// Parses a size in bytes. Suffixes are binary; `K`, `KB` and `KiB` mean the same, as in cgroupfs.
///
/// # Errors
/// Says what a size looks like when `text` is not one or does not fit 64 bits.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if text == "max" {
        return Ok(NO_LIMIT);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let unit = unit(suffix.trim()).ok_or_else(expected)?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(expected);
    }
    let bytes = number.parse::<f64>().map_err(|_| expected())? * unit as f64;
    match bytes < NO_LIMIT as f64 {
        true => Ok(bytes.round() as u64),
        false => Err(expected()),
    }
}

/// Writes a size with the largest unit that divides it.
pub fn format(bytes: u64) -> String {
    if bytes == NO_LIMIT {
        return "max".to_string();
    }
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = units.iter().find(|(shift, _)| bytes != 0 && bytes % (1 << shift) == 0);
    match fits {
        Some((shift, name)) => format!("{}{name}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// `bytes` times `scale`, to the nearest page, at least one; no limit stays none.
pub fn scaled(bytes: u64, scale: f64) -> u64 {
    match bytes {
        _ if scale == 1.0 => bytes,
        0 | NO_LIMIT => bytes,
        _ => (((bytes as f64 * scale / PAGE as f64).round() as u64) * PAGE).max(PAGE),
    }
}

fn unit(suffix: &str) -> Option<u64> {
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    Some(1 << shift)
}

fn expected() -> String {
    "expected a size such as 4096, 64MiB, 10GiB or max".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for bytes in [0, 1, 4096, 160 << 20, 10 << 30, 3 << 40, (10 << 30) + 1, NO_LIMIT] {
            assert_eq!(parse(&format(bytes)), Ok(bytes));
        }
    }

    #[test]
    fn fractions_and_short_suffixes() {
        assert_eq!(parse("4.5G"), Ok(4_831_838_208));
        assert_eq!(parse("64 m"), Ok(64 << 20));
    }

    #[test]
    fn refuses_nonsense() {
        for text in ["", "-1", "1.2.3", "GiB", "12q", "99999999999T", "1e400"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn scaling_keeps_whole_pages() {
        assert_eq!(scaled(10 << 30, 1.0 / 64.0), 160 << 20);
        assert_eq!(scaled(4096, 0.001), 4096);
        assert_eq!(scaled(NO_LIMIT, 0.5), NO_LIMIT);
    }
}
