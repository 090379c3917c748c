//! Random reads and writes of a file with room for half of it, beside UMap's method in the same
//! process: one thread, the oldest page first, each page by itself while the fault waits.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mglru_pager::{Advice, FaultEngine, FifoPager, PagerOptions};
use rustix::fs::OFlags;

use super::{Finding, MIB, Numbers, PAGE, Section, Settings, Target, abba, failed, progress};
use crate::error::Error;

/// Threads that read and write: as many as the most writers of `budget`.
const THREADS: usize = 16;

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    progress("umap: random reads and writes, half of the file fits");
    let len = settings.size(128, 8) * MIB;
    let file = scratch(settings, len).map_err(|e| Error::io(&settings.dir, e))?;
    let long = settings.size(Duration::from_secs(4), Duration::from_millis(200));
    // A file system may refuse to be read past its cache.
    let alone = disk_alone(&file, len, long).map_or("unknown".into(), |n| format!("{n:.0}/s"));
    let base = || {
        let map = FifoPager::map(&file, len / 2 / PAGE).map_err(|e| Error::io(&settings.dir, e))?;
        Ok(rate(long, |seed| access(&map, seed)))
    };
    let compare = |engine: FaultEngine| {
        let ours = || {
            let options = PagerOptions::new().memory_max(len as u64 / 2).fault_engine(engine);
            let pager = options.open().map_err(failed("umap"))?;
            let map = pager.root().share_scratch(&settings.dir, len).map_err(failed("umap"))?;
            map.advise(Advice::Random).map_err(failed("umap"))?;
            Ok(rate(long, |seed| access(&map, seed)))
        };
        let pairs = abba::pairs(settings.pairs, base, ours)?;
        let (first, engine) = (&pairs[0], engine.name());
        let behind = format!(
            "{:.0}/s and {:.0}/s in the first pair; ours moved {:.0} pages/s, the disk {alone}",
            first.0.accesses, first.1.accesses, first.1.pages
        );
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a.accesses, b.accesses)).collect();
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

/// What a run gives a second, once memory is full: the first half of the time is not counted.
struct Rate {
    accesses: f64,
    /// Read and written.
    pages: f64,
}

/// Has all threads do the same until the time is over. `begin` gives a thread's access by its
/// seed; one that says it did nothing does not count.
fn rate<A: FnMut() -> bool>(long: Duration, begin: impl Fn(u64) -> A + Sync) -> Rate {
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let counts = || [done.load(Ordering::Relaxed), bytes_moved() / PAGE as u64];
    thread::scope(|scope| {
        for seed in 1..=THREADS as u64 {
            let (begin, done, over) = (&begin, &done, &over);
            scope.spawn(move || {
                let mut access = begin(seed);
                while !over.load(Ordering::Relaxed) {
                    done.fetch_add(access().into(), Ordering::Relaxed);
                }
            });
        }
        thread::sleep(long / 2);
        let (start, before) = (Instant::now(), counts());
        thread::sleep(long / 2);
        let (seconds, after) = (start.elapsed().as_secs_f64(), counts());
        over.store(true, Ordering::Relaxed);
        let [accesses, pages] = [0, 1].map(|nth| (after[nth] - before[nth]) as f64 / seconds);
        Rate { accesses, pages }
    })
}

/// Loads and stores by turns of chance, anywhere.
fn access(words: &[AtomicU64], seed: u64) -> impl FnMut() -> bool {
    let (mut numbers, mut nth) = (Numbers(seed), 0);
    move || {
        let word = &words[numbers.below(words.len())];
        if numbers.below(2) == 0 {
            std::hint::black_box(word.load(Ordering::Relaxed));
        } else {
            word.store(nth, Ordering::Relaxed);
        }
        nth += 1;
        true
    }
}

/// Pages that as many threads read and write in the same file with nothing between them and the
/// disk, three reads to two writes as the accesses above need them: no pager moves more.
fn disk_alone(file: &File, len: usize, long: Duration) -> std::io::Result<f64> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::DIRECT.bits() as i32;
    let direct = File::options().read(true).write(true).custom_flags(flags).open(path)?;
    let transfer = |seed| {
        let (mut numbers, mut page) = (Numbers(seed), Box::new(Aligned([1; PAGE])));
        let direct = &direct;
        move || {
            let at = (numbers.below(len / PAGE) * PAGE) as u64;
            let moved = match numbers.below(5) {
                0..3 => direct.read_exact_at(&mut page.0, at),
                _ => direct.write_all_at(&page.0, at),
            };
            moved.is_ok()
        }
    };
    Ok(rate(long, transfer).accesses)
}

#[repr(align(4096))]
struct Aligned([u8; PAGE]);

/// Bytes that this process had disks move, if the kernel counts them.
fn bytes_moved() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let moved = |line: &str| {
        let (key, value) = line.split_once(": ")?;
        matches!(key, "read_bytes" | "write_bytes").then(|| value.parse::<u64>().ok())?
    };
    text.lines().filter_map(moved).sum()
}
