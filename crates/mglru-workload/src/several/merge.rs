//! Several layouts made one, and the numbers that each one's things have then.

use crate::error::WorkloadError;
use crate::op::{
    Control, FileId, FileSpec, GroupId, GroupSpec, KernelOp, Layout, Op, RegionId, RegionKind,
    RegionSpec, TaskSpec,
};

/// Maps a part's numbers to those of the whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    files: FileId,
    regions: RegionId,
    phases: u32,
    classes: u8,
    groups: Vec<GroupId>,
}

/// Layouts merged so far.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) layout: Layout,
    spaces: u32,
    sequences: u32,
    barrier_sets: u32,
}

impl Merged {
    /// Takes the groups of all, and those above them; a path says what lies below what.
    pub(super) fn groups_of(&mut self, layouts: &[Layout]) {
        let mut paths: Vec<&str> = Vec::new();
        for group in layouts.iter().flat_map(|layout| &layout.groups) {
            let path = &group.name;
            let ends = path.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0);
            paths.extend(ends.chain([path.len()]).map(|end| &path[..end]));
        }
        paths.sort_by_key(|path| (path.matches('/').count(), *path));
        paths.dedup();
        for path in &paths {
            let above = path.rsplit_once('/').map(|(above, _)| above);
            let parent = paths.iter().position(|other| Some(*other) == above);
            let group =
                GroupSpec { name: (*path).to_owned(), parent: parent.map(|at| at as GroupId) };
            self.layout.groups.push(group);
        }
    }

    /// Adds a part's layout behind those before.
    pub(super) fn add(
        &mut self,
        name: &str,
        part: Layout,
        background: bool,
    ) -> Result<Numbers, WorkloadError> {
        let all = &mut self.layout;
        let numbers = Numbers {
            files: all.files.len() as FileId,
            regions: all.regions.len() as RegionId,
            phases: all.phases.len() as u32,
            classes: class_base(all, &part)?,
            groups: part.groups.iter().map(|group| group_id(all, &group.name)).collect(),
        };
        if let Some(blocks) = part.blocks {
            if all.blocks.replace(numbers.files + blocks).is_some() {
                let reason = "another part has blocks of a file system already".to_owned();
                return Err(WorkloadError::Conflict { key: "kind", reason });
            }
        }
        let named = |what: &String| format!("{name}.{what}");
        all.classes.extend(part.classes.iter().map(named));
        all.phases.extend(part.phases.iter().map(named));
        let file = |file: &FileSpec| FileSpec { name: named(&file.name), bytes: file.bytes };
        all.files.extend(part.files.iter().map(file));
        self.add_sequences(&part);
        self.add_tasks(&part, &numbers, background);
        Ok(numbers)
    }

    fn add_sequences(&mut self, part: &Layout) {
        let all = (0..part.phases.len() as u32).map(|phase| self.sequences + part.sequence(phase));
        self.layout.sequences.extend(all);
        self.sequences += 1 + part.sequences.iter().max().unwrap_or(&0);
    }

    fn add_tasks(&mut self, part: &Layout, numbers: &Numbers, background: bool) {
        let region = |region: &RegionSpec| RegionSpec {
            mm: self.spaces + region.mm,
            kind: numbers.kind(region.kind),
            ..region.clone()
        };
        self.layout.regions.extend(part.regions.iter().map(region));
        let task = |task: &TaskSpec| TaskSpec {
            mm: self.spaces + task.mm,
            group: task.group.map(|group| numbers.groups[group as usize]),
            node: task.node,
            background: background || task.background,
        };
        self.layout.tasks.extend(part.tasks.iter().map(task));
        let barrier_sets = (0..part.tasks.len() as u32)
            .map(|task| Some(self.barrier_sets + part.barrier_set(task)?));
        self.layout.barrier_sets.extend(barrier_sets);
        self.barrier_sets += 1 + part.barrier_sets.iter().flatten().max().unwrap_or(&0);
        let spaces = part.tasks.iter().map(|task| task.mm).chain(part.regions.iter().map(|r| r.mm));
        self.spaces += spaces.max().map_or(0, |mm| mm + 1);
    }
}

fn class_base(all: &Layout, part: &Layout) -> Result<u8, WorkloadError> {
    let too_many = || WorkloadError::Conflict {
        key: "kind",
        reason: "the parts have more than 255 classes of operations".to_owned(),
    };
    let sum = all.classes.len() + part.classes.len();
    let fits = u8::try_from(sum).ok();
    fits.map(|_| all.classes.len() as u8).ok_or_else(too_many)
}

fn group_id(all: &Layout, name: &str) -> GroupId {
    let at = all.groups.iter().position(|group| group.name == name);
    at.expect("groups of all parts were taken first") as GroupId
}

impl Numbers {
    fn kind(&self, kind: RegionKind) -> RegionKind {
        match kind {
            RegionKind::File { file, first_page } => {
                RegionKind::File { file: self.files + file, first_page }
            }
            other => other,
        }
    }

    /// An operation of the part with the numbers that hold for all.
    pub(super) fn in_all(&self, op: Op) -> Op {
        let Self { files, regions, classes, .. } = *self;
        match op {
            Op::Touch { region, page, write } => {
                Op::Touch { region: regions + region, page, write }
            }
            Op::Read { file, off, len } => Op::Read { file: files + file, off, len },
            Op::Write { file, off, len } => Op::Write { file: files + file, off, len },
            Op::Fsync { file } => Op::Fsync { file: files + file },
            Op::Truncate { file, len } => Op::Truncate { file: files + file, len },
            Op::Map { region } => Op::Map { region: regions + region },
            Op::Unmap { region } => Op::Unmap { region: regions + region },
            Op::Free { region, page, nr } => Op::Free { region: regions + region, page, nr },
            Op::Lock { region } => Op::Lock { region: regions + region },
            Op::Unlock { region } => Op::Unlock { region: regions + region },
            Op::Advise { region, page, nr, advice } => {
                Op::Advise { region: regions + region, page, nr, advice }
            }
            Op::AdviseFile { file, page, nr, advice } => {
                Op::AdviseFile { file: files + file, page, nr, advice }
            }
            Op::End { class } => Op::End { class: classes + class },
            Op::Mark { phase } => Op::Mark { phase: self.phases + phase },
            Op::Control(control) => Op::Control(self.control(control)),
            Op::Kernel(KernelOp::TryBlock { order, repeat, class }) => {
                Op::Kernel(KernelOp::TryBlock { order, repeat, class: classes + class })
            }
            Op::Kernel(_)
            | Op::Compute { .. }
            | Op::Think { .. }
            | Op::Barrier { .. }
            | Op::Done => op,
        }
    }

    fn control(&self, control: Control) -> Control {
        let of = |group: GroupId| self.groups[group as usize];
        match control {
            Control::Sync | Control::DropCaches => control,
            Control::Reclaim { group, bytes, swappiness } => {
                Control::Reclaim { group: group.map(of), bytes, swappiness }
            }
            Control::Remove { group } => Control::Remove { group: of(group) },
            Control::Set { group, knob, value } => Control::Set { group: of(group), knob, value },
            Control::Age { group, can_swap, force } => {
                Control::Age { group: of(group), can_swap, force }
            }
            Control::Evict { group, offset, swappiness, nr } => {
                Control::Evict { group: of(group), offset, swappiness, nr }
            }
        }
    }
}
