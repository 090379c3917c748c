//! Dirty pages of files on their way to the device: the bookkeeping of each domain (the machine,
//! and every group), the flushers, and what slows a writer (experiments §0.3, spec §9.5).

use mglru::types::{MemcgId, Nanos};
use mglru_workload::FileId;

use crate::dirty::{
    Bandwidth, DirtyFiles, DirtySpec, Flusher, Pacer, Pause, Reason, Run, Thresholds,
};

/// Describes the domain that slows writers and wakes the flusher: the machine, or a group.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    pacer: Pacer,
    bandwidth: Bandwidth,
}

/// Counts pages of files that a group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Counts dirty pages.
    pub dirty: u64,
    /// Counts pages under writeback.
    pub writeback: u64,
    /// Counts all file pages.
    pub file: u64,
}

/// Counts dirty pages and pages under writeback, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Counts dirty pages.
    pub dirty: u64,
    /// Counts pages under writeback.
    pub writeback: u64,
    /// Holds the limits.
    pub limits: Thresholds,
}

impl Load {
    /// Tells whether it is time for the flusher.
    pub fn is_above_background(&self) -> bool {
        self.dirty > self.limits.background
    }
}

/// Holds all dirty data of the machine.
#[derive(Clone, Debug)]
pub struct Writeback {
    /// Holds the limits and times.
    pub spec: DirtySpec,
    /// Records which pages are dirty.
    pub files: DirtyFiles,
    under_way: Vec<u64>,
    machine: Domain,
    groups: Vec<Domain>,
    /// Counts what each group held when statistics were last summed up; empty: limits see what it
    /// holds.
    pub summed: Vec<Held>,
    flushers: Vec<Flusher>,
    turn: usize,
    tick_armed: bool,
    /// Counts pages dirtied so far.
    pub nr_dirtied: u64,
    /// Counts pages written back so far.
    pub nr_written: u64,
    /// Counts the time that writers were paused, ns.
    pub paused: Nanos,
}

impl Writeback {
    /// Creates a clean state; groups are added by [`Self::add_group`], the root first.
    pub fn new(spec: DirtySpec, nr_files: usize) -> Self {
        Self {
            spec,
            files: DirtyFiles::new(),
            under_way: vec![0; nr_files],
            machine: Domain::default(),
            groups: Vec::new(),
            summed: Vec::new(),
            flushers: Vec::new(),
            turn: 0,
            tick_armed: false,
            nr_dirtied: 0,
            nr_written: 0,
            paused: 0,
        }
    }

    /// Adds a group with a flusher for the files it dirties.
    pub fn add_group(&mut self, memcg: MemcgId) {
        self.groups.push(Domain::default());
        self.flushers.push(Flusher::new(&self.spec, Some(memcg)));
    }

    /// Records that a page is dirtied, and that as many count as dirtied with it. `Some(at)`: the
    /// periodic flush must be looked after at that time.
    pub fn dirtied(
        &mut self,
        file: FileId,
        page: u64,
        count: u64,
        memcg: MemcgId,
        now: Nanos,
    ) -> Option<Nanos> {
        if !self.files.set(file, page, memcg, now) {
            return None;
        }
        self.nr_dirtied += count;
        let first = !std::mem::replace(&mut self.tick_armed, true);
        first.then(|| now + self.spec.wake_ms * 1_000_000)
    }

    /// Records that writeback of pages begins: they are clean, or will be when it ends.
    pub fn started(&mut self, file: FileId, page: u64, pages: u32, memcg: MemcgId, now: Nanos) {
        for page in page..page + u64::from(pages) {
            self.files.clear(file, page);
        }
        let pages = u64::from(pages);
        self.under_way[file as usize] += pages;
        self.machine.bandwidth.started(now, pages);
        self.groups[memcg.index()].bandwidth.started(now, pages);
    }

    /// Records that writeback of pages ends.
    pub fn ended(&mut self, file: FileId, pages: u32, memcg: MemcgId, now: Nanos) {
        let pages = u64::from(pages);
        self.under_way[file as usize] -= pages;
        self.nr_written += pages;
        self.machine.bandwidth.ended(now, pages);
        self.groups[memcg.index()].bandwidth.ended(now, pages);
    }

    /// Counts the pages of a file under writeback.
    pub fn under_way(&self, file: FileId) -> u64 {
        self.under_way[file as usize]
    }

    /// Counts the pages of all files under writeback.
    pub fn all_under_way(&self) -> u64 {
        self.machine.bandwidth.in_flight()
    }

    /// Says what a writer that has dirtied so many pages must do.
    pub fn pause(
        &mut self,
        now: Nanos,
        dirtied: u64,
        memcg: MemcgId,
        machine: Load,
        group: Option<Load>,
    ) -> Pause {
        let ask = |domain: &mut Domain, load: Load| {
            let held = load.dirty + load.writeback;
            let speed = domain.bandwidth.pages_per_s();
            domain.pacer.pause(now, dirtied, held, load.limits, speed)
        };
        let global = ask(&mut self.machine, machine);
        let own = group.map_or(Pause::None, |load| ask(&mut self.groups[memcg.index()], load));
        global.max(own)
    }

    /// Wakes the flusher of one group, or all.
    pub fn wake(&mut self, memcg: Option<MemcgId>, reason: Reason) {
        match memcg {
            Some(memcg) => self.flushers[memcg.index()].wake(reason),
            None => self.flushers.iter_mut().for_each(|f| f.wake(reason)),
        }
    }

    /// Handles the periodic wake-up; returns when the next one is due, if anything is dirty.
    pub fn tick(&mut self, now: Nanos) -> Option<Nanos> {
        self.flushers.iter_mut().for_each(|f| f.tick(now));
        self.tick_armed = self.files.total() > 0;
        self.tick_armed.then(|| now + self.spec.wake_ms * 1_000_000)
    }

    /// Returns the group whose flusher is awake and has its turn.
    pub fn next_awake(&mut self) -> Option<MemcgId> {
        let nr = self.flushers.len();
        let ahead = (0..nr).find(|i| self.flushers[(self.turn + i) % nr].is_awake())?;
        let found = (self.turn + ahead) % nr;
        self.turn = (found + 1) % nr;
        Some(MemcgId(found as u32))
    }

    /// Picks the file that a group's flusher writes next; `None`: it goes back to sleep.
    pub fn next_run(&mut self, memcg: MemcgId, now: Nanos, above: bool) -> Option<Run> {
        self.flushers[memcg.index()].next(now, &mut self.files, above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: MemcgId = MemcgId(1);

    fn writeback() -> Writeback {
        let mut writeback = Writeback::new(DirtySpec::default(), 1);
        writeback.add_group(MemcgId::ROOT);
        writeback.add_group(GROUP);
        writeback
    }

    fn load(dirty: u64) -> Load {
        Load { dirty, writeback: 0, limits: Thresholds { background: 100, limit: 200 } }
    }

    #[test]
    fn the_periodic_flush_is_armed_while_anything_is_dirty() {
        let mut writeback = writeback();
        assert_eq!(writeback.dirtied(0, 5, 1, GROUP, 1), Some(5_000_000_001));
        assert_eq!(writeback.dirtied(0, 6, 1, GROUP, 2), None);
        assert_eq!(writeback.dirtied(0, 6, 1, GROUP, 3), None);
        assert_eq!(writeback.nr_dirtied, 2);
        assert!(writeback.tick(5_000_000_001).is_some());
        writeback.started(0, 5, 2, GROUP, 6_000_000_000);
        assert_eq!((writeback.under_way(0), writeback.tick(10_000_000_000)), (2, None));
        writeback.ended(0, 2, GROUP, 11_000_000_000);
        assert_eq!((writeback.all_under_way(), writeback.nr_written), (0, 2));
        assert!(writeback.dirtied(0, 5, 1, GROUP, 12_000_000_000).is_some());
    }

    #[test]
    fn the_stricter_domain_decides() {
        let mut writeback = writeback();
        let none = writeback.pause(0, 8, GROUP, load(150), Some(load(10)));
        assert_eq!(none, Pause::None);
        let hold = writeback.pause(0, 8, GROUP, load(10), Some(load(200)));
        assert!(matches!(hold, Pause::Hold(_)));
        assert!(load(101).is_above_background() && !load(100).is_above_background());
    }

    #[test]
    fn flushers_take_turns() {
        let mut writeback = writeback();
        assert_eq!(writeback.next_awake(), None);
        writeback.wake(None, Reason::Vmscan);
        assert_eq!(writeback.next_awake(), Some(MemcgId::ROOT));
        assert_eq!(writeback.next_awake(), Some(GROUP));
        assert_eq!(writeback.next_run(GROUP, 0, false), None, "nothing is dirty");
        assert_eq!(writeback.next_awake(), Some(MemcgId::ROOT));
    }
}
