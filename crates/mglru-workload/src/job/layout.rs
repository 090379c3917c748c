//! A job's groups, tasks, regions and files as the layout of a workload.

use super::{Access, Job, JobRegion, JobTask, Place, Step};
use crate::op::{
    Content, FileId, FileSpec, GroupId, GroupSpec, Layout, RegionId, RegionKind, RegionSpec,
    TaskSpec,
};

/// Name of the phase that begins where a named task ends.
const END: &str = "end";
/// Incompressible pages per thousand of swap-backed memory.
const INCOMPRESSIBLE: u16 = 250;

/// The layout, and where the accesses to each region go.
pub(super) fn layout(job: &Job) -> (Layout, Vec<Place>) {
    let steps = job.steps.iter().map(|step| Step::name(step).to_owned());
    let ends = job.named_tasks();
    let mut layout = Layout {
        groups: groups(&job.groups),
        tasks: job.tasks.iter().map(task).collect(),
        phases: steps.chain(ends.clone().map(|_| END.to_owned())).collect(),
        sequences: job.owners.iter().copied().chain(ends).collect(),
        ..Layout::default()
    };
    let regions = job.regions.iter().enumerate();
    let places = regions.map(|(at, region)| place(&mut layout, region, job.region_pages(at)));
    let places = places.collect();
    (layout, places)
}

fn groups(paths: &[String]) -> Vec<GroupSpec> {
    let parent = |path: &str| {
        let (parent, _) = path.rsplit_once('/')?;
        paths.iter().position(|other| other == parent).map(|at| at as GroupId)
    };
    let group = |path: &String| GroupSpec { name: path.clone(), parent: parent(path) };
    paths.iter().map(group).collect()
}

fn task(task: &JobTask) -> TaskSpec {
    let JobTask { group, space, background, .. } = *task;
    TaskSpec { mm: space, group, node: None, background }
}

fn place(layout: &mut Layout, region: &JobRegion, pages: u32) -> Place {
    let kind = match region.access {
        Access::Anon => RegionKind::Anon,
        Access::Shmem => RegionKind::Shmem,
        Access::Mmap => RegionKind::File { file: file(layout, &region.path, pages), first_page: 0 },
        Access::Pread => return Place::File(file(layout, &region.path, pages)),
    };
    layout.regions.push(RegionSpec {
        advice: region.advice,
        content: Content::Mixed { per_mille: INCOMPRESSIBLE },
        exec: region.exec,
        mapped: region.mapped,
        ..RegionSpec::plain(region.space, kind, pages)
    });
    Place::Region(layout.regions.len() as RegionId - 1)
}

/// Regions of the same path are the same file, as long as the longest of them.
fn file(layout: &mut Layout, path: &str, pages: u32) -> FileId {
    let bytes = u64::from(pages) * 4096;
    let known = layout.files.iter().position(|file| file.name == path);
    let id = known.unwrap_or_else(|| {
        layout.files.push(FileSpec { name: path.to_owned(), bytes: 0 });
        layout.files.len() - 1
    });
    layout.files[id].bytes = layout.files[id].bytes.max(bytes);
    id as FileId
}

/// The number that a region has in the layout; `None`: it is read through a descriptor.
pub(super) fn region_id(regions: &[JobRegion], at: usize) -> Option<RegionId> {
    let is_mapped = |region: &&JobRegion| region.access != Access::Pread;
    let before = regions[..at].iter().filter(is_mapped).count();
    is_mapped(&&regions[at]).then_some(before as RegionId)
}

/// The number that the file behind a region has in the layout; `None`: it is memory.
pub(super) fn file_id(regions: &[JobRegion], at: usize) -> Option<FileId> {
    let mut paths: Vec<&str> = Vec::new();
    for region in regions.iter().filter(|region| !region.path.is_empty()) {
        if !paths.contains(&region.path.as_str()) {
            paths.push(&region.path);
        }
    }
    paths.iter().position(|path| *path == regions[at].path).map(|at| at as FileId)
}
