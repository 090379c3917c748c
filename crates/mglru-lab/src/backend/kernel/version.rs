//! Versions of kernels: which rules of the model stand for one, and which ones a user asks for.

use std::collections::BTreeSet;

/// Cuts the release out of a kernel's name: `7.2.12` of `7.2.12+deb13-cloud-amd64`.
pub fn of(kernel: &str) -> &str {
    let end = kernel.find(|c: char| !c.is_ascii_digit() && c != '.');
    kernel[..end.unwrap_or(kernel.len())].trim_end_matches('.')
}

/// Splits a version into its numbers, so that 6.12 sorts before 7.1 and 7.9 before 7.10.
pub fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// Tells whether `version` is `wanted` or one of its releases: 7.1.13 is of 7.1 and of 7.
pub fn is_of(version: &str, wanted: &str) -> bool {
    let rest = version.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Names the variant of the model with the rules of a version.
///
/// # Errors
/// When no variant has them, with the reason.
pub fn rules(version: &str) -> Result<&'static str, String> {
    let numbers = numbers(version);
    let (major, minor) = (numbers[0], numbers.get(1).copied().unwrap_or(0));
    match (major, minor) {
        (6, 12) => Ok("k6.12"),
        (6, 14..) | (7, 0) => Ok("before"),
        (7, 1) => Ok("k7.1"),
        (7, 2) => Ok("k7.2"),
        (7, 3) => Ok("k7.3"),
        _ if version.is_empty() => Err("its record names no kernel".to_string()),
        _ => Err(format!("no variant of the model has the rules of Linux {version}")),
    }
}

/// Lists versions in their order, for a message.
pub fn listed<'a>(versions: impl Iterator<Item = &'a str>) -> String {
    let known: BTreeSet<(Vec<u64>, &str)> = versions.map(|v| (numbers(v), v)).collect();
    known.into_iter().map(|(_, version)| version).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_name_begins_with_its_version() {
        assert_eq!(of("7.2.12+deb13-cloud-amd64"), "7.2.12");
        assert_eq!(
            (of("6.12.117"), of("7.1.-rc"), of("next"), of("")),
            ("6.12.117", "7.1", "", "")
        );
    }

    #[test]
    fn each_version_has_its_own_rules() {
        for (version, want) in [
            ("6.12.117", "k6.12"),
            ("6.18.5", "before"),
            ("7.0.2", "before"),
            ("7.1.13", "k7.1"),
            ("7.2.12", "k7.2"),
            ("7.3.4", "k7.3"),
        ] {
            assert_eq!(rules(version), Ok(want), "{version}");
        }
        assert_eq!(rules("").unwrap_err(), "its record names no kernel");
        let unknown = "no variant of the model has the rules of Linux 5.10.1";
        assert_eq!(rules("5.10.1").unwrap_err(), unknown);
        assert!(rules("6.1").is_err() && rules("7.4").is_err());
    }

    #[test]
    fn a_version_is_asked_for_by_its_beginning() {
        assert!(is_of("7.1.13", "7.1") && is_of("7.1.13", "7") && is_of("7.1.13", "7.1.13"));
        assert!(!is_of("7.1.13", "7.1.1") && !is_of("7.1.13", "7.13") && !is_of("7.10.2", "7.1"));
        assert_eq!(listed(["7.10", "7.9", "6.12.117", "7.9"].into_iter()), "6.12.117, 7.9, 7.10");
    }
}
