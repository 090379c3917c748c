//! Random reads and writes of a file with room for half of it, beside UMap's method in the same
//! process: one thread, the oldest page first, each page by itself while the fault waits.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mglru_pager::yardsticks::FifoPager;
use mglru_pager::{Advice, FaultEngine, PagerOptions};
use rustix::fs::OFlags;

use super::remote::{ANSWER, Remote};
use super::{Finding, MIB, Numbers, PAGE, Section, Settings, Target, abba, failed, progress};
use mglru_error::Error;

/// Threads that read and write: as many as the most writers of `budget`.
const THREADS: usize = 16;

/// Where the file is.
struct Place<'a> {
    what: &'a str,
    dir: &'a Path,
    file: File,
    len: usize,
    long: Duration,
}

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    let brief = Duration::from_millis(200);
    let disk = (settings.size(128, 8), settings.size(Duration::from_secs(4), brief));
    // A thousand pages a second: a smaller file is in memory as soon.
    let volume = (settings.size(16, 8), settings.size(Duration::from_secs(6), brief));
    let mut findings = Place::new("the disk", &settings.dir, disk)?.compare(settings)?;
    let remote = match Remote::mount() {
        Ok(remote) => remote,
        Err(error) => {
            progress(&format!("umap: no volume to compare on: FUSE: {error}"));
            return Ok(findings);
        }
    };
    let what = format!("a volume that answers after {ANSWER:?}");
    findings.extend(Place::new(&what, remote.path(), volume)?.compare(settings)?);
    Ok(findings)
}

impl<'a> Place<'a> {
    fn new(what: &'a str, dir: &'a Path, (mib, long): (usize, Duration)) -> Result<Self, Error> {
        let len = mib * MIB;
        let file = scratch(dir, len).map_err(|e| Error::io(dir, e))?;
        Ok(Self { what, dir, file, len, long })
    }

    fn compare(&self, settings: &Settings) -> Result<Vec<Finding>, Error> {
        progress(&format!("umap: random reads and writes of {}, half of it fits", self.what));
        // A file system may refuse to be read past its cache.
        let alone = disk_alone(&self.file, self.len, self.long);
        let alone = alone.map_or("unknown".into(), |n| format!("{n:.0} pages/s"));
        let compare = |engine: FaultEngine| {
            let pairs = abba::pairs(settings.pairs, || self.base(), || self.ours(engine))?;
            let (what, engine, first) = (self.what, engine.name(), pairs[0]);
            let behind = format!(
                "{:.0}/s and {:.0}/s in the first pair; {what} alone moves {alone}",
                first.0, first.1
            );
            let figure = format!(
                "accesses per second over UMap's method, {THREADS} threads, {engine}, {what}"
            );
            let (spread, target) = (abba::ratios(&pairs), Target::AtLeast(10.0));
            Ok(Finding::new(Section::Umap, figure, spread, target, behind))
        };
        [FaultEngine::Sigbus, FaultEngine::Thread].into_iter().map(compare).collect()
    }

    fn base(&self) -> Result<f64, Error> {
        let most = self.len / 2 / PAGE;
        let map = FifoPager::map(&self.file, most).map_err(|e| Error::io(self.dir, e))?;
        Ok(rate(self.long, |seed| access(&map, seed)))
    }

    fn ours(&self, engine: FaultEngine) -> Result<f64, Error> {
        let options = PagerOptions::new().memory_max(self.len as u64 / 2).fault_engine(engine);
        let pager = options.open().map_err(failed("umap"))?;
        let map = pager.root().share_scratch(self.dir, self.len).map_err(failed("umap"))?;
        map.advise(Advice::Random).map_err(failed("umap"))?;
        Ok(rate(self.long, |seed| access(&map, seed)))
    }
}

fn scratch(dir: &Path, len: usize) -> std::io::Result<File> {
    let mut file = tempfile::tempfile_in(dir)?;
    let chunk = vec![1u8; MIB];
    (0..len / MIB).try_for_each(|_| file.write_all(&chunk))?;
    file.sync_all()?;
    Ok(file)
}

/// Counts the accesses of all threads a second, once memory is full: the first half of the time is
/// not counted. `begin` gives a thread's access by its seed; one that says it did nothing does not
/// count.
fn rate<A: FnMut() -> bool>(long: Duration, begin: impl Fn(u64) -> A + Sync) -> f64 {
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
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
        let (start, before) = (Instant::now(), done.load(Ordering::Relaxed));
        thread::sleep(long / 2);
        let after = done.load(Ordering::Relaxed);
        let seconds = start.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        (after - before) as f64 / seconds
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
    Ok(rate(long, transfer))
}

#[repr(align(4096))]
struct Aligned([u8; PAGE]);
