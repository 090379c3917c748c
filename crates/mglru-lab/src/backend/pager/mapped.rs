//! The pager of a run with its groups, and the workload's files and regions in it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use mglru::Config;
use mglru_pager::{
    Advice, FaultStat, Group, Limit, Pager, PagerError, PagerOptions, SharedMapping, SwapOptions,
};
use mglru_sim::MachineSpec;
use mglru_sim::spec::{GroupSpec, Size};
use mglru_sim::swap::SwapKind;
use mglru_workload::op::{Advice as Hint, Content, Layout, RegionKind, RegionSpec};

/// Gives the bytes of a page; [`WORDS`] gives its words of eight bytes.
pub const PAGE: usize = 4096;
pub const WORDS: usize = PAGE / 8;
/// Words of a page that compresses to a third, as the simulated machine's zram assumes.
const NOISE_WORDS: usize = WORDS / 3;

/// Holds the memory and files that tasks work on.
pub struct Mapped {
    pub groups: Vec<(String, Group)>,
    pub files: Vec<SharedMapping>,
    regions: Vec<Region>,
    /// Faults of regions that are gone.
    gone: RwLock<FaultStat>,
}

struct Region {
    spec: RegionSpec,
    group: Group,
    memory: RwLock<Option<Arc<Memory>>>,
}

/// Holds a mapped region of swap-backed memory.
pub struct Memory {
    words: SharedMapping,
    content: Content,
    filled: Vec<AtomicBool>,
}

/// Holds a region's page in the form in which it is mapped.
pub enum Place<'a> {
    Memory(Arc<Memory>),
    File(&'a SharedMapping, usize),
}

impl Mapped {
    pub fn open(
        machine: &MachineSpec,
        config: Config,
        layout: &Layout,
        folder: &Path,
    ) -> Result<Self, String> {
        let pager = options(machine, config, folder).open().map_err(|e| e.to_string())?;
        let groups = make_groups(&pager, machine, layout).map_err(|e| e.to_string())?;
        let owner = |index: usize| match layout.files[index].bytes {
            0 => Err(format!("file {}: grows from nothing, which an arena cannot", index)),
            bytes => Ok(bytes as usize),
        };
        let file = |index: usize| {
            let group = &groups[file_group(layout, index as u32)].1;
            let made = group.share_scratch(folder, owner(index)?);
            made.map_err(|e| format!("file {}: {e}", layout.files[index].name))
        };
        let files = (0..layout.files.len()).map(file).collect::<Result<Vec<_>, _>>()?;
        let region = |spec: &RegionSpec| Region {
            spec: spec.clone(),
            group: groups[group_of_mm(layout, spec.mm)].1.clone(),
            memory: RwLock::default(),
        };
        let regions = layout.regions.iter().map(region).collect();
        let mapped = Self { groups, files, regions, gone: RwLock::default() };
        for (number, file) in (0..).zip(&mapped.files) {
            file.advise(advice(machine, layout, number)).map_err(|e| e.to_string())?;
        }
        for (number, spec) in (0..).zip(&layout.regions) {
            if spec.mapped {
                mapped.map(number)?;
            }
        }
        Ok(mapped)
    }

    pub fn map(&self, region: u32) -> Result<(), String> {
        let Region { spec, group, memory } = &self.regions[region as usize];
        if matches!(spec.kind, RegionKind::File { .. }) {
            return Ok(());
        }
        let words = group.share_anon(spec.pages as usize * PAGE).map_err(|e| e.to_string())?;
        let filled = (0..spec.pages).map(|_| AtomicBool::new(false)).collect();
        let mapped = Memory { words, content: spec.content, filled };
        *memory.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(mapped));
        Ok(())
    }

    pub fn unmap(&self, region: u32) {
        let memory = &self.regions[region as usize].memory;
        let gone = memory.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(memory) = gone {
            let mut sum = self.gone.write().unwrap_or_else(PoisonError::into_inner);
            add(&mut sum, memory.words.stat());
        }
    }

    pub fn free(&self, region: u32, page: u32, nr: u32) -> Result<(), String> {
        let Place::Memory(memory) = self.place(region, page)? else { return Ok(()) };
        let pages = page as usize..memory.filled.len().min((page + nr) as usize);
        let bytes = pages.start * PAGE..pages.end * PAGE;
        memory.filled[pages].iter().for_each(|filled| filled.store(false, Ordering::Relaxed));
        memory.words.discard_range(bytes).map_err(|e| e.to_string())
    }

    /// Finds a page of a region.
    pub fn place(&self, region: u32, page: u32) -> Result<Place<'_>, String> {
        let Region { spec, memory, .. } = &self.regions[region as usize];
        if let RegionKind::File { file, first_page } = spec.kind {
            let (file, page) = (&self.files[file as usize], first_page as usize + page as usize);
            let past = || format!("region {region}: page {page} is past the end of its file");
            return (page * WORDS < file.len()).then_some(Place::File(file, page)).ok_or_else(past);
        }
        let memory = memory.read().unwrap_or_else(PoisonError::into_inner);
        let memory = memory.clone().ok_or_else(|| format!("region {region} is not mapped"))?;
        Ok(Place::Memory(memory))
    }

    /// Counts the faults so far: of files, and of swap-backed memory.
    pub fn faults(&self) -> [FaultStat; 2] {
        let mut files = FaultStat::default();
        self.files.iter().for_each(|file| add(&mut files, file.stat()));
        let mut memory = *self.gone.read().unwrap_or_else(PoisonError::into_inner);
        for region in &self.regions {
            let mapped = region.memory.read().unwrap_or_else(PoisonError::into_inner);
            mapped.iter().for_each(|mapped| add(&mut memory, mapped.words.stat()));
        }
        [files, memory]
    }
}

impl Memory {
    /// Loads from a page, or stores to it; the first store gives the page its content.
    pub fn touch(&self, page: usize, write: bool) {
        let first = page * WORDS;
        if !write {
            std::hint::black_box(self.words[first].load(Ordering::Relaxed));
            return;
        }
        let noise = self.noise(page);
        if !self.filled[page].swap(true, Ordering::Relaxed) {
            let mut x = page as u64 ^ 0x9e37_79b9_7f4a_7c15;
            for word in &self.words[first..first + noise] {
                x = mglru_workload::rng::splitmix(x);
                word.store(x, Ordering::Relaxed);
            }
        }
        let value = if noise == 0 { 0 } else { page as u64 + 1 };
        self.words[first].store(value, Ordering::Relaxed);
    }

    /// Words of a page that do not compress.
    fn noise(&self, page: usize) -> usize {
        match self.content {
            Content::Zero => 0,
            Content::Compressible => NOISE_WORDS,
            Content::Mixed { per_mille } => {
                let draw = mglru_workload::rng::splitmix(page as u64) % 1000;
                if draw < u64::from(per_mille) { WORDS } else { NOISE_WORDS }
            }
        }
    }
}

fn options(machine: &MachineSpec, config: Config, folder: &Path) -> PagerOptions {
    let options = PagerOptions::new().memory_max(machine.memory.0).policy(config);
    let bytes = machine.swap.size.map_or(machine.memory.0, |size| size.0);
    match machine.swap.kind {
        SwapKind::None => options,
        SwapKind::Zram => options.swap(SwapOptions::in_memory(bytes)),
        SwapKind::Device => options.swap(SwapOptions::in_memory(0).with_file_in(folder, bytes)),
    }
}

/// The root first, then the layout's.
fn make_groups(
    pager: &Pager,
    machine: &MachineSpec,
    layout: &Layout,
) -> Result<Vec<(String, Group)>, PagerError> {
    let mut groups = vec![("/".to_owned(), pager.root())];
    for spec in &layout.groups {
        let parent = spec.parent.map_or(0, |parent| parent as usize + 1);
        let name = spec.name.rsplit('/').next().unwrap_or_default();
        let group = groups[parent].1.create(name)?;
        set_limits(&group, &machine.group(&spec.name))?;
        groups.push((spec.name.clone(), group));
    }
    Ok(groups)
}

fn set_limits(group: &Group, spec: &GroupSpec) -> Result<(), PagerError> {
    let limits = [
        (Limit::Min, spec.min),
        (Limit::Low, spec.low),
        (Limit::High, spec.high),
        (Limit::Max, spec.max),
        (Limit::SwapMax, spec.swap_max),
    ];
    for (limit, size) in limits {
        group.set_limit(limit, (size != Size::MAX).then_some(size.0));
    }
    spec.swappiness.map_or(Ok(()), |swappiness| group.set_swappiness(swappiness))
}

/// How a file will be used: as the first region that maps it says. Nothing is read around misses
/// on a machine without readahead.
fn advice(machine: &MachineSpec, layout: &Layout, file: u32) -> Advice {
    match mapping(layout, file).map_or(Hint::Normal, |region| region.advice) {
        Hint::Sequential => Advice::Sequential,
        Hint::Normal if machine.readahead_kb > 0 => Advice::Normal,
        Hint::Normal | Hint::Random => Advice::Random,
    }
}

fn mapping(layout: &Layout, file: u32) -> Option<&RegionSpec> {
    let maps = |kind| matches!(kind, RegionKind::File { file: mapped, .. } if mapped == file);
    layout.regions.iter().find(|region| maps(region.kind))
}

/// A file is charged to the group of the first task that maps it, or of the first task.
fn file_group(layout: &Layout, file: u32) -> usize {
    let mm = mapping(layout, file).map_or(0, |region| region.mm);
    group_of_mm(layout, mm)
}

fn group_of_mm(layout: &Layout, mm: u32) -> usize {
    let task = layout.tasks.iter().find(|task| task.mm == mm);
    task.and_then(|task| task.group).map_or(0, |group| group as usize + 1)
}

fn add(sum: &mut FaultStat, one: FaultStat) {
    sum.missing += one.missing;
    sum.major += one.major;
    sum.protect += one.protect;
    sum.throttled += one.throttled;
    sum.read_around += one.read_around;
}
