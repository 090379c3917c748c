//! A hit is a plain load or store: random ones over memory that all fits, beside an ordinary
//! allocation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mglru_pager::PagerOptions;

use super::{Finding, MIB, Numbers, Section, Settings, Target, WORDS, abba, failed, progress};
use mglru_error::Error;

/// Bytes: more than caches hold.
const LEN: usize = 64 * MIB;

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    progress("hit: memory that fits");
    let pager = PagerOptions::new().memory_max(4 * LEN as u64).open().map_err(failed("hit"))?;
    let managed = pager.root().share_anon(LEN).map_err(failed("hit"))?;
    let plain: Vec<AtomicU64> = (0..LEN / 8).map(|_| AtomicU64::new(0)).collect();
    for words in [&plain[..], &managed] {
        words.iter().step_by(WORDS).for_each(|word| word.store(1, Ordering::Relaxed));
    }
    let accesses = settings.size(20_000_000, 200_000);
    // Pairs are short here: more of them cost nothing.
    let pairs = abba::pairs(
        settings.pairs * 4,
        || Ok(time(&plain, accesses)),
        || Ok(time(&managed, accesses)),
    )?;
    let ns = pairs[0].0 / accesses as f64 * 1e9;
    let behind = format!("random loads and stores, {ns:.1} ns each in plain memory");
    let what = "time of a hit over plain memory's";
    Ok(vec![Finding::new(Section::Hit, what, abba::ratios(&pairs), Target::AtMost(1.01), behind)])
}

/// Seconds that half loads, half stores took.
fn time(words: &[AtomicU64], accesses: usize) -> f64 {
    let mut numbers = Numbers(1);
    let mut sum = 0u64;
    let begin = Instant::now();
    for nth in 0..accesses {
        let word = &words[numbers.below(words.len())];
        if nth % 2 == 0 {
            sum = sum.wrapping_add(word.load(Ordering::Relaxed));
        } else {
            word.store(nth as u64, Ordering::Relaxed);
        }
    }
    std::hint::black_box(sum);
    begin.elapsed().as_secs_f64()
}
