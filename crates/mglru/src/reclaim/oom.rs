//! How often to try again before calling out of memory (spec §9.6). Every reclaim call that comes
//! back with nothing, for whatever reason, eats one retry.

use crate::types::MAX_RECLAIM_RETRIES;

/// Says what a task that got no page does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryStep {
    /// Serves the request: there is room now.
    Served,
    /// Reclaims, or reclaims again.
    Reclaim,
    /// Kills a process.
    Oom,
}

/// Counts the retries of one charge against a group's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargeRetry {
    left: u32,
    drained: bool,
}

impl Default for ChargeRetry {
    fn default() -> Self {
        Self { left: MAX_RECLAIM_RETRIES, drained: false }
    }
}

impl ChargeRetry {
    /// Decides what follows a reclaim call of an order-0 charge: `room` says whether the charge
    /// fits now.
    pub fn next(&mut self, reclaimed: u64, room: bool) -> RetryStep {
        if room {
            return RetryStep::Served;
        }
        if !core::mem::replace(&mut self.drained, true) || reclaimed > 0 {
            return RetryStep::Reclaim;
        }
        retry(&mut self.left)
    }
}

/// Counts the retries of one allocation from the machine's free memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocRetry {
    fruitless: u32,
}

impl AllocRetry {
    /// Decides what follows a direct reclaim call that left no room: `could_satisfy` says whether
    /// some zone would do if all its reclaimable pages were free.
    pub fn next(&mut self, reclaimed: u64, could_satisfy: bool) -> RetryStep {
        self.fruitless = if reclaimed > 0 { 0 } else { self.fruitless + 1 };
        if could_satisfy && self.fruitless <= MAX_RECLAIM_RETRIES {
            RetryStep::Reclaim
        } else {
            RetryStep::Oom
        }
    }
}

fn retry(left: &mut u32) -> RetryStep {
    if *left == 0 {
        return RetryStep::Oom;
    }
    *left -= 1;
    RetryStep::Reclaim
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_retried_sixteen_times_after_the_stocks_are_drained() {
        let mut charge = ChargeRetry::default();
        let fruitless = (0..).take_while(|_| charge.next(0, false) == RetryStep::Reclaim).count();
        assert_eq!(fruitless, 17);
    }

    #[test]
    fn progress_is_free() {
        let mut charge = ChargeRetry::default();
        for _ in 0..100 {
            assert_eq!(charge.next(1, false), RetryStep::Reclaim);
        }
        assert_eq!(charge.next(0, true), RetryStep::Served);
    }

    #[test]
    fn an_allocation_gives_up_when_nothing_could_help() {
        let mut alloc = AllocRetry::default();
        assert_eq!(alloc.next(0, true), RetryStep::Reclaim);
        assert_eq!(alloc.next(0, false), RetryStep::Oom);
        let mut alloc = AllocRetry::default();
        let tries = (0..).take_while(|_| alloc.next(0, true) == RetryStep::Reclaim).count();
        assert_eq!(tries, 16);
    }
}
