//! Dirty page cache: which pages are dirty, how much may be, who is slowed and what the flusher
//! writes next (reclaim spec §2.4, §9.5).
//!
//! Nothing here touches a page or a device: the machine reports what happens, asks what to do, and
//! does it. A page is dirty until its writeback starts; what counts against a limit is dirty pages
//! and pages under writeback.

mod bandwidth;
mod files;
mod flusher;
mod pacing;
mod spec;
mod thresholds;

use mglru::types::{MemcgId, Nanos};
use mglru_workload::op::FileId;

pub use self::bandwidth::Bandwidth;
pub use self::files::{DirtyFiles, FileScan};
pub use self::flusher::{Flusher, Reason, Run};
pub use self::pacing::{MAX_PAUSE, Pacer, Pause};
pub use self::spec::DirtySpec;
pub use self::thresholds::{Domain, Thresholds, group_available, machine_available};

/// The state of dirty pages of the machine.
#[derive(Clone, Debug)]
pub struct Dirty {
    spec: DirtySpec,
    files: DirtyFiles,
    flusher: Flusher,
    bandwidth: Bandwidth,
    pacer: Pacer,
    group_pacers: Vec<Pacer>,
}

impl Dirty {
    /// All of `nr_files` files clean; more may come.
    pub fn new(spec: DirtySpec, nr_files: usize) -> Self {
        Self {
            files: DirtyFiles::with_files(nr_files),
            flusher: Flusher::new(&spec, None),
            spec,
            bandwidth: Bandwidth::default(),
            pacer: Pacer::default(),
            group_pacers: Vec::new(),
        }
    }

    /// Which pages are dirty.
    pub fn files(&self) -> &DirtyFiles {
        &self.files
    }

    /// A page is dirtied by a task of the group `owner`; false if it was dirty.
    pub fn set(&mut self, file: FileId, page: u64, owner: MemcgId, now: Nanos) -> bool {
        self.files.set(file, page, owner, now)
    }

    /// The pages from `first` on are gone. Returns how many were dirty.
    pub fn truncate(&mut self, file: FileId, first: u64) -> u64 {
        self.files.truncate(file, first)
    }

    /// Writeback of pages in a row starts: they are no longer dirty.
    pub fn start_write(&mut self, now: Nanos, file: FileId, page: u64, pages: u64) {
        for page in page..page + pages {
            self.files.clear(file, page);
        }
        self.bandwidth.started(now, pages);
    }

    /// Writeback of `pages` is complete.
    pub fn end_write(&mut self, now: Nanos, pages: u64) {
        self.bandwidth.ended(now, pages);
    }

    /// How a task that has `dirtied` pages since it last asked is slowed, by the machine and by
    /// its group; wakes the flusher where a domain is above its background threshold.
    pub fn balance(
        &mut self,
        now: Nanos,
        dirtied: u64,
        machine: Domain,
        group: Option<(MemcgId, Domain)>,
    ) -> Pause {
        let rate = self.bandwidth.pages_per_s();
        let limits = self.spec.thresholds(machine.available);
        let mut pause = self.pacer.pause(now, dirtied, machine.held, limits, rate);
        let mut above = machine.held > limits.background;
        if let Some((id, group)) = group.filter(|_| self.spec.per_group) {
            let limits = self.spec.thresholds(group.available);
            let pacer = self.group_pacer(id);
            pause = pause.max(pacer.pause(now, dirtied, group.held, limits, rate));
            above |= group.held > limits.background;
        }
        if above {
            self.wake(Reason::Background);
        }
        pause
    }

    /// A domain is above its background threshold. (Groups only where they have limits.)
    pub fn is_above_background(&self, domain: Domain) -> bool {
        domain.held > self.spec.thresholds(domain.available).background
    }

    /// Groups have dirty limits of their own.
    pub fn is_per_group(&self) -> bool {
        self.spec.per_group
    }

    /// Wakes the flusher.
    pub fn wake(&mut self, reason: Reason) {
        self.flusher.wake(reason);
    }

    /// Reclaim met dirty pages: wakes the flusher.
    pub fn wake_for_reclaim(&mut self) {
        self.flusher.wake(Reason::Vmscan);
    }

    /// The flusher has work, or may find some.
    pub fn is_flusher_awake(&self) -> bool {
        self.flusher.is_awake()
    }

    /// The flusher, to ask about its work.
    pub fn flusher(&self) -> &Flusher {
        &self.flusher
    }

    /// The flusher's periodic wake-up. Returns when the next one is due.
    pub fn tick(&mut self, now: Nanos) -> Nanos {
        self.flusher.tick(now);
        self.flusher.next_tick()
    }

    /// What the flusher writes next, see [`Flusher::next`]. `above_background`: the machine, or a
    /// group with limits of its own, is above its background threshold.
    pub fn next_write(&mut self, now: Nanos, above_background: bool) -> Option<Run> {
        self.flusher.next(now, &mut self.files, above_background)
    }

    /// Longest request, pages.
    pub fn request_pages(&self) -> u64 {
        self.spec.request_pages()
    }

    fn group_pacer(&mut self, id: MemcgId) -> &mut Pacer {
        if id.index() >= self.group_pacers.len() {
            self.group_pacers.resize_with(id.index() + 1, Pacer::default);
        }
        &mut self.group_pacers[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: MemcgId = MemcgId(1);

    fn domain(held: u64, available: u64) -> Domain {
        Domain { held, available }
    }

    #[test]
    fn the_tighter_domain_decides() {
        let mut dirty = Dirty::new(DirtySpec::default(), 1);
        let machine = domain(200, 1 << 20);
        let small = domain(200, 1_000);
        assert_eq!(dirty.balance(0, 32, machine, None), Pause::None);
        assert!(!dirty.is_flusher_awake());
        let paused = dirty.balance(0, 32, machine, Some((GROUP, small)));
        assert_eq!(paused, Pause::Hold(MAX_PAUSE));
        assert!(dirty.is_flusher_awake() && dirty.is_above_background(small));
    }

    #[test]
    fn without_group_limits_only_the_machine_counts() {
        let spec = DirtySpec { per_group: false, ..DirtySpec::default() };
        let mut dirty = Dirty::new(spec, 1);
        let small = domain(200, 1_000);
        let pause = dirty.balance(0, 32, domain(200, 1 << 20), Some((GROUP, small)));
        assert_eq!((pause, dirty.is_flusher_awake()), (Pause::None, false));
        assert_eq!(dirty.balance(0, 32, small, None), Pause::Hold(MAX_PAUSE));
    }

    /// The rig of experiment E5: a group of 32,768 pages, a writer faster than its device.
    #[test]
    fn a_writer_in_a_small_group_waits_for_its_device() {
        let mut dirty = Dirty::new(DirtySpec::default(), 1);
        let (mut now, mut page, mut under_write) = (0, 0, Vec::new());
        let mut most = 0;
        while page < 49_152 {
            (0..256).for_each(|n| assert!(dirty.set(0, page + n, GROUP, now)));
            page += 256;
            loop {
                under_write.retain(|&(done, pages)| {
                    let waits = done > now;
                    if !waits {
                        dirty.end_write(now, pages);
                    }
                    waits
                });
                let writing: u64 = under_write.iter().map(|(_, pages)| pages).sum();
                let group = domain(dirty.files().total() + writing, 32_768);
                most = most.max(group.held);
                let pause = dirty.balance(now, 256, domain(0, 1 << 22), Some((GROUP, group)));
                while let Some(run) = dirty.next_write(now, dirty.is_above_background(group)) {
                    dirty.start_write(now, run.file, run.page, run.pages);
                    under_write.push((now + 1_000_000_000, run.pages));
                }
                match pause {
                    Pause::None => break,
                    Pause::Sleep(ns) => break now += ns,
                    Pause::Hold(ns) => now += ns,
                }
            }
        }
        assert!(most <= 6_553 + 256, "{most} pages held");
        assert!((2_000_000_000..30_000_000_000).contains(&now), "{now} ns");
    }

    #[test]
    fn writeback_takes_pages_from_the_dirty_ones() {
        let mut dirty = Dirty::new(DirtySpec::default(), 4);
        (0..10).for_each(|page| assert!(dirty.set(3, page, GROUP, 0)));
        dirty.start_write(5, 3, 2, 4);
        assert_eq!((dirty.files().count(3), dirty.files().is_dirty(3, 2)), (6, false));
        assert!(dirty.set(3, 2, GROUP, 6), "dirtied again while it is written");
        assert_eq!(dirty.truncate(3, 8), 2);
        dirty.end_write(7, 4);
        assert_eq!(dirty.files().total(), 5);
    }
}
