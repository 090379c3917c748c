//! Measures how much a fault costs beside the least it can cost with a thread that answers it:
//! first stores to pages while there is room.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mglru_pager::yardsticks::{on_first_processor, raw_round_trip};
use mglru_pager::{Advice, PagerOptions};

use super::{Finding, PAGE, Section, Settings, Target, WORDS, abba, failed, progress};
use mglru_error::Error;

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    progress("fault: the raw round trip and ours");
    let n = settings.size(20_000, 1_000);
    let raw = || {
        let times = raw_round_trip(n).map_err(|e| Error::Request(format!("fault: {e}")))?;
        Ok(median_us(times))
    };
    let pairs = abba::pairs(settings.pairs, raw, || ours(n))?;
    let behind = format!("{:.1} µs raw, {:.1} µs ours, in the first pair", pairs[0].0, pairs[0].1);
    let what = "median of a first store over the raw round trip's";
    Ok(vec![Finding::new(Section::Fault, what, abba::ratios(&pairs), Target::AtMost(1.25), behind)])
}

fn ours(n: usize) -> Result<f64, Error> {
    let pager = PagerOptions::new().memory_max(1 << 30).open().map_err(failed("fault"))?;
    let map = pager.root().share_anon(n * PAGE).map_err(failed("fault"))?;
    map.advise(Advice::Random).map_err(failed("fault"))?;
    let store = |word: &AtomicU64| {
        let begin = Instant::now();
        word.store(1, Ordering::Relaxed);
        begin.elapsed()
    };
    Ok(median_us(on_first_processor(|| map.iter().step_by(WORDS).map(store).collect())))
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_microseconds() {
        let us = |n| Duration::from_micros(n);
        assert_eq!(median_us(vec![us(9), us(2), us(4)]), 4.0);
    }
}
