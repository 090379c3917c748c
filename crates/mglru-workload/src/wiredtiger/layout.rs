//! The engine's files, memory, tasks, classes and phases, by number.

use crate::op::{
    FileId, FileSpec, GroupSpec, Layout, Op, RegionId, RegionKind, RegionSpec, TaskSpec,
};
use crate::pages::PAGE_BYTES;
use crate::ycsb::Action;

use super::index_cache::leaf_extent;
use super::params::WiredTigerParams;
use super::{BLOCK_PAGES, engine, journal};

pub(super) const LEAVES: RegionId = 0;
pub(super) const INDEX: RegionId = 1;
/// Heap, and the part of the cache that holds no leaf.
pub(super) const OTHER: RegionId = 2;

pub(super) const TABLE_FILE: FileId = 0;
pub(super) const INDEX_FILE: FileId = 1;
const FIRST_JOURNAL_FILE: FileId = 2;

pub(super) const POPULATE: u32 = 0;
const RUN: u32 = 1;

/// Class of the wait before the first operation: follows those of YCSB.
pub(super) const SETUP_CLASS: u8 = Action::ALL.len() as u8;

/// File of a journal segment.
pub(super) fn journal_file(segment: u32) -> FileId {
    FIRST_JOURNAL_FILE + segment
}

/// Clients, eviction workers, checkpointer and journal flusher.
pub(super) fn tasks(params: &WiredTigerParams) -> u32 {
    params.threads + params.eviction_workers + 2
}

/// The mark before operation number `started`, if a phase begins with it.
pub(super) fn phase_at(params: &WiredTigerParams, started: u64) -> Option<Op> {
    let warm = RUN + 1 + u32::from(params.split_run);
    let phase = match started {
        0 => RUN,
        n if n == params.operations => warm,
        n if params.split_run && n == params.operations / 2 => RUN + 1,
        _ => return None,
    };
    Some(Op::Mark { phase })
}

fn phases(params: &WiredTigerParams) -> Vec<String> {
    let half = params.split_run.then_some("run.last_half");
    let warm = (params.warm_operations > 0).then_some("warm");
    let names = ["populate", "run"].into_iter().chain(half).chain(warm);
    names.map(str::to_owned).collect()
}

pub(super) fn layout(params: &WiredTigerParams) -> Layout {
    let classes = Action::ALL.iter().map(|action| action.name()).chain(["setup"]);
    Layout {
        groups: vec![GroupSpec { name: params.group.clone(), parent: None }],
        files: files(params),
        regions: regions(params),
        tasks: (0..tasks(params)).map(|task| task_spec(task >= params.threads)).collect(),
        classes: classes.map(str::to_owned).collect(),
        phases: phases(params),
        ..Layout::default()
    }
}

fn task_spec(background: bool) -> TaskSpec {
    TaskSpec { mm: 0, group: Some(0), node: None, background }
}

fn regions(params: &WiredTigerParams) -> Vec<RegionSpec> {
    [params.leaf_pages() as u32, params.index_pages() as u32, params.other_pages()]
        .map(|pages| RegionSpec::plain(0, RegionKind::Anon, pages))
        .to_vec()
}

fn files(params: &WiredTigerParams) -> Vec<FileSpec> {
    let file = |name: String, bytes| FileSpec { name, bytes };
    let table = (1 + u64::from(params.blocks()) * u64::from(BLOCK_PAGES)) * PAGE_BYTES;
    let index = leaf_extent(params.index_leaves()).0 * PAGE_BYTES;
    let updates = params.operations + params.warm_operations;
    let bytes = params.journal_segment_bytes;
    let segments = journal::segments(updates, engine::MAX_JOURNAL_ENTRY, bytes);
    let mut files = vec![file("collection.wt".into(), table), file("index.wt".into(), index)];
    files.extend((0..segments).map(|segment| file(format!("WiredTigerLog.{segment}"), bytes)));
    files
}
