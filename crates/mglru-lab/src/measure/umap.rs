//! Random reads and writes of a file with room for half of it, beside UMap's method in the same
//! process: one thread, the oldest page first, each page by itself while the fault waits.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mglru_pager::{Advice, FaultEngine, FifoPager, PagerOptions};

use super::{Finding, MIB, Numbers, PAGE, Section, Settings, Target, abba, failed, progress};
use crate::error::Error;

/// Threads that read and write: as many as the most writers of `budget`.
const THREADS: usize = 16;

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    progress("umap: random reads and writes, half of the file fits");
    let len = settings.size(128, 8) * MIB;
    let file = scratch(settings, len).map_err(|e| Error::io(&settings.dir, e))?;
    let long = settings.size(Duration::from_secs(4), Duration::from_millis(200));
    let base = || {
        let map = FifoPager::map(&file, len / 2 / PAGE).map_err(|e| Error::io(&settings.dir, e))?;
        Ok(rate(&map, long))
    };
    let compare = |engine: FaultEngine| {
        let ours = || {
            let options = PagerOptions::new().memory_max(len as u64 / 2).fault_engine(engine);
            let pager = options.open().map_err(failed("umap"))?;
            let map = pager.root().share_scratch(&settings.dir, len).map_err(failed("umap"))?;
            map.advise(Advice::Random).map_err(failed("umap"))?;
            Ok(rate(&map, long))
        };
        let pairs = abba::pairs(settings.pairs, base, ours)?;
        let behind = format!("{:.0}/s and {:.0}/s in the first pair", pairs[0].0, pairs[0].1);
        let engine = engine.name();
        let what = format!("accesses per second over UMap's method, {THREADS} threads, {engine}");
        let target = Target::AtLeast(10.0);
        Ok(Finding::new(Section::Umap, what, abba::ratios(&pairs), target, behind))
    };
    [FaultEngine::Sigbus, FaultEngine::Thread].into_iter().map(compare).collect()
}

fn scratch(settings: &Settings, len: usize) -> std::io::Result<File> {
    let mut file = tempfile::tempfile_in(&settings.dir)?;
    let chunk = vec![1u8; MIB];
    (0..len / MIB).try_for_each(|_| file.write_all(&chunk))?;
    file.sync_all()?;
    Ok(file)
}

/// Accesses per second, once memory is full: the first half of the time is not counted.
fn rate(words: &[AtomicU64], long: Duration) -> f64 {
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for seed in 1..=THREADS as u64 {
            let (done, over) = (&done, &over);
            scope.spawn(move || access(words, seed, done, over));
        }
        thread::sleep(long / 2);
        let (begin, before) = (Instant::now(), done.load(Ordering::Relaxed));
        thread::sleep(long / 2);
        let rate = (done.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        rate
    })
}

fn access(words: &[AtomicU64], seed: u64, done: &AtomicU64, over: &AtomicBool) {
    let (mut numbers, mut nth) = (Numbers(seed), 0);
    while !over.load(Ordering::Relaxed) {
        let word = &words[numbers.below(words.len())];
        if numbers.below(2) == 0 {
            std::hint::black_box(word.load(Ordering::Relaxed));
        } else {
            word.store(nth, Ordering::Relaxed);
        }
        nth += 1;
        done.fetch_add(1, Ordering::Relaxed);
    }
}
