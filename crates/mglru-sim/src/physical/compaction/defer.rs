//! Runs that failed are not repeated at once: each failure doubles how many are skipped.

use crate::physical::MAX_ORDER;

/// At most one in 2^6 is tried.
const MAX_SHIFT: u32 = 6;

/// Decides whether a run is worth trying, for one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defer {
    considered: u32,
    shift: u32,
    /// Smallest order that failed.
    failed_order: u8,
}

impl Default for Defer {
    fn default() -> Self {
        Self { considered: 0, shift: 0, failed_order: MAX_ORDER + 1 }
    }
}

impl Defer {
    /// Is a run for this order to be skipped? Asking counts.
    pub fn skips(&mut self, order: u8) -> bool {
        if order < self.failed_order {
            return false;
        }
        let limit = 1 << self.shift;
        self.considered = (self.considered + 1).min(limit);
        self.considered < limit
    }

    /// Tells whether a run for this order would be skipped, without counting.
    pub fn would_skip(&self, order: u8) -> bool {
        order >= self.failed_order && self.considered + 1 < 1 << self.shift
    }

    /// Records that a synchronous run did not help.
    pub fn failed(&mut self, order: u8) {
        self.considered = 0;
        self.shift = (self.shift + 1).min(MAX_SHIFT);
        self.failed_order = self.failed_order.min(order);
    }

    /// Records that a block of this order could be had.
    pub fn succeeded(&mut self, order: u8) {
        self.considered = 0;
        self.shift = 0;
        self.failed_order = self.failed_order.max(order + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_what_is_skipped() {
        let mut defer = Defer::default();
        assert!(!defer.skips(9), "nothing failed yet");
        for failures in 1..=8 {
            defer.failed(9);
            let skipped = (0..).take_while(|_| defer.skips(9)).count();
            assert_eq!(skipped, (1 << failures.min(6)) - 1, "after {failures}");
        }
        assert!(!defer.skips(8), "smaller orders did not fail");
    }

    #[test]
    fn success_starts_over() {
        let mut defer = Defer::default();
        defer.failed(4);
        defer.failed(4);
        assert!(defer.would_skip(9) && defer.skips(9));
        defer.succeeded(9);
        assert!(!defer.skips(4) && !defer.skips(9) && !defer.would_skip(10));
        assert_eq!(defer, Defer { considered: 0, shift: 0, failed_order: 10 });
    }
}
