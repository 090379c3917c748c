//! The budget holds: writers make far more memory resident than it allows, each page with content
//! that hardly packs, and what is in memory for it is watched: pages of arenas, mapped or not, and
//! private memory of the pager.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mglru_pager::{PagerOptions, SharedMapping, SwapOptions};

use super::{Finding, MIB, Numbers, Section, Settings, Spread, Target, WORDS, failed, progress};
use mglru_error::Error;

/// memory.max, and what is written to: half to anonymous memory, half to a file.
const MAX: usize = 64 * MIB;
const LEN: usize = 256 * MIB;
/// How long they write.
const SECONDS: Duration = Duration::from_secs(4);
const QUICK: Duration = Duration::from_millis(300);

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    let threads: &[usize] = settings.size(&[1, 2, 4, 8, 16], &[2]);
    threads.iter().map(|&n| with(settings, n)).collect()
}

fn with(settings: &Settings, threads: usize) -> Result<Finding, Error> {
    progress(&format!("budget: {threads} writers"));
    let peak = peak(settings, threads)?;
    let share = peak as f64 / MAX as f64 * 100.0;
    let what = format!("most in memory with {threads} writers, % of memory.max");
    let behind = format!("{:.2} of {} MiB", peak as f64 / MIB as f64, MAX / MIB);
    let spread = Spread::of(&[share]);
    Ok(Finding::new(Section::Budget, what, spread, Target::AtMost(101.0), behind))
}

/// The most that was in memory at a time, bytes.
fn peak(settings: &Settings, threads: usize) -> Result<usize, Error> {
    let before = private();
    // Pages that hardly compress cannot stay in memory.
    let swap = SwapOptions::in_memory(MAX as u64 / 4).with_file_in(&settings.dir, 1 << 30);
    let pager = PagerOptions::new().memory_max(MAX as u64).swap(swap);
    let pager = pager.open().map_err(failed("budget"))?;
    let anon = pager.root().share_anon(LEN / 2).map_err(failed("budget"))?;
    let file = pager.root().share_scratch(&settings.dir, LEN / 2).map_err(failed("budget"))?;
    let (maps, over) = ([anon, file], AtomicBool::new(false));
    Ok(thread::scope(|scope| {
        for nth in 0..threads {
            let (map, over) = (&maps[nth % 2], &over);
            scope.spawn(move || write(map, nth as u64 + 1, over));
        }
        let most = watch(&maps, settings.size(SECONDS, QUICK));
        over.store(true, Ordering::Relaxed);
        most.saturating_sub(before)
    }))
}

/// Looks as long as that: pages of the arenas and all private memory, at most, bytes.
fn watch(maps: &[SharedMapping], long: Duration) -> usize {
    let (begin, mut most) = (Instant::now(), 0);
    while begin.elapsed() < long {
        let resident: u64 = maps.iter().filter_map(|map| map.resident().ok()).sum();
        most = most.max(resident as usize + private());
        thread::sleep(Duration::from_millis(1));
    }
    most
}

/// Fills random pages with words that do not repeat.
fn write(map: &SharedMapping, seed: u64, over: &AtomicBool) {
    let mut numbers = Numbers(seed);
    while !over.load(Ordering::Relaxed) {
        let page = numbers.below(map.len() / WORDS);
        for word in &map[page * WORDS..][..WORDS] {
            word.store(numbers.below(1 << 31) as u64, Ordering::Relaxed);
        }
    }
}

/// Private memory of this process that is resident, bytes; the writers' stacks are in it.
fn private() -> usize {
    anon_of(&fs::read_to_string("/proc/self/status").unwrap_or_default()).unwrap_or(0)
}

fn anon_of(status: &str) -> Option<usize> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(anon_of("VmRSS:\t  9 kB\nRssAnon:\t    12 kB\n"), Some(12 * 1024));
        assert!(private() > 0);
    }
}
