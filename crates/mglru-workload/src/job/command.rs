//! The commands of a job: steps that an administrator takes between phases.

use crate::op::{Control, Knob, Op};

use super::GROUP;
use super::line::{Line, Result};

/// Nanoseconds in the milliseconds that `sleep` counts.
const NS_PER_MS: u64 = 1_000_000;
const MAX_SWAPPINESS: u64 = 200;

/// The operation of a command line; `None` when its verb is no command's.
pub(super) fn command(line: &Line) -> Result<Option<Op>> {
    let op = match line.verb {
        "sleep" => sleep(line)?,
        "sync" => plain(line, Control::Sync)?,
        "drop" => plain(line, Control::DropCaches)?,
        "reclaim" => reclaim(line)?,
        "cgset" => Op::Control(set(line)?),
        "sysset" => sysset(line)?,
        "age" => age(line)?,
        "evict" => evict(line)?,
        _ => return Ok(None),
    };
    Ok(Some(op))
}

/// `FILE V` of `set` and `cgset`.
pub(super) fn setting(line: &Line) -> Result<(Knob, u64)> {
    line.expect(&["FILE", "V"], 0, &[])?;
    let (file, value) = (line.words[0], line.words[1]);
    let knob = match file {
        "memory.min" => Knob::MemoryMin,
        "memory.low" => Knob::MemoryLow,
        "memory.high" => Knob::MemoryHigh,
        "memory.max" => Knob::MemoryMax,
        "memory.swap.max" => Knob::MemorySwapMax,
        "memory.swappiness" => Knob::Swappiness,
        _ => return Err(line.error(file, "no such setting of a group")),
    };
    let value = match (knob, value) {
        (Knob::Swappiness, value) => line.number(file, value, 0, MAX_SWAPPINESS)?,
        (_, "max") => u64::MAX,
        (_, value) => line.bytes(file, value)?,
    };
    Ok((knob, value))
}

fn set(line: &Line) -> Result<Control> {
    let (knob, value) = setting(line)?;
    Ok(Control::Set { group: GROUP, knob, value })
}

/// The only system-wide setting of the model is swappiness.
fn sysset(line: &Line) -> Result<Op> {
    line.expect(&["PATH", "V"], 0, &[])?;
    let path = line.words[0];
    if !matches!(path, "/proc/sys/vm/swappiness" | "vm.swappiness") {
        return Err(line.error(path, "no such setting of the machine"));
    }
    let value = line.word_number(1, path, MAX_SWAPPINESS)?;
    Ok(Op::Control(Control::Set { group: GROUP, knob: Knob::Swappiness, value }))
}

fn sleep(line: &Line) -> Result<Op> {
    line.expect(&["MS"], 0, &[])?;
    let ms = line.word_number(0, "sleep", u64::MAX / NS_PER_MS)?;
    Ok(Op::Think { ns: ms * NS_PER_MS })
}

fn plain(line: &Line, control: Control) -> Result<Op> {
    line.expect(&[], 0, &[])?;
    Ok(Op::Control(control))
}

fn reclaim(line: &Line) -> Result<Op> {
    line.expect(&["BYTES"], 0, &["swappiness"])?;
    let bytes = line.bytes("reclaim", line.words[0])?;
    let swappiness = match line.get("swappiness") {
        Some(text) => Some(line.number("swappiness", text, 0, MAX_SWAPPINESS)? as u8),
        None => None,
    };
    Ok(Op::Control(Control::Reclaim { group: Some(GROUP), bytes, swappiness }))
}

fn age(line: &Line) -> Result<Op> {
    line.expect(&["CAN_SWAP", "FORCE"], 0, &[])?;
    let can_swap = line.word_number(0, "CAN_SWAP", 1)? == 1;
    let force = line.word_number(1, "FORCE", 1)? == 1;
    Ok(Op::Control(Control::Age { group: GROUP, can_swap, force }))
}

/// Without a number the whole generation is evicted.
fn evict(line: &Line) -> Result<Op> {
    line.expect(&["K", "SWAPPINESS", "NR"], 1, &[])?;
    let offset = line.word_number(0, "K", u64::from(u32::MAX))? as u32;
    let swappiness = line.word_number(1, "SWAPPINESS", MAX_SWAPPINESS)? as u8;
    let nr = match line.words.len() {
        3 => line.word_number(2, "NR", u64::MAX)?,
        _ => u64::MAX,
    };
    Ok(Op::Control(Control::Evict { group: GROUP, offset, swappiness, nr }))
}
