//! The parts together, on the rig of experiment E5: a writer in a group of 32,768 pages, far faster
//! than its device, which takes a second for every write.

use mglru::types::{MemcgId, Nanos};

use super::*;

const GROUP: MemcgId = MemcgId(1);
const GROUP_PAGES: u64 = 32_768;
const CHUNK: u64 = 256;
const DELAY: Nanos = 1_000_000_000;

struct Rig {
    now: Nanos,
    limits: Thresholds,
    files: DirtyFiles,
    flusher: Flusher,
    pacer: Pacer,
    bandwidth: Bandwidth,
    /// (when done, pages)
    writing: Vec<(Nanos, u64)>,
    most_held: u64,
}

impl Rig {
    fn new() -> Self {
        let spec = DirtySpec::default();
        Self {
            now: 0,
            limits: spec.thresholds(GROUP_PAGES),
            files: DirtyFiles::new(),
            flusher: Flusher::new(&spec, Some(GROUP)),
            pacer: Pacer::default(),
            bandwidth: Bandwidth::default(),
            writing: Vec::new(),
            most_held: 0,
        }
    }

    fn write_chunk(&mut self, first: u64) {
        (first..first + CHUNK).for_each(|page| assert!(self.files.set(0, page, GROUP, self.now)));
        loop {
            match self.balance() {
                Pause::None => return,
                Pause::Sleep(ns) => {
                    self.now += ns;
                    return;
                }
                Pause::Hold(ns) => self.now += ns,
            }
        }
    }

    fn balance(&mut self) -> Pause {
        self.end_writes();
        let held = self.files.total() + self.bandwidth.in_flight();
        self.most_held = self.most_held.max(held);
        let rate = self.bandwidth.pages_per_s();
        let pause = self.pacer.pause(self.now, CHUNK, held, self.limits, rate);
        self.flush();
        pause
    }

    fn end_writes(&mut self) {
        // Every write takes as long, so they end in order.
        let ended = self.writing.iter().take_while(|(done, _)| *done <= self.now).count();
        for (_, pages) in self.writing.drain(..ended) {
            self.bandwidth.ended(self.now, pages);
        }
    }

    fn flush(&mut self) {
        let above = |files: &DirtyFiles, limits: Thresholds| files.total() > limits.background;
        if above(&self.files, self.limits) {
            self.flusher.wake(Reason::Background);
        }
        loop {
            let above = above(&self.files, self.limits);
            let Some(run) = self.flusher.next(self.now, &mut self.files, above) else { return };
            (run.page..run.page + run.pages).for_each(|page| {
                self.files.clear(run.file, page);
            });
            self.bandwidth.started(self.now, run.pages);
            self.writing.push((self.now + DELAY, run.pages));
        }
    }
}

#[test]
fn a_writer_in_a_small_group_waits_for_its_device() {
    let mut rig = Rig::new();
    (0..192).for_each(|chunk| rig.write_chunk(chunk * CHUNK));
    let limit = rig.limits.limit;
    assert!(rig.most_held <= limit + CHUNK, "{} pages held, limit {limit}", rig.most_held);
    assert!((2 * DELAY..30 * DELAY).contains(&rig.now), "{} ns", rig.now);
}
