//! One task: a thread that takes its operations from the workload and carries them out.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mglru_guest::processor::ProcessorTime;
use mglru_pager::{Limit, SharedMapping};
use mglru_workload::op::{FileId, GroupId, Knob};
use mglru_workload::{Control, Op, TaskId};

use super::mapped::{Mapped, Place, WORDS};
use super::workers::Shared;

/// Operations after which a thread looks whether the run goes on.
const GLANCE: u32 = 64;

/// Holds the state of a running task.
pub struct Task<'a> {
    id: TaskId,
    shared: &'a Shared,
    processor: ProcessorTime,
    last_end: Instant,
    done: u32,
}

impl<'a> Task<'a> {
    pub fn new(id: TaskId, shared: &'a Shared) -> Self {
        Self { id, shared, processor: ProcessorTime::default(), last_end: Instant::now(), done: 0 }
    }

    /// Works until the workload says it is over, or the run is.
    pub fn run(&mut self) -> Result<(), String> {
        let mut ops = Vec::new();
        loop {
            self.shared.fill(self.id, &mut ops);
            for op in ops.drain(..) {
                self.done = self.done.wrapping_add(1);
                if op == Op::Done || self.done.is_multiple_of(GLANCE) && self.shared.is_over() {
                    return Ok(());
                }
                self.carry_out(op)?;
            }
        }
    }

    fn carry_out(&mut self, op: Op) -> Result<(), String> {
        let mapped = &self.shared.mapped;
        match op {
            Op::Touch { region, page, write } => {
                touch(mapped.place(region, page)?, page as usize, write);
                self.shared.accessed();
            }
            Op::Read { file, off, len } => self.read(file, off, len)?,
            Op::Write { file, off, len } => self.write(file, off, len)?,
            Op::Fsync { file } => or_message(mapped.files[file as usize].flush())?,
            Op::Truncate { .. } => return Err(unfit("an arena keeps its length", op)),
            Op::Map { region } => mapped.map(region)?,
            Op::Unmap { region } => mapped.unmap(region),
            Op::Free { region, page, nr } => mapped.free(region, page, nr)?,
            Op::Lock { .. } | Op::Unlock { .. } | Op::Advise { .. } | Op::AdviseFile { .. } => {
                return Err(unfit("the pager takes no such advice", op));
            }
            Op::Compute { ns } => self.processor.spend(Duration::from_nanos(ns)),
            Op::Think { ns } => std::thread::sleep(Duration::from_nanos(ns)),
            Op::End { class } => self.end(class),
            Op::Barrier { id } => self.shared.wait_at(self.id, id),
            Op::Mark { phase } => self.shared.mark(phase)?,
            Op::Control(control) => command(mapped, control)?,
            Op::Kernel(_) => return Err(unfit("no program can do this", op)),
            Op::Done => unreachable!("the caller stops at it"),
        }
        Ok(())
    }

    fn read(&self, file: FileId, off: u64, len: u32) -> Result<(), String> {
        let words = words(&self.shared.mapped.files[file as usize], file, off, len)?;
        let sum = words.iter().fold(0, |sum, word| sum ^ word.load(Ordering::Relaxed));
        std::hint::black_box(sum);
        self.shared.accessed();
        Ok(())
    }

    fn write(&self, file: FileId, off: u64, len: u32) -> Result<(), String> {
        let words = words(&self.shared.mapped.files[file as usize], file, off, len)?;
        words.iter().for_each(|word| word.store(off, Ordering::Relaxed));
        self.shared.accessed();
        Ok(())
    }

    fn end(&mut self, class: u8) {
        let now = Instant::now();
        self.shared.end_op(self.id, class, (now - self.last_end).as_nanos() as u64);
        self.last_end = now;
    }
}

fn touch(place: Place<'_>, page: usize, write: bool) {
    match place {
        Place::Memory(memory) => memory.touch(page, write),
        Place::File(file, page) if write => {
            file[page * WORDS].store(page as u64, Ordering::Relaxed)
        }
        Place::File(file, page) => {
            std::hint::black_box(file[page * WORDS].load(Ordering::Relaxed));
        }
    }
}

/// The words that hold a range of bytes.
fn words(
    file: &SharedMapping,
    id: FileId,
    off: u64,
    len: u32,
) -> Result<&[std::sync::atomic::AtomicU64], String> {
    let (start, end) = (off as usize / 8, (off as usize + len as usize).div_ceil(8));
    file.get(start..end.min(file.len()))
        .ok_or_else(|| format!("file {id}: offset {off} is past its end, and an arena cannot grow"))
}

/// An administrator's command.
fn command(mapped: &Mapped, control: Control) -> Result<(), String> {
    let group = |id: Option<GroupId>| &mapped.groups[id.map_or(0, |id| id as usize + 1)].1;
    match control {
        Control::Sync => mapped.files.iter().try_for_each(|file| or_message(file.flush())),
        Control::DropCaches => {
            mapped.files.iter().try_for_each(|f| or_message(f.advise(mglru_pager::Advice::PageOut)))
        }
        Control::Reclaim { group: id, bytes, swappiness: None } => {
            or_message(group(id).reclaim(bytes)).map(drop)
        }
        Control::Set { group: id, knob, value } => set(group(Some(id)), knob, value),
        Control::Age { group: id, .. } => or_message(group(Some(id)).age()).map(drop),
        Control::Reclaim { .. } | Control::Evict { .. } | Control::Remove { .. } => {
            Err(unfit("the pager has no such command", Op::Control(control)))
        }
    }
}

fn set(group: &mglru_pager::Group, knob: Knob, value: u64) -> Result<(), String> {
    let limit = match knob {
        Knob::MemoryMin => Limit::Min,
        Knob::MemoryLow => Limit::Low,
        Knob::MemoryHigh => Limit::High,
        Knob::MemoryMax => Limit::Max,
        Knob::MemorySwapMax => Limit::SwapMax,
        Knob::Swappiness => return or_message(group.set_swappiness(value.min(200) as u8)),
    };
    group.set_limit(limit, (value != u64::MAX).then_some(value));
    Ok(())
}

fn or_message<T>(result: Result<T, mglru_pager::PagerError>) -> Result<T, String> {
    result.map_err(|e| e.to_string())
}

fn unfit(why: &str, op: Op) -> String {
    format!("backend pager: {op:?}: {why}")
}
