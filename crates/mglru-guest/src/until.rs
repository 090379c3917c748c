//! The moment at which a run ends early: each worker looks after each of its accesses.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mglru_guest::order::Until;

use crate::events;

/// Knows whether the moment has come.
#[derive(Default)]
pub struct Watch {
    until: Option<Until>,
    began: OnceLock<Instant>,
    /// Reads 0 once the event has happened.
    recording: Option<File>,
    is_past: AtomicBool,
}

impl Watch {
    pub fn new(until: Option<Until>) -> Result<Self, String> {
        let recording = match until {
            Some(Until::Event(_)) => Some(events::recording()?),
            _ => None,
        };
        Ok(Self { until, recording, ..Self::default() })
    }

    /// Starts the count of time.
    pub fn begin(&self) {
        self.began.get_or_init(Instant::now);
    }

    /// Forgets the moment: the run goes on.
    pub fn pass_by(&self) {
        self.is_past.store(true, Ordering::Relaxed);
    }

    /// Tells whether the moment has come after so many accesses of this process.
    pub fn is_over(&self, accesses: u64) -> bool {
        match &self.until {
            None => false,
            Some(_) if self.is_past.load(Ordering::Relaxed) => false,
            Some(Until::Accesses(most)) => accesses >= *most,
            Some(Until::TimeUs(most)) => {
                let took = self.began.get().map_or(Duration::ZERO, Instant::elapsed);
                took.as_micros() >= u128::from(*most)
            }
            Some(Until::Event(_)) => self.recording.as_ref().is_some_and(is_off),
        }
    }
}

/// Tells whether a switch of the kernel's reads 0.
pub fn is_off(file: &File) -> bool {
    let mut text = [b'1'];
    matches!(file.read_at(&mut text, 0), Ok(1)) && text == *b"0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_and_time_are_counted_from_the_start_of_the_work() {
        let watch = |until| Watch::new(until).unwrap();
        let accesses = watch(Some(Until::Accesses(3)));
        assert_eq!([2, 3, 4].map(|n| accesses.is_over(n)), [false, true, true]);
        assert!(!watch(None).is_over(u64::MAX));
        accesses.pass_by();
        assert!(!accesses.is_over(5));
        let time = watch(Some(Until::TimeUs(1)));
        std::thread::sleep(Duration::from_micros(2));
        assert!(!time.is_over(1), "the work has not begun");
        time.begin();
        std::thread::sleep(Duration::from_micros(2));
        assert!(time.is_over(1));
    }
}
