//! From a machine, rules and a workload to an outcome.

use mglru::types::{MemcgId, NodeId};
use mglru::{Bit, Config, Lru};
use mglru_workload::{Layout, RegionKind, Workload};

use crate::address_space::AddressSpaces;
use crate::custom::{Lists, Rules};
use crate::error::SimError;
use crate::explain::{Moment, PageId, Silence, Watched};
use crate::kswapd::Kswapd;
use crate::machine::Machine;
use crate::memcg::Limits;
use crate::outcome::{Outcome, Recorder};
use crate::reclaiming::Locks;
use crate::samples::{Sample, Samples};
use crate::sched::Sched;
use crate::spec::{MachineSpec, PAGE_SIZE, Physical};
use crate::task::Task;
use crate::tracing::Sink;
use crate::world::{Frames, World};

/// Largest mapping: 8 TiB.
const MAX_REGION_PAGES: u32 = 1 << 31;
/// Largest file, of as many: the page cache has a slot for every page.
const MAX_FILE_PAGES: u64 = 1 << 31;

/// Receives now and then how many accesses were made.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// Runs a workload on a machine under these rules, until its counted tasks have ended.
///
/// # Errors
/// A machine or layout that contradicts itself, a task that touches what is not mapped, tasks that
/// wait for each other.
pub fn run(
    spec: &MachineSpec,
    rules: impl Into<Rules>,
    workload: Box<dyn Workload>,
    seed: u64,
    progress: Option<Progress<'_>>,
) -> Result<Outcome, SimError> {
    let mut machine = Machine::new(spec, rules, workload, seed)?;
    machine.run(progress)?;
    Ok(machine.outcome())
}

/// Runs as [`run`], and looks at the machine on the way. The outcome is the same.
///
/// # Errors
/// As [`run`].
pub fn run_sampled(
    spec: &MachineSpec,
    rules: impl Into<Rules>,
    workload: Box<dyn Workload>,
    seed: u64,
    progress: Option<Progress<'_>>,
) -> Result<(Outcome, Vec<Sample>), SimError> {
    Machine::new(spec, rules, workload, seed)?.sampled(progress)
}

/// Runs as [`run_sampled`], and passes its trace events to a sink. The outcome is the same.
///
/// # Errors
/// As [`run`], and what the sink says.
pub fn run_traced(
    spec: &MachineSpec,
    rules: impl Into<Rules>,
    workload: Box<dyn Workload>,
    seed: u64,
    progress: Option<Progress<'_>>,
    sink: Box<dyn Sink>,
) -> Result<(Outcome, Vec<Sample>), SimError> {
    let mut machine = Machine::new(spec, rules, workload, seed)?;
    machine.listen(sink);
    let found = machine.sampled(progress)?;
    machine.end_events()?;
    Ok(found)
}

/// Runs as [`run`], and returns the life of a page. The outcome is the same.
///
/// # Errors
/// As [`run`].
pub fn run_explained(
    spec: &MachineSpec,
    rules: impl Into<Rules>,
    workload: Box<dyn Workload>,
    seed: u64,
    page: PageId,
) -> Result<(Outcome, Vec<Moment>), SimError> {
    let mut machine = Machine::new(spec, rules, workload, seed)?;
    machine.listen(Box::new(Silence));
    machine.watched = Some(Box::new(Watched::new(page)));
    machine.run(None)?;
    let moments = machine.watched.take().map_or_else(Vec::new, |watched| watched.into_moments());
    Ok((machine.outcome(), moments))
}

impl Machine {
    /// Runs to the end and looks at the machine on the way.
    fn sampled(
        &mut self,
        progress: Option<Progress<'_>>,
    ) -> Result<(Outcome, Vec<Sample>), SimError> {
        self.samples = Some(Samples::default());
        self.run(progress)?;
        let rows = self.end_samples();
        Ok((self.outcome(), rows))
    }

    /// Creates a machine that has not run.
    ///
    /// # Errors
    /// A machine or layout that contradicts itself.
    pub fn new(
        spec: &MachineSpec,
        rules: impl Into<Rules>,
        workload: Box<dyn Workload>,
        seed: u64,
    ) -> Result<Self, SimError> {
        let spec = spec.clone().check()?;
        let layout = workload.layout();
        check_layout(&spec, &layout)?;
        let Rules { config, policy } = rules.into();
        let config = Config { nr_nodes: spec.nodes as u8, ..config };
        let mut lru = Lru::new(config, 0);
        let mut world = World::new(&spec, &layout, seed);
        world.allow_orders(spec.filesystem.largest(lru.config()));
        world.custom = policy.map(|factory| Box::new(Lists::new(factory)));
        world.blind_shadow_limit = lru.config().limits_shadows_blindly();
        if spec.physical == Physical::Buddy {
            let frames = Frames::new(&spec, lru.config().contig, layout.tasks.len());
            world.frames = Some(Box::new(frames));
            world.mirror_frames();
        }
        let groups = add_groups(&spec, &layout, &mut lru, &mut world);
        add_spaces(&layout, &groups, &mut lru, &mut world);
        let tasks: Vec<Task> = tasks(&spec, &layout, &groups);
        Ok(Self {
            lru,
            world,
            counted: tasks.iter().filter(|t| !t.background).count(),
            tasks,
            recorder: Recorder::new(&layout),
            workload,
            sched: Sched::new(spec.cpus),
            locks: Locks::default(),
            throttled: Vec::new(),
            kswapds: (0..spec.nodes).map(|_| Kswapd::default()).collect(),
            groups,
            removed: Vec::new(),
            readahead_max: u64::from(spec.readahead_pages()),
            readahead_mark: if spec.shared_readahead_bit { Bit::READAHEAD } else { Bit::HOST_MARK },
            fault_around: spec.fault_around_pages(),
            swap_cluster: 1 << spec.page_cluster,
            charge_batch: u64::from(spec.charge_batch),
            stat_flush: u64::from(spec.stat_flush_ms) * 1_000_000,
            quantum: spec.quantum_ns,
            page_ns: spec.costs.resident(1),
            syncing: Vec::new(),
            swapping: Vec::new(),
            flusher_waits: false,
            reclaim_ns: 0,
            oom_kills: 0,
            short_requests: 0,
            refused_commands: 0,
            watched: None,
            samples: None,
            orphans: 0,
            error: None,
            woken: Vec::new(),
        })
    }
}

fn check_layout(spec: &MachineSpec, layout: &Layout) -> Result<(), SimError> {
    let bad = |problem: String| Err(SimError::Layout(problem));
    for name in spec.groups.keys() {
        if !layout.groups.iter().any(|g| g.name == *name) {
            return Err(SimError::UnknownGroup(name.clone()));
        }
    }
    for (i, group) in layout.groups.iter().enumerate() {
        if group.parent.is_some_and(|parent| parent as usize >= i) {
            return bad(format!("group {}: its parent comes after it", group.name));
        }
    }
    for file in &layout.files {
        let pages = file.bytes.div_ceil(PAGE_SIZE);
        if pages > MAX_FILE_PAGES {
            return bad(format!("file {}: {pages} pages, at most {MAX_FILE_PAGES}", file.name));
        }
    }
    for (i, region) in layout.regions.iter().enumerate() {
        if region.pages > MAX_REGION_PAGES {
            return bad(format!("region {i}: {} pages, at most {MAX_REGION_PAGES}", region.pages));
        }
        let file = match region.kind {
            RegionKind::File { file, .. } => file as usize,
            RegionKind::Anon | RegionKind::Shmem => continue,
        };
        if file >= layout.files.len() {
            return bad(format!("region {i} maps file {file}, which does not exist"));
        }
    }
    for (i, task) in layout.tasks.iter().enumerate() {
        if task.group.is_some_and(|group| group as usize >= layout.groups.len()) {
            return bad(format!("task {i} is in a group that does not exist"));
        }
        if task.node.is_some_and(|node| node >= spec.nodes) {
            return bad(format!("task {i} is on a node that the machine does not have"));
        }
    }
    if layout.tasks.iter().all(|task| task.background) {
        return bad("no task to wait for".to_owned());
    }
    Ok(())
}

fn add_groups(
    spec: &MachineSpec,
    layout: &Layout,
    lru: &mut Lru,
    world: &mut World,
) -> Vec<MemcgId> {
    world.add_root();
    let mut groups: Vec<MemcgId> = Vec::new();
    for group in &layout.groups {
        let parent = group.parent.map_or(MemcgId::ROOT, |parent| groups[parent as usize]);
        let limits = Limits::new(&spec.group(&group.name), spec.swappiness);
        let id = lru.add_memcg(parent, 0);
        world.add_group(parent, limits, id);
        groups.push(id);
    }
    groups
}

/// An address space belongs to the group of its first task.
fn add_spaces(layout: &Layout, groups: &[MemcgId], lru: &mut Lru, world: &mut World) {
    let named = layout.tasks.iter().map(|t| t.mm).chain(layout.regions.iter().map(|r| r.mm));
    let nr_mms = named.max().map_or(0, |mm| mm + 1);
    let ids: Vec<_> = (0..nr_mms)
        .map(|mm| {
            let first = layout.tasks.iter().find(|task| task.mm == mm);
            let group = first.and_then(|task| task.group);
            let memcg = group.map_or(MemcgId::ROOT, |group| groups[group as usize]);
            (lru.add_mm(memcg), memcg)
        })
        .collect();
    world.spaces = AddressSpaces::new(&layout.regions, &ids, layout.files.len());
}

fn tasks(spec: &MachineSpec, layout: &Layout, groups: &[MemcgId]) -> Vec<Task> {
    let make = |(i, task): (usize, &mglru_workload::TaskSpec)| {
        let memcg = task.group.map_or(MemcgId::ROOT, |group| groups[group as usize]);
        // Tasks bound to no node are spread over all.
        let node = task.node.unwrap_or(i as u32 % (spec.nodes - spec.slow_nodes));
        let barrier_set = layout.barrier_set(i as u32);
        Task { barrier_set, ..Task::new(task.mm, memcg, NodeId(node as u8), task.background) }
    };
    layout.tasks.iter().enumerate().map(make).collect()
}
