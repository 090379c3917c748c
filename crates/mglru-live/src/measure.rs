//! `mglru measure`: what the live pager must show, each as a figure beside its target. Figures
//! are ratios of two sides that take turns, so that what else the machine does hits both; the
//! load is reported all the same.

mod abba;
mod aging;
mod budget;
mod fault;
mod fio;
mod hit;
mod kernel_group;
mod policy;
mod remote;
mod soak;
mod umap;

use std::path::PathBuf;

use serde::Serialize;

pub use abba::Spread;
use mglru_error::Error;

/// Names what can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// Compares what writers make resident with memory.max
    Budget,
    /// Compares fio's mmap engine under the pager with the kernel's page cache
    Fio,
    /// Compares memory that is resident with plain memory
    Hit,
    /// Compares a fault with the raw round trip of userfaultfd
    Fault,
    /// Compares random reads and writes with UMap's method
    Umap,
    /// Measures what looking for used pages costs
    Aging,
    /// Counts refaults of traces under MGLRU, FIFO, CLOCK and exact LRU
    Policy,
    /// Verifies files, anonymous memory and a forking program for minutes; only if asked for
    Soak,
}

/// Says how to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Sets the pairs of runs of each comparison.
    pub pairs: usize,
    /// Makes all smaller and shorter: to see that it works, not what it gives.
    pub quick: bool,
    /// Says where files are made.
    pub dir: PathBuf,
    /// Lists traces to replay; none are shipped.
    pub traces: Vec<PathBuf>,
    /// Sets the minutes of the soak.
    pub minutes: f64,
}

impl Settings {
    /// One of two sizes.
    fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// Says what a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Requires this or more.
    AtLeast(f64),
    /// Requires this or less.
    AtMost(f64),
}

impl Target {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(least) => figure >= least,
            Self::AtMost(most) => figure <= most,
        }
    }
}

/// Holds a figure and what it must be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Names the section of the figure.
    pub section: Section,
    /// Names the figure.
    pub what: String,
    /// Holds its median and range.
    pub spread: Spread,
    /// Holds the target of its median.
    pub target: Target,
    /// Says that the target is met.
    pub met: bool,
    /// Says what explains the figure.
    pub behind: String,
}

impl Finding {
    fn new(
        section: Section,
        what: impl Into<String>,
        spread: Spread,
        target: Target,
        behind: impl Into<String>,
    ) -> Self {
        let met = target.is_met(spread.median);
        Self { section, what: what.into(), spread, target, met, behind: behind.into() }
    }
}

/// Holds all findings, and how busy the machine was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Lists findings in the order they were measured.
    pub findings: Vec<Finding>,
    /// Counts processors.
    pub processors: usize,
    /// Holds the load of the machine over a minute, before and after.
    pub load: [f64; 2],
}

/// Measures the sections in turn.
///
/// # Errors
/// One cannot be measured here: the line says what is missing.
pub fn run(sections: &[Section], settings: &Settings) -> Result<Measured, Error> {
    lacks_nothing()?;
    let before = load();
    let mut findings = Vec::new();
    for section in sections {
        let found = match section {
            Section::Budget => budget::measure(settings),
            Section::Fio => fio::measure(settings),
            Section::Hit => hit::measure(settings),
            Section::Fault => fault::measure(settings),
            Section::Umap => umap::measure(settings),
            Section::Aging => aging::measure(settings),
            Section::Policy => policy::measure(settings),
            Section::Soak => soak::measure(settings),
        };
        findings.extend(found?);
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Measured { findings, processors, load: [before, load()] })
}

fn lacks_nothing() -> Result<(), Error> {
    match mglru_pager::probe().into_iter().find(|fact| fact.required && !fact.ok) {
        Some(fact) => Err(Error::Request(format!("{}: {} ({})", fact.what, fact.detail, fact.fix))),
        None => Ok(()),
    }
}

/// Runnable tasks over the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

/// Shows progress to a person who waits.
fn progress(text: &str) {
    eprintln!("mglru measure: {text}");
}

fn failed(what: &str) -> impl Fn(mglru_pager::PagerError) -> Error + '_ {
    move |error| Error::Request(format!("{what}: {error}"))
}

/// Numbers without a pattern, the same in each run (Knuth's generator, its upper bits).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (((self.0 >> 32) * n as u64) >> 32) as usize
    }
}

/// Bytes of a page, and words in it.
const PAGE: usize = 4096;
const WORDS: usize = PAGE / 8;
/// A mebibyte.
const MIB: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_judged_by_its_median() {
        let judged = |target, figures: &[f64]| {
            Finding::new(Section::Hit, "x", Spread::of(figures), target, "").met
        };
        assert!(judged(Target::AtLeast(1.0), &[0.5, 1.0, 3.0]));
        assert!(!judged(Target::AtLeast(1.0), &[0.5, 0.99, 3.0]));
        assert!(judged(Target::AtMost(1.0), &[0.5, 1.0, 3.0]));
        assert!(!judged(Target::AtMost(1.0), &[f64::NAN]), "no figure is no success");
    }
}
