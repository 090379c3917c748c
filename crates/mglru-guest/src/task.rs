//! One task: takes its operations from the workload and carries them out on the real machine.

use std::fs::{File, OpenOptions};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use mglru_guest::order::{Worker, file_path};
use mglru_guest::processor::ProcessorTime;
use mglru_workload::op::{
    ANON_ONLY, FileAdvice, FileId, GroupId, Knob, Layout, RegionKind, RegionSpec,
};
use mglru_workload::{Control, Op, TaskId};
use rustix::fs::{Advice as Posix, fadvise};

use crate::ask::{Administer, Ask};
use crate::memory::{Mapping, PAGE};
use crate::setup::group_dir;
use crate::worker::Shared;

/// Byte written by descriptors.
const WRITTEN: u8 = 0x5a;
/// Pages whose protection changes to flush the TLB.
const SCRATCH_PAGES: u32 = 64;

/// Holds open files, mapped regions and names of groups.
pub struct Places {
    files: Vec<File>,
    regions: Vec<Region>,
    groups: Vec<String>,
    /// Memory by which the TLB is flushed, and after how many operations.
    scratch: Option<(Mapping, u64)>,
    since_flush: AtomicU64,
}

/// A region, mapped or not.
struct Region {
    spec: RegionSpec,
    mapping: RwLock<Option<Arc<Mapping>>>,
}

impl Places {
    /// Opens every file and maps the regions that are mapped from the start.
    pub fn open(layout: &Layout, me: &Worker, flush_every: u64) -> Result<Self, String> {
        let files = (0..layout.files.len()).map(open_file).collect::<Result<Vec<_>, _>>()?;
        let region = |spec: &RegionSpec| Region { spec: spec.clone(), mapping: RwLock::default() };
        let mut places = Self {
            files,
            regions: layout.regions.iter().map(region).collect(),
            groups: layout.groups.iter().map(|group| group.name.clone()).collect(),
            scratch: None,
            since_flush: AtomicU64::new(0),
        };
        let mine = |mm| me.tasks.iter().any(|task| layout.tasks[task.id as usize].mm == mm);
        for (number, spec) in (0..).zip(&layout.regions) {
            if spec.mapped && mine(spec.mm) {
                places.map(number)?;
            }
        }
        if flush_every > 0 {
            let spec = RegionSpec::plain(0, RegionKind::Anon, SCRATCH_PAGES);
            let scratch = Mapping::of_memory(false, &spec)?;
            (0..SCRATCH_PAGES).for_each(|page| scratch.touch(page, true));
            places.scratch = Some((scratch, flush_every));
        }
        Ok(places)
    }

    fn map(&self, region: u32) -> Result<(), String> {
        let Region { spec, mapping } = &self.regions[region as usize];
        let mapped = match spec.kind {
            RegionKind::Anon => Mapping::of_memory(false, spec),
            RegionKind::Shmem => Mapping::of_memory(true, spec),
            RegionKind::File { file, first_page } => {
                Mapping::of_file(&self.files[file as usize], first_page, spec)
            }
        };
        *mapping.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(mapped?));
        Ok(())
    }

    fn unmap(&self, region: u32) {
        let mapping = &self.regions[region as usize].mapping;
        *mapping.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn with<T>(&self, region: u32, then: impl FnOnce(&Mapping) -> T) -> Result<T, String> {
        let mapping = &self.regions[region as usize].mapping;
        let mapping = mapping.read().unwrap_or_else(PoisonError::into_inner);
        mapping.as_deref().map(then).ok_or_else(|| format!("region {region} is not mapped"))
    }

    /// The advice holds for this process's open file, and for the mappings it made through it.
    fn advise(&self, file: FileId, page: u64, nr: u64, advice: FileAdvice) -> Result<(), String> {
        let posix = match advice {
            FileAdvice::DontNeed => Posix::DontNeed,
            FileAdvice::NoReuse => Posix::NoReuse,
            FileAdvice::Normal => Posix::Normal,
        };
        let [from, len] = [page, nr].map(|pages| pages * PAGE as u64);
        let advised = fadvise(&self.files[file as usize], from, NonZeroU64::new(len), posix);
        of_file(file, advised.map_err(Into::into))
    }

    fn group(&self, group: GroupId) -> String {
        self.groups[group as usize].clone()
    }

    fn flush_tlb_if_due(&self) {
        if let Some((scratch, every)) = &self.scratch
            && self.since_flush.fetch_add(1, Ordering::Relaxed) % every == every - 1
        {
            scratch.flush_tlb();
        }
    }
}

fn open_file(number: usize) -> Result<File, String> {
    let path = file_path(number);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    file.map_err(|e| format!("{path}: {e}"))
}

/// Holds the state of a task under way.
pub struct Task<'a> {
    id: TaskId,
    shared: &'a Shared,
    go_on: Receiver<()>,
    buffer: Vec<u8>,
    written: Vec<u8>,
    processor: ProcessorTime,
    last_end: Instant,
}

impl<'a> Task<'a> {
    pub fn new(id: TaskId, shared: &'a Shared, go_on: Receiver<()>) -> Self {
        let (buffer, written) = (Vec::new(), Vec::new());
        let last_end = Instant::now();
        Self { id, shared, go_on, buffer, written, processor: ProcessorTime::default(), last_end }
    }

    /// Waits for the start, then works until the workload says it is over.
    pub fn run(&mut self) -> Result<(), String> {
        self.wait();
        self.last_end = Instant::now();
        let mut ops = Vec::new();
        loop {
            self.shared.fill(self.id, &mut ops);
            for op in ops.drain(..) {
                if op == Op::Done {
                    return Ok(());
                }
                self.carry_out(op)?;
            }
        }
    }

    fn carry_out(&mut self, op: Op) -> Result<(), String> {
        let places = &self.shared.places;
        match op {
            Op::Touch { region, page, write } => self.touch(region, page, write)?,
            Op::Read { file, off, len } => self.read(file, off, len)?,
            Op::Write { file, off, len } => self.write(file, off, len)?,
            Op::Fsync { file } => of_file(file, places.files[file as usize].sync_all())?,
            Op::Truncate { file, len } => of_file(file, places.files[file as usize].set_len(len))?,
            Op::Map { region } => places.map(region)?,
            Op::Unmap { region } => places.unmap(region),
            Op::Free { region, page, nr } => places.with(region, |m| m.free(page, nr))??,
            Op::Lock { region } => places.with(region, |m| m.lock(true))??,
            Op::Unlock { region } => places.with(region, |m| m.lock(false))??,
            Op::Advise { region, page, nr, advice } => {
                places.with(region, |m| m.advise_pages(page, nr, advice))??;
            }
            Op::AdviseFile { file, page, nr, advice } => places.advise(file, page, nr, advice)?,
            Op::Compute { ns } => self.processor.spend(Duration::from_nanos(ns)),
            Op::Think { ns } => std::thread::sleep(Duration::from_nanos(ns)),
            Op::End { class } => self.end(class),
            Op::Barrier { id } => self.ask(&Ask::Barrier { task: self.id, id }),
            Op::Mark { phase } => self.ask(&Ask::Mark { task: self.id, phase }),
            Op::Control(control) => {
                let command = self.command(control);
                self.ask(&Ask::Administer { task: self.id, command });
            }
            Op::Kernel(op) => return Err(format!("{op:?}: no program can do this")),
            Op::Done => unreachable!("the caller stops at it"),
        }
        Ok(())
    }

    fn touch(&mut self, region: u32, page: u32, write: bool) -> Result<(), String> {
        self.shared.places.with(region, |mapping| mapping.touch(page, write))?;
        self.accessed(write);
        Ok(())
    }

    fn read(&mut self, file: FileId, off: u64, len: u32) -> Result<(), String> {
        let len = len as usize;
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        let (mut at, end) = (0, len);
        while at < end {
            let from = &self.shared.places.files[file as usize];
            match from.read_at(&mut self.buffer[at..end], off + at as u64) {
                Ok(0) => break,
                got => at += of_file(file, got)?,
            }
        }
        self.accessed(false);
        Ok(())
    }

    fn write(&mut self, file: FileId, off: u64, len: u32) -> Result<(), String> {
        let len = len as usize;
        if self.written.len() < len {
            self.written.resize(len, WRITTEN);
        }
        let to = &self.shared.places.files[file as usize];
        of_file(file, to.write_all_at(&self.written[..len], off))?;
        self.accessed(true);
        Ok(())
    }

    fn accessed(&self, write: bool) {
        let counter = if write { &self.shared.writes } else { &self.shared.reads };
        counter.fetch_add(1, Ordering::Relaxed);
        self.shared.places.flush_tlb_if_due();
        if let Some(access) = self.shared.schedule.stop() {
            self.ask(&Ask::Step { task: self.id, access });
        }
        let made = || [&self.shared.reads, &self.shared.writes].map(|n| n.load(Ordering::Relaxed));
        let access = made().iter().sum();
        if self.shared.until.is_over(access) {
            self.ask(&Ask::Stop { task: self.id, access });
        }
    }

    fn end(&mut self, class: u8) {
        let now = Instant::now();
        self.shared.end_op(class, (now - self.last_end).as_nanos() as u64);
        self.last_end = now;
    }

    /// Asks the first process for something and waits until it is done.
    fn ask(&self, ask: &Ask) {
        self.shared.ask(ask);
        self.wait();
    }

    /// When the first process is gone the machine is stopping: there is nothing left to do.
    fn wait(&self) {
        if self.go_on.recv().is_err() {
            std::thread::park();
        }
    }

    fn command(&self, control: Control) -> Administer {
        let name = |group| self.shared.places.group(group);
        match control {
            Control::Sync => Administer::Sync,
            Control::DropCaches => Administer::DropCaches,
            Control::Reclaim { group, bytes, swappiness } => Administer::Reclaim {
                group: group.map_or_else(String::new, name),
                bytes,
                swappiness: swappiness.map(|value| match value {
                    ANON_ONLY => "max".to_owned(),
                    value => value.to_string(),
                }),
            },
            Control::Remove { group } => Administer::Remove { group: name(group) },
            Control::Set { group, knob, value } => set(&name(group), knob, value),
            Control::Age { group, can_swap, force } => {
                Administer::Age { group: name(group), can_swap, force }
            }
            Control::Evict { group, offset, swappiness, nr } => {
                Administer::Evict { group: name(group), offset, swappiness, nr }
            }
        }
    }
}

/// cgroup v2 has one swappiness for the whole machine.
fn set(group: &str, knob: Knob, value: u64) -> Administer {
    let file = match knob {
        Knob::MemoryMin => "memory.min",
        Knob::MemoryLow => "memory.low",
        Knob::MemoryHigh => "memory.high",
        Knob::MemoryMax => "memory.max",
        Knob::MemorySwapMax => "memory.swap.max",
        Knob::Swappiness => {
            let path = "/proc/sys/vm/swappiness".to_owned();
            return Administer::Write { path, value: value.to_string() };
        }
    };
    let value = if value == u64::MAX { "max".to_owned() } else { value.to_string() };
    Administer::Write { path: format!("{}/{file}", group_dir(group)), value }
}

fn of_file<T>(file: FileId, result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|e| format!("file {file}: {e}"))
}
