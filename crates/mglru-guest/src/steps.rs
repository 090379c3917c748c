//! Steps: the work stops after some of its accesses, and the first process looks at the machine.

use std::sync::atomic::{AtomicU64, Ordering};

use mglru_guest::order::Steps;

/// Counts accesses and knows those after which the work stops.
pub struct Schedule {
    steps: Option<Steps>,
    accesses: AtomicU64,
    taken: AtomicU64,
    /// The next stop.
    next: AtomicU64,
}

impl Schedule {
    pub fn new(steps: Option<Steps>) -> Self {
        let next = steps.map_or(u64::MAX, |steps| steps.from.max(1));
        let zero = AtomicU64::default;
        Self { steps, accesses: zero(), taken: zero(), next: AtomicU64::new(next) }
    }

    /// Counts an access, and returns the stop's number if the work is to stop after it. Other tasks
    /// may have passed the stop meanwhile: one of them makes it, a little late.
    pub fn stop(&self) -> Option<u64> {
        let steps = self.steps?;
        let number = 1 + self.accesses.fetch_add(1, Ordering::Relaxed);
        let stop = self.next.load(Ordering::Acquire);
        if number < stop {
            return None;
        }
        let taken = 1 + self.taken.load(Ordering::Relaxed);
        let next = steps.after(stop, taken).unwrap_or(u64::MAX);
        let made = self.next.compare_exchange(stop, next, Ordering::AcqRel, Ordering::Relaxed);
        made.ok().inspect(|_| self.taken.store(taken, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(steps: Steps, accesses: u64) -> Vec<u64> {
        let schedule = Schedule::new(Some(steps));
        let made: Vec<u64> = (0..accesses).filter_map(|_| schedule.stop()).collect();
        let foreseen: Vec<u64> = steps.stops().take_while(|stop| *stop <= accesses).collect();
        assert_eq!(made, foreseen);
        made
    }

    #[test]
    fn stops_lie_in_a_window() {
        let steps = Steps { from: 10, to: 16, every: 3, ..Steps::default() };
        assert_eq!(stops(steps, 100), [10, 13, 16]);
        assert_eq!((0..9).filter_map(|_| Schedule::new(None).stop()).count(), 0);
    }

    #[test]
    fn a_stop_that_another_access_passed_is_made_all_the_same() {
        let steps = Steps { from: 2, to: 9, every: 1, ..Steps::default() };
        let schedule = Schedule::new(Some(steps));
        // Another task counted its access between this one's and the look at the next stop.
        schedule.accesses.fetch_add(2, Ordering::Relaxed);
        assert_eq!([(); 3].map(|()| schedule.stop()), [Some(2), Some(3), Some(4)]);
    }

    #[test]
    fn stops_grow_rarer_where_no_end_is_known() {
        let steps = Steps { from: 2, to: u64::MAX, every: 2, doubled_after: 3, ..Steps::default() };
        assert_eq!(stops(steps, 30), [2, 4, 6, 10, 14, 18, 26]);
    }
}
