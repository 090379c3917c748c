//! Measures how much looking for used pages costs: a 1 GiB arena of which a quarter is used all the
//! time, aged as often as monitors of working sets do it.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mglru_pager::{PagerOptions, SharedMapping};

use super::{Finding, MIB, Section, Settings, Spread, Target, WORDS, failed, progress};
use mglru_error::Error;

/// Time from one aging to the next: senpai's interval.
const INTERVAL: Duration = Duration::from_secs(6);
/// The kernel's clock tick in /proc, per second.
const TICKS: f64 = 100.0;

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    progress("aging: a 1 GiB arena, a quarter of it hot");
    let len = settings.size(1024, 32) * MIB;
    let pager = PagerOptions::new().memory_max(2 * len as u64).open().map_err(failed("aging"))?;
    let map = pager.root().share_anon(len).map_err(failed("aging"))?;
    map.iter().step_by(WORDS).for_each(|word| word.store(1, Ordering::Relaxed));
    let (laps, interval) = settings.size((5, INTERVAL), (2, Duration::from_millis(100)));
    // The first lap takes all the bits that filling it has set.
    let aged = pager.root().age().map_err(failed("aging"))?;
    let over = AtomicBool::new(false);
    let shares = thread::scope(|scope| {
        let user = scope.spawn(|| use_quarter(&map, &over));
        let shares: Result<Vec<f64>, Error> = (0..laps)
            .map(|_| {
                let (begin, before) = (Instant::now(), policy_seconds());
                pager.root().age().map_err(failed("aging"))?;
                thread::sleep(interval);
                Ok((policy_seconds() - before) / begin.elapsed().as_secs_f64() * 100.0)
            })
            .collect();
        over.store(true, Ordering::Relaxed);
        let faults = user.join().expect("it only loads");
        shares.map(|shares| (shares, faults))
    });
    let (policy, user) = shares?;
    let shares: Vec<f64> = policy.iter().map(|share| share + user).collect();
    let behind = format!(
        "every {} s; of it {user:.2} % in faults of the user{}",
        interval.as_secs_f64(),
        if aged { "" } else { "; nothing was aged" },
    );
    let what = "processor time, % of one";
    let spread = Spread::of(&shares);
    Ok(vec![Finding::new(Section::Aging, what, spread, Target::AtMost(2.0), behind)])
}

/// Loads a word of each hot page, again and again. The share of its time that the kernel took, %.
fn use_quarter(map: &SharedMapping, over: &AtomicBool) -> f64 {
    let (begin, before) = (Instant::now(), system_seconds());
    let mut sum = 0u64;
    while !over.load(Ordering::Relaxed) {
        for word in map[..map.len() / 4].iter().step_by(WORDS) {
            sum = sum.wrapping_add(word.load(Ordering::Relaxed));
        }
    }
    std::hint::black_box(sum);
    (system_seconds() - before) / begin.elapsed().as_secs_f64() * 100.0
}

/// Processor time of the policy threads of this process, seconds.
fn policy_seconds() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let policies = tasks.map(|task| task.path()).filter(|task| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "mglru-policy")
    });
    policies
        .filter_map(|task| first_number(&fs::read_to_string(task.join("schedstat")).ok()?))
        .sum()
}

/// The first word, nanoseconds, as seconds.
fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse::<f64>().ok().map(|ns| ns / 1e9)
}

/// Time that this thread spent in the kernel, seconds.
fn system_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    stime(&stat).unwrap_or(f64::NAN)
}

/// The fifteenth field; the second may hold spaces.
fn stime(stat: &str) -> Option<f64> {
    let after = stat.rsplit_once(')')?.1;
    after.split_whitespace().nth(12)?.parse::<f64>().ok().map(|ticks| ticks / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_kernel_writes_them() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 250 13 14";
        assert_eq!(stime(stat), Some(2.5));
        assert_eq!(first_number("1500000000 3 4"), Some(1.5));
    }
}
