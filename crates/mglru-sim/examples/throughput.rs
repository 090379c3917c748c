//! How fast the machine simulates: accesses per second of host time, and host memory per
//! simulated page.
//!
//! `cargo run --release -p mglru-sim --example throughput [CASE…]`

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use mglru::Config;
use mglru_sim::{MachineSpec, run};
use mglru_workload::rng::Rng;
use mglru_workload::zipf_table::ZipfTable;
use mglru_workload::{
    Advice, Content, FileSpec, GroupSpec, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec,
    Workload,
};

const BATCH: u64 = 64;

/// What one case does.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    kind: Kind,
    pages: u64,
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
    zipf("zipf-mapped", Kind::Mapped, "device = \"ram\""),
    zipf("zipf-mapped-nvme", Kind::Mapped, ""),
    zipf("zipf-read", Kind::Descriptor, "device = \"ram\""),
    zipf("zipf-anon-zram", Kind::Anon, "swap.kind = \"zram\""),
];

const fn hits(name: &'static str, pages: u64) -> Case {
    let kind = Kind::Anon;
    Case { name, kind, pages, resident: 100, zipf: false, accesses: 200_000_000, machine: "" }
}

const fn zipf(name: &'static str, kind: Kind, machine: &'static str) -> Case {
    Case { name, kind, pages: 1_000_000, resident: 10, zipf: true, accesses: 40_000_000, machine }
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
            let table = ZipfTable::new(case.pages as u32, 990_000, 7).expect("a valid exponent");
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
            false => self.draws[(n % self.draws.len() as u64) as usize],
        }
    }
}

impl Workload for Source {
    fn layout(&self) -> Layout {
        let pages = self.case.pages as u32;
        let file = RegionKind::File { file: 0, first_page: 0 };
        let kind = if self.case.kind == Kind::Anon { RegionKind::Anon } else { file };
        let region = RegionSpec {
            mm: 0,
            kind,
            pages,
            advice: Advice::Normal,
            content: Content::Compressible,
            locked: false,
            exec: false,
            mapped: true,
        };
        Layout {
            groups: vec![GroupSpec { name: "/g".to_owned(), parent: None }],
            files: vec![FileSpec { name: "f".to_owned(), bytes: self.case.pages * 4096 }],
            regions: vec![region],
            tasks: vec![TaskSpec { mm: 0, group: Some(0), node: None, background: false }],
            classes: Vec::new(),
            phases: vec!["steady".to_owned()],
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
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells");
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
    let steady = std::sync::Mutex::new(None);
    let began = cpu_ns();
    let tell = |accesses: u64| {
        let mut steady = steady.lock().expect("one thread");
        if accesses >= case.pages && steady.is_none() {
            *steady = Some((cpu_ns(), accesses));
        }
        most.fetch_max(rss(), Relaxed);
    };
    let outcome = run(&spec, Config::default(), Box::new(source), 1, Some(&tell)).expect("runs");
    let (since, at) = steady.into_inner().expect("one thread").unwrap_or((began, 0));
    let rate = (outcome.accesses - at) as f64 * 1e3 / (cpu_ns() - since) as f64;
    let resident = case.pages * case.resident / 100;
    let bytes = (most.load(Relaxed) - before) as f64 / resident as f64;
    if std::env::var_os("COUNTERS").is_some() {
        let counters = outcome.counters.iter().filter(|c| c.1 > 0);
        counters.for_each(|(name, value)| println!("{name:32} {value}"));
    }
    let refaults = ["workingset_refault_file", "workingset_refault_anon"]
        .map(|name| outcome.counter(name).unwrap_or(0));
    println!(
        "{:18} {rate:7.2} M accesses/s  {bytes:6.1} B/resident page  miss {:5.2} %  \
         warm-up {:.1} s",
        case.name,
        100.0 * (refaults[0] + refaults[1]) as f64 / outcome.accesses as f64,
        (since - began) as f64 / 1e9,
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for &case in CASES {
        if wanted.is_empty() || wanted.iter().any(|w| case.name.contains(w.as_str())) {
            measure(case);
        }
    }
}
