//! A fault that takes too long is reported once, with all that is known about it.

use super::waiting::Why;
use super::{Handler, Touch};
use crate::account::Happened;
use crate::sys::{clock, raw, tasks};

/// A fault that takes longer is stuck, ns: devices answer, and reclaim succeeds or fails, in less.
const STUCK: u64 = 10_000_000_000;

/// Finds the oldest fault, if it is stuck and began after the last one that was reported.
fn stuck(
    now: u64,
    reported_ns: u64,
    faults: impl Iterator<Item = (Touch, Option<Why>)>,
) -> Option<(Touch, Option<Why>)> {
    let unreported = faults.filter(|(touch, _)| touch.since > reported_ns);
    let oldest = unreported.min_by_key(|(touch, _)| touch.since);
    oldest.filter(|(touch, _)| now.saturating_sub(touch.since) > STUCK)
}

impl Handler {
    /// Reports a fault that is stuck, if there is one.
    pub(super) fn watch(&mut self) {
        let now = clock::monotonic();
        let waiting = self.installer.waiting.iter().map(|(touch, why)| (touch, Some(why)));
        let reading = self.reading.iter().flatten().map(|reading| (reading.touch(), None));
        if let Some((touch, why)) = stuck(now, self.reported_ns, waiting.chain(reading)) {
            self.reported_ns = touch.since;
            self.arena.account().note(Happened::Stuck);
            self.report(touch, why, now);
        }
    }

    fn report(&self, touch: Touch, why: Option<Why>, now: u64) {
        let arena = &self.arena;
        let waits = why.map_or_else(|| "its read".to_string(), |why| format!("{why:?}"));
        raw::say(&format!(
            "stuck: a fault of group {} waits for {waits} since {} s, one of {}: arena {}, page \
             {} ({:?}, slot {}), store: {}; {} of {} bytes in use; {}",
            arena.account().path,
            now.saturating_sub(touch.since) / 1_000_000_000,
            self.under_way(),
            arena.id(),
            touch.page,
            arena.pages().presence(touch.page),
            arena.pages().slot(touch.page),
            touch.write,
            arena.account().usage(),
            arena.account().get(crate::account::Setting::Max),
            tasks::own_doing(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_reported_once_and_the_oldest_first() {
        let touch = |page, since| Touch { page, write: false, protected: false, since };
        let faults = [(touch(1, 50), Some(Why::Room)), (touch(2, 40), None)];
        let stuck = |now, reported_ns| {
            super::stuck(now, reported_ns, faults.into_iter()).map(|(t, _)| t.page)
        };
        assert_eq!(stuck(STUCK + 40, 0), None, "not longer than it may take");
        assert_eq!(stuck(STUCK + 41, 0), Some(2));
        assert_eq!(stuck(STUCK + 51, 40), Some(1));
        assert_eq!(stuck(STUCK + 51, 50), None);
    }
}
