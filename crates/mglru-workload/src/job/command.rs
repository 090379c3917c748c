//! The commands of a job: steps that a program takes about its own memory, or an administrator
//! between phases.

use super::layout::{file_id, region_id};
use super::line::{Line, Result};
use super::parse::Parser;
use crate::op::{ANON_ONLY, Control, FileAdvice, GroupId, Knob, MemoryAdvice, Op};

/// Nanoseconds in the milliseconds that `sleep` counts.
const NS_PER_MS: u64 = 1_000_000;
const MAX_SWAPPINESS: u64 = 200;
const KNOBS: [(&str, Knob); 6] = [
    ("memory.min", Knob::MemoryMin),
    ("memory.low", Knob::MemoryLow),
    ("memory.high", Knob::MemoryHigh),
    ("memory.max", Knob::MemoryMax),
    ("memory.swap.max", Knob::MemorySwapMax),
    ("memory.swappiness", Knob::Swappiness),
];

/// The operation of a command line; `None` when its verb is no command's.
pub(super) fn command(job: &Parser, line: &Line) -> Result<Option<Op>> {
    let op = match line.verb {
        "sleep" => sleep(line)?,
        "barrier" => barrier(job, line)?,
        "map" => Op::Map { region: memory(job, line)?.0 },
        "unmap" => Op::Unmap { region: memory(job, line)?.0 },
        "mlock" => Op::Lock { region: memory(job, line)?.0 },
        "munlock" => Op::Unlock { region: memory(job, line)?.0 },
        "madvise" => madvise(job, line)?,
        "fadvise" => fadvise(job, line)?,
        "fsync" => fsync(job, line)?,
        "sync" => plain(line, Control::Sync)?,
        "drop" => plain(line, Control::DropCaches)?,
        "reclaim" => reclaim(job, line)?,
        "cgset" => set(job, line)?,
        "sysset" => sysset(job, line)?,
        "age" => age(job, line)?,
        "evict" => evict(job, line)?,
        "rmdir" => rmdir(job, line)?,
        _ => return Ok(None),
    };
    Ok(Some(op))
}

/// `FILE V` of `set` and `cgset`, and whose it is.
pub(super) fn setting(job: &Parser, line: &Line) -> Result<(GroupId, Knob, u64)> {
    line.expect(&["FILE", "V"], 0, &["group"])?;
    let (file, value) = (line.words[0], line.words[1]);
    let knob = KNOBS.iter().find(|(name, _)| *name == file).map(|(_, knob)| *knob);
    let known = KNOBS.map(|(name, _)| name);
    let knob = knob.ok_or_else(|| line.unknown(file, "setting of a group", &known))?;
    let value = match (knob, value) {
        (Knob::Swappiness, value) => line.number(file, value, 0, MAX_SWAPPINESS)?,
        (_, "max") => u64::MAX,
        (_, value) => line.bytes(file, value)?,
    };
    Ok((job.limited_group(line)?, knob, value))
}

fn set(job: &Parser, line: &Line) -> Result<Op> {
    let (group, knob, value) = setting(job, line)?;
    Ok(Op::Control(Control::Set { group, knob, value }))
}

/// The only system-wide setting of the model is swappiness.
fn sysset(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["PATH", "V"], 0, &[])?;
    let path = line.words[0];
    if !matches!(path, "/proc/sys/vm/swappiness" | "vm.swappiness") {
        return Err(line.unknown(path, "setting of the machine", &["vm.swappiness"]));
    }
    let value = line.word_number(1, path, MAX_SWAPPINESS)?;
    let group = job.limited_group(line)?;
    Ok(Op::Control(Control::Set { group, knob: Knob::Swappiness, value }))
}

fn sleep(line: &Line) -> Result<Op> {
    line.expect(&["MS"], 0, &[])?;
    let ms = line.word_number(0, "sleep", u64::MAX / NS_PER_MS)?;
    Ok(Op::Think { ns: ms * NS_PER_MS })
}

fn barrier(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["NUMBER"], 0, &[])?;
    if job.task().background {
        return Err(line.error("barrier", "nobody waits for a task in the background"));
    }
    Ok(Op::Barrier { id: line.word_number(0, "barrier", u64::from(u32::MAX))? as u32 })
}

fn plain(line: &Line, control: Control) -> Result<Op> {
    line.expect(&[], 0, &[])?;
    Ok(Op::Control(control))
}

/// The only word of a line as a mapped region: its number in the layout, and in the job.
fn memory(job: &Parser, line: &Line) -> Result<(u32, usize)> {
    if !matches!(line.verb, "madvise") {
        line.expect(&["REGION"], 0, &[])?;
    }
    let at = job.region(line, line.words[0])?;
    let region = region_id(&job.job.regions, at);
    let problem = "is read through a descriptor, not mapped";
    region.map(|region| (region, at)).ok_or_else(|| line.error(line.words[0], problem))
}

/// Pages that a line is about: all of a region, or as `base` and `n` say.
fn range(job: &Parser, line: &Line, at: usize) -> Result<(u32, u32)> {
    let pages = u64::from(job.job.region_pages(at));
    let base = line.number_or("base", 0, pages - 1)?;
    let nr = line.number_or("n", pages - base, pages - base)?;
    Ok((base as u32, nr as u32))
}

fn madvise(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["REGION", "ADVICE"], 0, &["base", "n"])?;
    let (region, at) = memory(job, line)?;
    let (page, nr) = range(job, line, at)?;
    let advice = match line.words[1] {
        "cold" => MemoryAdvice::Cold,
        "pageout" => MemoryAdvice::PageOut,
        "populate-read" => MemoryAdvice::PopulateRead,
        "populate-write" => MemoryAdvice::PopulateWrite,
        "dontneed" if job.job.regions[at].path.is_empty() => {
            return Ok(Op::Free { region, page, nr });
        }
        "dontneed" => return Err(line.error("dontneed", "is for memory; a file has `fadvise`")),
        other => {
            let known = ["cold", "pageout", "populate-read", "populate-write", "dontneed"];
            return Err(line.unknown(other, "advice about mapped pages", &known));
        }
    };
    Ok(Op::Advise { region, page, nr, advice })
}

/// The region named first as a file: its number in the layout, and in the job.
fn file(job: &Parser, line: &Line) -> Result<(u32, usize)> {
    let at = job.region(line, line.words[0])?;
    let file = file_id(&job.job.regions, at);
    file.map(|file| (file, at)).ok_or_else(|| line.error(line.words[0], "has no file behind it"))
}

fn fadvise(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["REGION", "ADVICE"], 0, &["base", "n"])?;
    let (file, at) = file(job, line)?;
    let (page, nr) = range(job, line, at)?;
    let advice = match line.words[1] {
        "dontneed" => FileAdvice::DontNeed,
        "noreuse" => FileAdvice::NoReuse,
        "normal" => FileAdvice::Normal,
        other => {
            let known = ["dontneed", "noreuse", "normal"];
            return Err(line.unknown(other, "advice about a file", &known));
        }
    };
    Ok(Op::AdviseFile { file, page: u64::from(page), nr: u64::from(nr), advice })
}

fn fsync(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["REGION"], 0, &[])?;
    Ok(Op::Fsync { file: file(job, line)?.0 })
}

fn reclaim(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["BYTES"], 0, &["swappiness", "group"])?;
    let bytes = line.bytes("reclaim", line.words[0])?;
    let swappiness = match line.get("swappiness") {
        Some("max") => Some(ANON_ONLY),
        Some(text) => Some(line.number("swappiness", text, 0, MAX_SWAPPINESS)? as u8),
        None => None,
    };
    let group = job.group(line)?;
    Ok(Op::Control(Control::Reclaim { group, bytes, swappiness }))
}

fn age(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["CAN_SWAP", "FORCE"], 0, &["group"])?;
    let can_swap = line.word_number(0, "CAN_SWAP", 1)? == 1;
    let force = line.word_number(1, "FORCE", 1)? == 1;
    Ok(Op::Control(Control::Age { group: job.limited_group(line)?, can_swap, force }))
}

/// Without a number the whole generation is evicted.
fn evict(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["K", "SWAPPINESS", "NR"], 1, &["group"])?;
    let offset = line.word_number(0, "K", u64::from(u32::MAX))? as u32;
    let swappiness = line.word_number(1, "SWAPPINESS", MAX_SWAPPINESS)? as u8;
    let nr = match line.words.len() {
        3 => line.word_number(2, "NR", u64::MAX)?,
        _ => u64::MAX,
    };
    Ok(Op::Control(Control::Evict { group: job.limited_group(line)?, offset, swappiness, nr }))
}

/// A group that a task of the text runs in can be removed only when that task has ended: the
/// machine finds out.
fn rmdir(job: &Parser, line: &Line) -> Result<Op> {
    line.expect(&["PATH"], 0, &[])?;
    let path = line.words[0];
    let group = job.known_group(line, path)?;
    if group.is_some_and(|group| job.task().group == Some(group)) {
        return Err(line.error(path, "the task that removes it runs in it"));
    }
    let group = group.ok_or_else(|| line.error(path, "the root cannot be removed"))?;
    Ok(Op::Control(Control::Remove { group }))
}
