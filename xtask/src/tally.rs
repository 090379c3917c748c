//! Sums of what the test binaries report.

/// Tests counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
}

impl Tally {
    /// Adds a line of output if it is a summary: `test result: ok. 3 passed; 0 failed; …`.
    pub fn read(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let counts = rest.split_once(". ").map_or("", |(_, counts)| counts);
        for part in counts.split(';') {
            let mut words = part.split_whitespace();
            let count = words.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            match words.next() {
                Some("passed") => self.passed += count,
                Some("failed") => self.failed += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_binaries() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out;",
            "9 passed; 9 failed",
        ] {
            tally.read(line);
        }
        assert_eq!(tally, Tally { passed: 13, failed: 2 });
    }
}
