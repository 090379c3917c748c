//! File and anonymous memory under pressure together: processes that read a mapped file again and
//! again, and threads that fill anonymous memory, free all of it and start the next round.
//!
//! The reproducer of the early out-of-memory kills of the 2026 series: the file's pages are young
//! at every look, and all memory is taken back by the threads that want more of it.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{
    FileSpec, GroupSpec, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec, Workload, fill_batch,
};
use crate::pages::PAGE_BYTES;
use crate::rng::Rng;
use crate::string_hash::{StringHash, access};

const CLASSES: [&str; 2] = ["round", "setup"];
const ROUND: u8 = 0;
const SETUP: u8 = 1;
const NS_PER_US: u64 = 1_000;
/// Pages that a reader is given at a time.
const RUN: u64 = 63;
/// The anonymous region; the readers' mappings of the file follow.
const ANON: u32 = 0;

/// Describes the readers and the rounds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MixedParams {
    /// Counts the processes that read the file, each through a mapping of its own.
    pub readers: u32,
    /// Counts the threads that fill anonymous memory, an equal part each.
    pub threads: u32,
    /// Counts the pages of the file.
    pub file_pages: u32,
    /// Counts the pages of anonymous memory filled in a round.
    pub anon_pages: u32,
    /// Counts the rounds.
    pub rounds: u32,
    /// Sets a reader's pause after each pass, in microseconds.
    pub sleep_us: u64,
    /// Sets the time before the first round and between two, in microseconds.
    pub pause_us: u64,
    /// Names the group by its path.
    pub group: String,
}

impl Default for MixedParams {
    /// 14 GiB of memory and 8 GiB of file in a group of 16 GiB.
    fn default() -> Self {
        Self {
            readers: 16,
            threads: 16,
            file_pages: 2_097_152,
            anon_pages: 3_670_016,
            rounds: 128,
            sleep_us: 120_000,
            pause_us: 1_000_000,
            group: "/mixed".to_owned(),
        }
    }
}

impl MixedParams {
    /// Returns the parameters with pages and times multiplied; a pass still takes as many looks.
    pub fn scaled(&self, scale: f64) -> Self {
        let times = |n: u64| ((n as f64 * scale).round() as u64).max(1);
        Self {
            file_pages: times(u64::from(self.file_pages)) as u32,
            anon_pages: times(u64::from(self.anon_pages)) as u32,
            sleep_us: times(self.sleep_us),
            pause_us: times(self.pause_us),
            ..self.clone()
        }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("mixed.readers", self.readers, 0, 4096)?;
        in_range("mixed.threads", self.threads, 1, 4096)?;
        in_range("mixed.file_pages", self.file_pages, 1, u32::MAX)?;
        in_range("mixed.anon_pages", self.anon_pages, self.threads, u32::MAX)?;
        in_range("mixed.rounds", self.rounds, 1, 1_000_000)?;
        Ok(())
    }
}

/// Holds the state of the tasks: the threads are the first, the readers follow.
#[derive(Debug)]
pub struct MixedWorkload {
    params: MixedParams,
    /// Where each reader is in its pause when the run begins, ns: processes are not started at
    /// one instant, and nothing brings them into step later.
    starts: Vec<Option<u64>>,
    tasks: Vec<Progress>,
    hash: StringHash,
}

/// Where a task is: steps made in its round or pass, and rounds made.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    step: u64,
    round: u32,
}

impl MixedWorkload {
    /// Creates threads that have not begun, and readers in the middle of a pause.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &MixedParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let tasks = (params.threads + params.readers) as usize;
        let mut rng = Rng::new(seed, 0);
        let starts = (0..params.readers).map(|_| Some(rng.below(params.sleep_us * NS_PER_US)));
        Ok(Self {
            starts: starts.collect(),
            tasks: vec![Progress::default(); tasks],
            hash: StringHash::new(params.threads as usize),
            params: params.clone(),
        })
    }

    /// The rest of a pause; one pass over the file, then a pause, for ever.
    fn read(&mut self, id: TaskId) -> Op {
        let reader = id - self.params.threads;
        if let Some(ns) = self.starts[reader as usize].take() {
            return Op::Think { ns };
        }
        let progress = &mut self.tasks[id as usize];
        let page = progress.step;
        if page == u64::from(self.params.file_pages) {
            progress.step = 0;
            return Op::Think { ns: self.params.sleep_us * NS_PER_US };
        }
        progress.step += 1;
        Op::Touch { region: 1 + reader, page: page as u32, write: false }
    }

    /// The next pages of a pass, as [`Self::read`] would give them one by one.
    fn read_on(&mut self, id: TaskId, out: &mut Vec<Op>) {
        let region = 1 + id - self.params.threads;
        let step = &mut self.tasks[id as usize].step;
        let end = u64::from(self.params.file_pages).min(*step + RUN);
        let pages = *step as u32..end as u32;
        out.extend(pages.map(|page| Op::Touch { region, page, write: false }));
        *step = end;
    }

    /// The thread's part of a round: wait, fill, meet the others; the first one frees it all.
    fn fill_memory(&mut self, id: TaskId) -> Op {
        let params = &self.params;
        let (first, end) = slice(params, id);
        let progress = &mut self.tasks[id as usize];
        if progress.round == params.rounds {
            return Op::Done;
        }
        let (step, pages) = (progress.step, u64::from(end - first));
        progress.step += 1;
        let barrier = |nth: u32| Op::Barrier { id: 3 * progress.round + nth };
        if step == 0 {
            return Op::Think { ns: params.pause_us * NS_PER_US };
        }
        if step <= pages {
            let page = first + (step - 1) as u32;
            self.hash.add(id, access(ANON, u64::from(page), true));
            return Op::Touch { region: ANON, page, write: true };
        }
        match step - pages - 1 {
            0 => barrier(0),
            1 if id == 0 => Op::Unmap { region: ANON },
            1 => barrier(1),
            2 if id == 0 => Op::Map { region: ANON },
            3 if id == 0 => barrier(1),
            2 | 4 => {
                *progress = Progress { step: 0, round: progress.round + 1 };
                Op::End { class: if id == 0 { ROUND } else { SETUP } }
            }
            _ => unreachable!("a round has ended"),
        }
    }
}

/// Pages of the anonymous region that a thread fills.
fn slice(params: &MixedParams, thread: u32) -> (u32, u32) {
    let at = |nth: u32| {
        (u64::from(params.anon_pages) * u64::from(nth) / u64::from(params.threads)) as u32
    };
    (at(thread), at(thread + 1))
}

impl Workload for MixedWorkload {
    fn layout(&self) -> Layout {
        let params = &self.params;
        let classes = CLASSES.map(str::to_owned).to_vec();
        let group = GroupSpec { name: params.group.clone(), parent: None };
        let bytes = u64::from(params.file_pages) * PAGE_BYTES;
        let file = FileSpec { name: "read".to_owned(), bytes };
        let mut layout =
            Layout { classes, groups: vec![group], files: vec![file], ..Layout::default() };
        layout.regions.push(RegionSpec::plain(0, RegionKind::Anon, params.anon_pages));
        let task = |mm, background| TaskSpec { mm, group: Some(0), node: None, background };
        layout.tasks.extend((0..params.threads).map(|_| task(0, false)));
        for reader in 0..params.readers {
            let kind = RegionKind::File { file: 0, first_page: 0 };
            layout.regions.push(RegionSpec::plain(1 + reader, kind, params.file_pages));
            layout.tasks.push(task(1 + reader, true));
        }
        layout
    }

    fn next(&mut self, id: TaskId) -> Op {
        if id < self.params.threads { self.fill_memory(id) } else { self.read(id) }
    }

    fn fill(&mut self, id: TaskId, out: &mut Vec<Op>) {
        if id < self.params.threads {
            return fill_batch(self, id, out);
        }
        out.push(self.read(id));
        self.read_on(id, out);
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn figures(&self) -> Vec<(String, f64)> {
        vec![("rounds".to_owned(), f64::from(self.tasks[0].round))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> MixedParams {
        let (readers, threads, rounds) = (2, 3, 2);
        MixedParams {
            readers,
            threads,
            rounds,
            file_pages: 5,
            anon_pages: 10,
            ..Default::default()
        }
    }

    fn all(workload: &mut MixedWorkload, task: TaskId) -> Vec<Op> {
        std::iter::repeat_with(|| workload.next(task)).take_while(|op| *op != Op::Done).collect()
    }

    #[test]
    fn the_threads_fill_every_page_once_a_round() {
        let mut workload = MixedWorkload::new(&small(), 1).unwrap();
        let mut filled: Vec<u32> = Vec::new();
        for task in 0..3 {
            let pages = all(&mut workload, task).into_iter().filter_map(|op| match op {
                Op::Touch { region: 0, page, write: true } => Some(page),
                _ => None,
            });
            filled.extend(pages);
        }
        filled.sort_unstable();
        assert_eq!(filled, (0..10).flat_map(|page| [page, page]).collect::<Vec<_>>());
        assert_eq!(workload.figures()[0].1, 2.0);
    }

    #[test]
    fn memory_is_freed_between_the_two_meetings_of_a_round() {
        let mut workload = MixedWorkload::new(&small(), 1).unwrap();
        let ops = all(&mut workload, 0);
        let at = |wanted: Op| ops.iter().position(|op| *op == wanted).unwrap();
        let unmapped = at(Op::Unmap { region: 0 });
        assert!(at(Op::Barrier { id: 0 }) < unmapped);
        assert!(unmapped < at(Op::Map { region: 0 }));
        assert!(at(Op::Map { region: 0 }) < at(Op::Barrier { id: 1 }));
        let others = all(&mut workload, 1);
        let meetings = |ops: &[Op]| -> Vec<Op> {
            ops.iter().filter(|op| matches!(op, Op::Barrier { .. })).copied().collect()
        };
        assert_eq!(meetings(&ops), meetings(&others));
    }

    #[test]
    fn a_reader_passes_over_the_file_again_and_again() {
        let mut workload = MixedWorkload::new(&small(), 1).unwrap();
        let start = |seed, task| MixedWorkload::new(&small(), seed).unwrap().next(task);
        let begins = workload.next(4);
        assert!(matches!(begins, Op::Think { ns } if ns < 120_000_000));
        assert_eq!(begins, start(1, 4));
        assert!(begins != start(2, 4) && begins != start(1, 3), "readers are out of step");
        let ops: Vec<Op> = (0..12).map(|_| workload.next(4)).collect();
        let pauses: Vec<usize> = (0..12).filter(|&i| matches!(ops[i], Op::Think { .. })).collect();
        assert_eq!(pauses, [5, 11]);
        assert_eq!(ops[6], Op::Touch { region: 2, page: 0, write: false });
    }

    #[test]
    fn batches_are_what_is_read_one_by_one() {
        let params = MixedParams { file_pages: 150, ..small() };
        let mut one = MixedWorkload::new(&params, 1).unwrap();
        let mut batches = MixedWorkload::new(&params, 1).unwrap();
        let mut ops = Vec::new();
        (0..9).for_each(|_| batches.fill(3, &mut ops));
        assert_eq!(ops, ops.iter().map(|_| one.next(3)).collect::<Vec<_>>());
        assert!(
            ops.len() > 300 && ops.iter().filter(|op| matches!(op, Op::Think { .. })).count() == 3
        );
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let params = MixedParams { threads: 0, ..small() };
        let error = MixedWorkload::new(&params, 1).unwrap_err().to_string();
        assert_eq!(error, "mixed.threads = 0: must be from 1 to 4096");
    }
}
