//! The text of ftrace: a line an event.

use std::io::{self, Write};
use std::sync::OnceLock;

use mglru_sim::tracing::Event;
use regex::Regex;

/// Begins a file; readers know the form by its first line.
pub const HEADER: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// Writes an event's line.
pub(super) fn write(out: &mut impl Write, event: &Event<'_>) -> io::Result<()> {
    let Event { at, flags, cpu, comm, pid, name, fields } = *event;
    let us = at / 1000;
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    writeln!(out, "{comm:>16}-{pid:<7} [{cpu:03}] {flags} {seconds:>5}.{us:06}: {name}: {fields}")
}

/// Writes how many events there are of how many there were, as ftrace does.
pub(super) fn close(out: &mut impl Write, written: u64, lost: u64) -> io::Result<()> {
    writeln!(
        out,
        "# entries-in-buffer/entries-written: {written}/{}",
        written.saturating_add(lost)
    )?;
    if lost > 0 {
        writeln!(out, "# {lost} events were lost: their buffer was full")?;
    }
    Ok(())
}

/// Holds an event as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Holds the time, ns.
    pub at: u64,
    /// Holds the flags for interrupts and preemption.
    pub flags: String,
    /// Numbers its processor.
    pub cpu: u32,
    /// Names the task.
    pub comm: String,
    /// Numbers the task.
    pub pid: u32,
    /// Names the event.
    pub name: String,
    /// Holds its fields.
    pub fields: String,
}

impl Owned {
    /// Returns the event, to be written.
    pub fn event(&self) -> Event<'_> {
        let Self { at, flags, cpu, comm, pid, name, fields } = self;
        Event { at: *at, flags, cpu: *cpu, comm, pid: *pid, name, fields }
    }
}

/// Reads a line; `None`: it is no event.
pub fn parse(line: &str) -> Option<Owned> {
    static LINE: OnceLock<Regex> = OnceLock::new();
    let form =
        r"^\s*(.+)-(\d+)\s+(?:\([^)]*\)\s+)?\[(\d+)\]\s+(?:(\S+)\s+)?(\d+)\.(\d{6}): (\w+): ?(.*)$";
    let line = LINE.get_or_init(|| Regex::new(form).expect("the form is fixed")).captures(line)?;
    let number = |at: usize| line[at].parse::<u64>().ok();
    Some(Owned {
        at: number(5)?.checked_mul(1_000_000_000)? + number(6)? * 1000,
        flags: line.get(4).map_or(".....", |flags| flags.as_str()).to_string(),
        cpu: u32::try_from(number(3)?).ok()?,
        comm: line[1].to_string(),
        pid: u32::try_from(number(2)?).ok()?,
        name: line[7].to_string(),
        fields: line[8].trim_end().to_string(),
    })
}
