//! Swap writes that the policy thread makes and waits for itself. A queued write to a part of a
//! file that was never written ends in a thread of the kernel's own, and while programs compute
//! some kernels keep that one waiting for a minute. A write that is waited for ends in the waiting
//! thread.

use crate::sys::clock;

/// A queued write is late after this time, ns.
const LATE: u64 = 50_000_000;
/// A write that was waited for took no time worth counting, ns.
const QUICK: u64 = 5_000_000;
/// The thread may spend one part in this of its time on slow writes.
const PART: u64 = 10;

/// When the next write may be waited for, on the clock of all threads, ns.
#[derive(Debug, Default)]
pub(super) struct ByHand {
    from: u64,
}

impl ByHand {
    /// Tells whether waiting is worth a try, the oldest queued write having begun at `oldest`.
    pub(super) fn is_due(&self, oldest: Option<u64>, now: u64) -> bool {
        oldest.is_some_and(|oldest| now > oldest + LATE) && now >= self.from
    }

    /// Makes a write and notes how long it took: a slow disk is better served by its queue.
    pub(super) fn make<T>(&mut self, write: impl FnOnce() -> T) -> T {
        let begun = clock::monotonic();
        let made = write();
        self.note(begun, clock::monotonic());
        made
    }

    fn note(&mut self, begun: u64, ended: u64) {
        let took = ended - begun;
        self.from = if took > QUICK { ended + PART * took } else { ended };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_waited_for_while_queued_ones_are_late() {
        let by_hand = ByHand::default();
        assert!(!by_hand.is_due(None, 2 * LATE), "none is queued");
        assert!(!by_hand.is_due(Some(LATE), 2 * LATE) && by_hand.is_due(Some(LATE), 2 * LATE + 1));
    }

    #[test]
    fn a_slow_disk_has_its_queue_back_for_most_of_the_time() {
        let mut by_hand = ByHand::default();
        let now = 10 * LATE;
        by_hand.note(now - QUICK, now);
        assert!(by_hand.is_due(Some(0), now), "that was quick");
        by_hand.note(now - 2 * QUICK, now);
        assert!(!by_hand.is_due(Some(0), now + 2 * PART * QUICK - 1));
        assert!(by_hand.is_due(Some(0), now + 2 * PART * QUICK));
    }
}
