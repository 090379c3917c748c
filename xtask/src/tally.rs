//! Sums of what the test binaries report.

/// Counts tests so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Counts tests that passed: those that did what they are for.
    pub passed: u64,
    /// Counts tests that failed.
    pub failed: u64,
    /// Counts tests that returned early and said why.
    pub skipped: u64,
}

impl Tally {
    /// Adds the sums of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// Reads the output of test binaries run with `--show-output`.
#[derive(Debug, Default)]
pub struct Reader {
    /// Returns the counts.
    pub tally: Tally,
    /// The lines are those that tests which passed have printed.
    of_passed: bool,
    /// The test whose lines these are was counted as skipped.
    counted: bool,
}

impl Reader {
    /// Counts what a line says. False: it is what a passed test printed, and of no interest.
    pub fn read(&mut self, line: &str) -> bool {
        match line {
            "successes:" => self.of_passed = true,
            "failures:" => self.of_passed = false,
            _ if line.starts_with("test result: ") => {
                self.of_passed = false;
                self.sum(line);
            }
            _ if self.of_passed => return self.read_printed(line),
            _ => {}
        }
        !self.of_passed
    }

    /// Reads a line that a passed test printed; true: it says that the test was skipped.
    fn read_printed(&mut self, line: &str) -> bool {
        if line.starts_with("---- ") {
            self.counted = false;
        }
        let skipped = line.starts_with("skipped: ") && !self.counted;
        if skipped {
            self.counted = true;
            self.tally.skipped += 1;
        }
        skipped
    }

    /// Adds a summary: `test result: ok. 3 passed; 0 failed; …`.
    fn sum(&mut self, line: &str) {
        let counts = line.split_once(". ").map_or("", |(_, counts)| counts);
        for part in counts.split(';') {
            let mut words = part.split_whitespace();
            let count = words.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            match words.next() {
                Some("passed") => self.tally.passed += count,
                Some("failed") => self.tally.failed += count,
                _ => {}
            }
        }
    }

    /// Returns the counts, a skipped test not among those that passed.
    pub fn done(self) -> Tally {
        Tally { passed: self.tally.passed - self.tally.skipped, ..self.tally }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_binaries_and_counts_the_skipped_apart() {
        let mut reader = Reader::default();
        for line in [
            "running 4 tests",
            "successes:",
            "---- a stdout ----",
            "skipped: no kernel here",
            "skipped: nor another",
            "---- b stdout ----",
            "12 pages",
            "skipped: needs the reference traces",
            "successes:",
            "    a",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished",
            "skipped: said by no test",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out;",
            "9 passed; 9 failed",
        ] {
            reader.read(line);
        }
        assert_eq!(reader.done(), Tally { passed: 11, failed: 2, skipped: 2 });
    }

    #[test]
    fn what_passed_tests_print_is_left_out_but_for_why_they_were_skipped() {
        let mut reader = Reader::default();
        let lines = ["a", "successes:", "b", "skipped: c", "failures:", "d"];
        assert_eq!(lines.map(|line| reader.read(line)), [true, false, false, true, true, true]);
    }
}
