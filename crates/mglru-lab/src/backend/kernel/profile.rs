//! Turns counts and a guest's report into a run's profile, beside its records.

use std::path::Path;

use mglru_guest::report::Snapshot;
use mglru_workload::Layout;

use super::outcome;
use super::watch::GuestReport;
use crate::backend::sim::measured::RUN;
use crate::profile::{Counts, FILE, Phase, Profile, Symbols};
use crate::store;

/// Writes a run's profile, if it has one. A machine that stopped for want of memory has none: it
/// says no names.
///
/// # Errors
/// When nothing useful was counted or it cannot be written.
pub fn keep(report: &GuestReport, layout: &Layout, files: &Path) -> Result<(), String> {
    let (Some(counted), Some(over)) = (&report.counted, &report.over) else { return Ok(()) };
    let profile = profile(report, counted, over, layout).map_err(|e| format!("profile: {e}"))?;
    let text = serde_json::to_string(&profile).expect("profiles have string keys only") + "\n";
    store::replace(&files.with_extension(FILE), &text).map_err(|e| e.to_string())
}

/// Explains the error of a machine that was to be profiled, if QEMU's plugins failed.
pub fn explained(e: String) -> String {
    let about_plugins = e.contains("plugin") || e.contains("counting instructions");
    match about_plugins {
        true => format!("--profile: this QEMU cannot count instructions by function: {e}"),
        false => e,
    }
}

fn profile(
    report: &GuestReport,
    counted: &str,
    over: &Snapshot,
    layout: &Layout,
) -> Result<Profile, String> {
    let symbols = Symbols::parse(report.symbols.as_deref().unwrap_or_default());
    if symbols.is_empty() {
        return Err("the kernel names no functions (it needs CONFIG_KALLSYMS)".to_string());
    }
    let counts = Counts::parse(counted).filter(|phases| phases.len() == report.marks.len() + 1);
    let counts = counts.ok_or("the count is cut short")?;
    let starts = [&report.ready].into_iter().chain(report.marks.iter().map(|(_, at)| at));
    let ends = report.marks.iter().map(|(_, at)| at).chain([over]);
    let measured = measured(&names(report, layout));
    let phases = counts.iter().zip(starts.zip(ends)).zip(measured);
    let phases = phases.map(|((counts, (from, to)), (name, measured))| {
        let pages = pages(from, to);
        let (user, functions) = (counts.user, counts.by_function(&symbols));
        let system = functions.values().sum();
        let (reclaimed, scanned) = (pages("pgsteal_"), pages("pgscan_"));
        Phase { name, measured, reclaimed, scanned, user, system, functions }
    });
    Ok(Profile { kernel: report.kernel.clone(), phases: phases.collect() })
}

/// Phases by name; the first begins before any is marked.
fn names(report: &GuestReport, layout: &Layout) -> Vec<String> {
    let name = |(phase, _): &(u32, Snapshot)| layout.phases.get(*phase as usize).cloned();
    let marked = report.marks.iter().map(|mark| name(mark).unwrap_or_default());
    [String::new()].into_iter().chain(marked).collect()
}

/// Phases with whether a record's counters are of them: all, unless one is named `run`.
fn measured(names: &[String]) -> Vec<(String, bool)> {
    let first = names.iter().position(|name| name == RUN);
    let last = first.map(|first| {
        let parts = names[first + 1..].iter().take_while(|name| name.starts_with("run."));
        first + parts.count()
    });
    let within = |at: usize| first.zip(last).is_none_or(|(a, b)| (a..=b).contains(&at));
    names.iter().enumerate().map(|(at, name)| (name.clone(), within(at))).collect()
}

/// Pages of both kinds in whatever reclaim.
fn pages(from: &Snapshot, to: &Snapshot) -> impl Fn(&str) -> u64 {
    let counters = outcome::counters(from, to);
    move |start| {
        ["anon", "file"].iter().filter_map(|kind| counters.get(&format!("{start}{kind}"))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> GuestReport {
        let at =
            |pages| Snapshot { vmstat: format!("pgsteal_file {pages}\n"), ..Snapshot::default() };
        GuestReport {
            kernel: "6.12".to_string(),
            ready: at(1),
            marks: vec![(0, at(3)), (1, at(10))],
            over: Some(at(12)),
            symbols: Some("ffffffff81000000 f\n10 g\n".to_string()),
            counted: Some(
                "0 1\nend\n0 2\nffffffff81000000 5\nffffffff81000012 6\nend\nend\n".to_string(),
            ),
            ..GuestReport::default()
        }
    }

    fn kept(report: &GuestReport) -> Result<Profile, String> {
        let dir = tempfile::tempdir().unwrap();
        let phases = vec!["run".to_string(), "after".to_string()];
        let layout = Layout { phases, ..Layout::default() };
        keep(report, &layout, &dir.path().join("id"))?;
        let text = std::fs::read_to_string(dir.path().join("id.profile.json")).unwrap();
        Ok(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn phases_have_their_counts_and_pages() {
        let profile = kept(&report()).unwrap();
        let figures = |p: &Phase| (p.name.clone(), p.measured, p.reclaimed, p.user, p.system);
        assert_eq!(
            profile.phases.iter().map(figures).collect::<Vec<_>>(),
            [
                (String::new(), false, 2, 1, 0),
                ("run".to_string(), true, 7, 2, 11),
                ("after".to_string(), false, 2, 0, 0),
            ]
        );
        assert_eq!(profile.phases[1].functions["g"], 6);
    }

    #[test]
    fn a_run_without_phases_is_measured_as_a_whole() {
        let all = measured(&[String::new(), "warm".to_string()]);
        assert!(all.iter().all(|(_, measured)| *measured));
        let parts = ["", "run", "run.b", "run.c", "end"].map(str::to_string);
        let found: Vec<bool> = measured(&parts).into_iter().map(|(_, m)| m).collect();
        assert_eq!(found, [false, true, true, true, false]);
    }

    #[test]
    fn what_is_missing_is_said() {
        let unnamed = GuestReport { symbols: None, ..report() };
        assert!(kept(&unnamed).unwrap_err().starts_with("profile: the kernel names no functions"));
        let torn = GuestReport { counted: Some("end\n".to_string()), ..report() };
        assert_eq!(kept(&torn).unwrap_err(), "profile: the count is cut short");
        let line = explained("qemu: Could not load plugin /x: no".to_string());
        assert!(line.starts_with("--profile: this QEMU cannot count instructions by function: "));
        assert_eq!(explained("the guest panicked".to_string()), "the guest panicked");
    }
}
