//! Metrics that cgroups do not have: how long faults took, refault rates of tiers, refault
//! distances.

use std::fmt::Write;

use mglru::MemcgId;

use crate::error::PagerError;
use crate::faults::Kind;
use crate::group::Group;
use crate::policy::Policy;
use crate::policy::distance::bound;
use crate::sys::PAGE;

/// Returns a line for each kind of fault: its name, how many, how long together in ns, and how many
/// took less than 1 µs, 2 µs and so on.
pub fn faults(group: &Group) -> Result<String, PagerError> {
    let report = group.report()?;
    let mut text = String::new();
    for (kind, durations) in Kind::ALL.iter().zip(&report.faults) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{} {} {}", kind.name(), durations.count(), durations.sum);
        durations.counts.iter().for_each(|n| _ = write!(text, " {n}"));
        text.push('\n');
    }
    Ok(text)
}

/// Returns a line for each type and tier: pages that came back, of how many evicted or protected.
/// Groups below have their own.
pub fn tiers(group: &Group) -> Result<String, PagerError> {
    let rates = group.ask(|policy: &mut Policy, memcg: MemcgId| policy.tier_rates(memcg))?;
    let mut text = String::new();
    for (name, tiers) in ["anon", "file"].iter().zip(rates) {
        for (nth, rate) in tiers.iter().enumerate() {
            let _ = writeln!(text, "{name} {nth} {} {}", rate.refaulted, rate.total);
        }
    }
    Ok(text)
}

/// Writes what is resident, major faults so far, and a line a class of distance that occurred: its
/// bound in bytes and how many pages came back from there.
pub fn distances(group: &Group) -> Result<String, PagerError> {
    let report = group.report()?;
    let [major, zswap] =
        [Kind::Major, Kind::Zswap].map(|kind| report.faults[kind as usize].count());
    // Pages of zeros come back without being read, as first touches do.
    let back = report.distances.iter().sum();
    let major = (major + zswap).max(back);
    let mut text = format!("resident {}\nmajor {major}\n", report.resident());
    for (class, n) in report.distances.iter().enumerate().filter(|(_, n)| **n > 0) {
        let _ = writeln!(text, "{} {n}", bound(class) * PAGE as u64);
    }
    Ok(text)
}
