//! How fast the machine simulates: accesses per second of processor time, and host memory per
//! simulated page.
//!
//! `cargo run --release -p mglru-sim --example throughput [CASE…]`; `ACCESSES=N` makes fewer of
//! them, `COUNTERS=1` prints what happened.
//!
//! `hits-*` touch all of a machine's memory at random: the host's own cache misses show. `hot-*`
//! touch 256 MiB of it by zipf while the rest is resident too: the machine's own work shows, and
//! must not grow. `zipf-*` have room for a tenth of their pages.
//!
//! Memory is all that the process grew by from before the machine was made: slab, lists, page
//! tables, page-cache and swap slots with their shadows, everything else. The draws of the workload
//! are made before that. It is printed per resident page, and per page that the machine knows of:
//! what was evicted keeps its page-table entry, its slot and its shadow.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mglru::Config;
use mglru_sim::{MachineSpec, run};
use mglru_workload::rng::Rng;
use mglru_workload::zipf_table::ZipfTable;
use mglru_workload::{
    FileSpec, GroupSpec, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec, Workload,
};

const BATCH: u64 = 64;

/// Describes one case.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    kind: Kind,
    pages: u64,
    /// Pages that are accessed once all have been touched.
    hot: u64,
    /// Share of the pages that the group may hold, in percent.
    resident: u64,
    zipf: bool,
    accesses: u64,
    machine: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Anon,
    Mapped,
    Descriptor,
}

const GIB: u64 = 262_144;

const CASES: &[Case] = &[
    hits("hits-1g", GIB),
    hits("hits-8g", 8 * GIB),
    hits("hits-32g", 32 * GIB),
    hits("hits-128g", 127 * GIB),
    hot("hot-1g", GIB),
    hot("hot-8g", 8 * GIB),
    hot("hot-32g", 32 * GIB),
    hot("hot-128g", 127 * GIB),
    zipf("zipf-mapped", Kind::Mapped, "device = \"ram\""),
    zipf("zipf-nvme", Kind::Mapped, ""),
    zipf("zipf-read", Kind::Descriptor, "device = \"ram\""),
    zipf("zipf-anon-zram", Kind::Anon, "swap.kind = \"zram\""),
];

const RESIDENT: Case = Case {
    name: "",
    kind: Kind::Anon,
    pages: 0,
    hot: 0,
    resident: 100,
    zipf: false,
    accesses: 200_000_000,
    machine: "",
};

const fn hits(name: &'static str, pages: u64) -> Case {
    Case { name, pages, hot: pages, ..RESIDENT }
}

const fn hot(name: &'static str, pages: u64) -> Case {
    Case { name, pages, hot: GIB / 4, zipf: true, ..RESIDENT }
}

const fn zipf(name: &'static str, kind: Kind, machine: &'static str) -> Case {
    let (pages, accesses) = (1_000_000, 40_000_000);
    Case { name, kind, pages, hot: pages, resident: 10, zipf: true, accesses, machine }
}

/// Touches every page once, then at random; one task. The draws are made beforehand: what is
/// measured is the machine.
struct Source {
    case: Case,
    draws: Vec<u32>,
    done: u64,
}

impl Source {
    fn new(case: Case) -> Self {
        let mut rng = Rng::new(1, 0);
        let mut draws = Vec::new();
        if case.zipf {
            let table = ZipfTable::new(case.hot as u32, 990_000, 7).expect("a valid exponent");
            draws.extend((0..1 << 22).map(|_| table.draw(&mut rng)));
        }
        Self { case, draws, done: 0 }
    }

    fn page(&self, n: u64) -> u32 {
        if n < self.case.pages {
            return n as u32;
        }
        match self.draws.is_empty() {
            // A multiplicative walk visits pages in an order without locality.
            true => ((n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % self.case.pages) as u32,
            // What is hot lies in the middle.
            false => {
                let draw = self.draws[(n % self.draws.len() as u64) as usize];
                draw + ((self.case.pages - self.case.hot) / 2) as u32
            }
        }
    }
}

impl Workload for Source {
    fn layout(&self) -> Layout {
        let pages = self.case.pages as u32;
        let file = RegionKind::File { file: 0, first_page: 0 };
        let kind = if self.case.kind == Kind::Anon { RegionKind::Anon } else { file };
        let region = RegionSpec::plain(0, kind, pages);
        Layout {
            groups: vec![GroupSpec { name: "/g".to_owned(), parent: None }],
            files: vec![FileSpec { name: "f".to_owned(), bytes: self.case.pages * 4096 }],
            regions: vec![region],
            tasks: vec![TaskSpec { mm: 0, group: Some(0), node: None, background: false }],
            phases: vec!["steady".to_owned()],
            ..Layout::default()
        }
    }

    fn next(&mut self, _task: TaskId) -> Op {
        unreachable!("only batches are drawn")
    }

    fn fill(&mut self, _task: TaskId, out: &mut Vec<Op>) {
        let total = self.case.pages + self.case.accesses;
        if self.done >= total {
            out.push(Op::Done);
            return;
        }
        for n in self.done..(self.done + BATCH).min(total) {
            let page = self.page(n);
            out.push(match self.case.kind {
                Kind::Descriptor => Op::Read { file: 0, off: u64::from(page) * 4096, len: 4096 },
                kind => Op::Touch { region: 0, page, write: kind == Kind::Anon },
            });
        }
        self.done = (self.done + BATCH).min(total);
    }

    fn string_hash(&self) -> u64 {
        0
    }
}

/// Host memory of this program, bytes.
fn rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kib = line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Processor time of this program, ns: others on the same machine do not count.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux has it");
    stat.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number")
}

fn measure(case: Case) {
    let limit = case.pages * case.resident / 100 * 4096;
    let text = format!(
        "memory = \"{}\"\ncpus = 1\nreadahead_kb = 0\nfault_around_kb = 4\n{}\n\
         [groups.\"/g\"]\n\"memory.max\" = \"{}\"",
        (case.pages * 4096).max(1 << 30) * 101 / 100,
        case.machine,
        if case.resident == 100 { "max".to_owned() } else { limit.to_string() },
    );
    let spec: MachineSpec = toml::from_str(&text).expect("the case is well formed");
    let source = Source::new(case);
    let before = rss();
    let most = AtomicU64::new(before);
    let reports = std::sync::Mutex::new(Vec::new());
    let began = cpu_ns();
    let report = |accesses: u64| {
        if accesses >= case.pages {
            reports.lock().expect("one thread").push((cpu_ns(), accesses));
        }
        most.fetch_max(rss(), Relaxed);
    };
    let outcome = run(&spec, Config::default(), Box::new(source), 1, Some(&report)).expect("runs");
    let reports = reports.into_inner().expect("one thread");
    // Between two reports: making the machine and taking it down are no accesses.
    let [(since, at), .., (until, to)] = reports[..] else { panic!("too few accesses") };
    let rate = (to - at) as f64 * 1e3 / (until - since) as f64;
    let resident = case.pages * case.resident / 100;
    let bytes = (most.load(Relaxed) - before) as f64;
    if std::env::var_os("COUNTERS").is_some() {
        let counters = outcome.counters.iter().filter(|c| c.1 > 0);
        counters.for_each(|(name, value)| println!("{name:32} {value}"));
    }
    let refaults = ["workingset_refault_file", "workingset_refault_anon"]
        .map(|name| outcome.counter(name).unwrap_or(0));
    println!(
        "{:18} {rate:7.2} M accesses/s  {:6.1} B/resident page  {:5.1} B/page  miss {:5.2} %  \
         warm-up {:.1} s",
        case.name,
        bytes / resident as f64,
        bytes / case.pages as f64,
        100.0 * (refaults[0] + refaults[1]) as f64 / outcome.accesses as f64,
        (since - began) as f64 / 1e9,
    );
}

/// Measures in a process of its own, so that no case finds memory that another one left.
fn measure_apart(case: Case) {
    let own = std::env::current_exe().expect("a program has a path");
    let status = std::process::Command::new(own).arg(case.name).status().expect("starts again");
    assert!(status.success(), "{}: {status}", case.name);
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let accesses = std::env::var("ACCESSES").ok().map(|n| n.parse().expect("ACCESSES: a number"));
    if let [one] = &wanted[..]
        && let Some(&case) = CASES.iter().find(|case| case.name == *one)
    {
        return measure(Case { accesses: accesses.unwrap_or(case.accesses), ..case });
    }
    let is_wanted =
        |case: &&Case| wanted.is_empty() || wanted.iter().any(|w| case.name.contains(w.as_str()));
    CASES.iter().filter(is_wanted).for_each(|&case| measure_apart(case));
}
