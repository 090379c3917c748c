//! Defines what a trace can say beside pages: what happened, when, to which space, how far.

/// Tells what an event does. Accesses are requests of a replay, the others say what became of a
/// space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// Reads a file, device or object.
    #[default]
    Read = 0,
    /// Writes a file, device or object.
    Write = 1,
    /// Reads memory by an instruction.
    Load = 2,
    /// Writes memory by an instruction.
    Store = 3,
    /// Drops content: trim, delete, hole.
    Discard = 16,
    /// Maps pages.
    Map = 17,
    /// Unmaps pages.
    Unmap = 18,
    /// Forks a process; the page is the child's process number.
    Fork = 19,
}

impl Operation {
    /// Lists all kinds.
    pub const ALL: [Operation; 8] = [
        Operation::Read,
        Operation::Write,
        Operation::Load,
        Operation::Store,
        Operation::Discard,
        Operation::Map,
        Operation::Unmap,
        Operation::Fork,
    ];

    /// Tells the kind by its number.
    pub fn from_number(number: u8) -> Option<Self> {
        Operation::ALL.into_iter().find(|&operation| operation as u8 == number)
    }

    /// Says whether a replay asks its cache for it.
    pub fn is_access(self) -> bool {
        (self as u8) < Operation::Discard as u8
    }

    /// Says whether it makes a page dirty.
    pub fn is_write(self) -> bool {
        matches!(self, Operation::Write | Operation::Store)
    }

    /// Names the kind.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Load => "load",
            Operation::Store => "store",
            Operation::Discard => "discard",
            Operation::Map => "map",
            Operation::Unmap => "unmap",
            Operation::Fork => "fork",
        }
    }
}

/// Describes one thing that happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Event {
    /// Says when, in the unit of the trace; times may run backwards.
    pub time: u64,
    /// Says what happened.
    pub operation: Operation,
    /// Names the space (file, disk, address space) that has the page; 0 where there is one alone.
    pub space: u32,
    /// Begins the run of pages.
    pub page: u64,
    /// Counts the consecutive pages, at least one.
    pub nr: u64,
}

/// Tells the unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TimeUnit {
    /// Knows no times.
    #[default]
    None = 0,
    /// Counts nanoseconds.
    Nanosecond = 1,
    /// Instructions of the traced program.
    Instruction = 2,
}

impl TimeUnit {
    /// Tells the unit by its number.
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [TimeUnit::None, TimeUnit::Nanosecond, TimeUnit::Instruction];
        all.into_iter().find(|&unit| unit as u8 == number)
    }

    /// Names the unit.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::None => "none",
            TimeUnit::Nanosecond => "ns",
            TimeUnit::Instruction => "instructions",
        }
    }
}

/// Describes all events of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Head {
    /// Holds log2 of the bytes of a page: 12, or 0 for keys, which have no size.
    pub page_shift: u8,
    /// Names the unit of the times.
    pub time: TimeUnit,
    /// Says that events may be of other spaces than space 0.
    pub spaces: bool,
}
