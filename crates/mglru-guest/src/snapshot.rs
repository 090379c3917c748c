//! Reads everything that the kernel reports about its memory at one time.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use mglru_guest::kernel_text::value;
use mglru_guest::order::{Order, file_path};
use mglru_guest::report::{Done, GroupState, Pressure, Sample, Snapshot};

use crate::memory;
use crate::setup::group_dir;

/// Names the file where the kernel lists the generations and takes debug commands.
pub const LRU_GEN: &str = "/sys/kernel/debug/lru_gen";

/// Reads the kernel's files of counters.
pub struct Observer {
    start: Instant,
    groups: Vec<String>,
    files: usize,
}

impl Observer {
    pub fn new(order: &Order) -> Self {
        let groups = order.groups.iter().map(|group| group.path.clone()).collect();
        Self { start: Instant::now(), groups, files: order.files.len() }
    }

    /// Returns the time since the work began, microseconds.
    pub fn at_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    pub fn snapshot(&self, done: Done) -> Snapshot {
        let state = self.state();
        Snapshot {
            stat: text("/proc/stat").lines().next().unwrap_or_default().to_owned(),
            meminfo: text("/proc/meminfo"),
            min_free_kb: number("/proc/sys/vm/min_free_kbytes").unwrap_or(0),
            pressure: Pressure {
                memory: text("/proc/pressure/memory"),
                io: text("/proc/pressure/io"),
            },
            done,
            ..state
        }
    }

    /// Reads what reclaim changes, without the rest of a snapshot.
    pub fn state(&self) -> Snapshot {
        // The root counts what the machine's own counters leave to the groups.
        let groups = self.groups.iter().map(String::as_str).chain(["/"]);
        let groups = groups.map(|group| (group.to_owned(), group_state(group)));
        Snapshot {
            at_us: self.at_us(),
            vmstat: text("/proc/vmstat"),
            lru_gen: text(LRU_GEN),
            groups: groups.collect(),
            resident: self.of_files(memory::resident),
            ..Snapshot::default()
        }
    }

    /// Tells the cached pages of each file, a bit a page in hexadecimal digits.
    pub fn pages(&self) -> Vec<String> {
        self.of_files(memory::resident_pages)
    }

    fn of_files<T>(&self, read: fn(&str) -> T) -> Vec<T> {
        (0..self.files).map(|file| read(&file_path(file))).collect()
    }

    pub fn samples(&self) -> BTreeMap<String, Sample> {
        self.groups.iter().map(|group| (group.clone(), sample(group))).collect()
    }
}

/// Reads a file; one that the kernel does not have is empty.
fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn number(path: &str) -> Option<u64> {
    text(path).trim().parse().ok()
}

fn group_state(group: &str) -> GroupState {
    let dir = group_dir(group);
    GroupState {
        stat: text(&format!("{dir}/memory.stat")),
        events: text(&format!("{dir}/memory.events")),
        current: number(&format!("{dir}/memory.current")).unwrap_or(0),
        peak: number(&format!("{dir}/memory.peak")),
        swap_current: number(&format!("{dir}/memory.swap.current")).unwrap_or(0),
        pressure: Pressure {
            memory: text(&format!("{dir}/memory.pressure")),
            io: text(&format!("{dir}/io.pressure")),
        },
    }
}

fn sample(group: &str) -> Sample {
    let dir = group_dir(group);
    let stat = text(&format!("{dir}/memory.stat"));
    let of = |name| value(&stat, name).unwrap_or(0);
    Sample {
        current: number(&format!("{dir}/memory.current")).unwrap_or(0),
        anon: of("anon"),
        file: of("file"),
        dirty: of("file_dirty"),
        writeback: of("file_writeback"),
        pgscan: of("pgscan"),
        pgsteal: of("pgsteal"),
        swap: number(&format!("{dir}/memory.swap.current")).unwrap_or(0),
    }
}
