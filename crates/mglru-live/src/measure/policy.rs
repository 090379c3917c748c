//! Refaults of traces under four policies in the same pager, a tenth of the pages in memory. The
//! first three see what the engine sees; exact LRU sees each access.

use std::path::Path;
use std::sync::atomic::Ordering;

use mglru::Config;
use mglru_pager::{Advice, PagerOptions, SwapOptions};
use mglru_workload::trace::{Dense, TraceReader, View, trace_name};

use super::{Finding, MIB, PAGE, Section, Settings, Spread, Target, WORDS, failed, progress};
use mglru_error::Error;

/// Requests of a trace that are replayed.
const MOST: usize = 400_000;

/// A policy to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rival {
    Mglru,
    Fifo,
    Clock,
    Lru,
}

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    if settings.traces.is_empty() {
        let asked = "policy: replays traces, which are not shipped; name some with --trace FILE";
        return Err(Error::Request(asked.into()));
    }
    let mut findings = Vec::new();
    for path in &settings.traces {
        findings.extend(trace(path, settings)?);
    }
    Ok(findings)
}

fn trace(path: &Path, settings: &Settings) -> Result<Vec<Finding>, Error> {
    let name = trace_name(path);
    progress(&format!("policy: {name}"));
    let unreadable = |e: mglru_workload::trace::TraceError| Error::Request(e.to_string());
    let reader = TraceReader::open(path, None, View::default()).map_err(unreadable)?;
    let mut dense = Dense::load(reader).map_err(unreadable)?;
    dense.ids.truncate(settings.size(MOST, 20_000));
    let ours = refaults(&dense.ids, &settings.dir, Rival::Mglru)?;
    let rivals = [Rival::Fifo, Rival::Clock, Rival::Lru];
    let compare =
        |rival| Ok(compared(&name, ours, rival, refaults(&dense.ids, &settings.dir, rival)?));
    rivals.into_iter().map(compare).collect()
}

fn compared(name: &str, ours: u64, rival: Rival, theirs: u64) -> Finding {
    let ratio = ours as f64 / theirs.max(1) as f64;
    let what = format!("refaults of {name} over {rival:?}'s");
    let behind = format!("{ours} and {theirs}");
    let spread = Spread::of(&[ratio]);
    Finding::new(Section::Policy, what, spread, Target::AtMost(1.0), behind)
}

/// Faults of pages that were in memory before.
fn refaults(ids: &[u32], dir: &Path, rival: Rival) -> Result<u64, Error> {
    // Dense numbers are given by first appearance: those of a prefix have no holes.
    let unique = ids.iter().max().map_or(0, |&most| most as usize + 1);
    let own = 2 * MIB + unique * 16;
    let max = (unique / 10 * PAGE + own).max(4 * MIB) as u64;
    let options = PagerOptions::new().memory_max(max).policy(config(rival));
    // A file: swap in memory would take part of the budget.
    let pager = options.second_chance(rival == Rival::Clock).swap(SwapOptions::default());
    let pager = pager.open().map_err(failed("policy"))?;
    let map = pager.root().share_scratch(dir, unique * PAGE).map_err(failed("policy"))?;
    map.advise(Advice::Random).map_err(failed("policy"))?;
    let mut sum = 0u64;
    for &page in ids {
        sum = sum.wrapping_add(map[page as usize * WORDS].load(Ordering::Relaxed));
        if rival == Rival::Lru {
            map.note_used(page as usize);
        }
    }
    std::hint::black_box(sum);
    Ok(map.stat().missing - unique as u64)
}

fn config(rival: Rival) -> Config {
    let mut config = Config::default();
    if rival != Rival::Mglru {
        config.set("lru", "fifo").expect("a key of the core");
    }
    config
}
