//! Why memory is outside of the budget.

use libc::c_int;

/// Says why memory is outside of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Lies at an address that the program named: by a hint, MAP_FIXED or MAP_32BIT.
    Hint,
    /// Is the C library's heap (brk), or variables of programs and libraries.
    Brk,
    /// Was reserved longer than the heap takes, or for loads alone, or the heap's addresses are
    /// used up.
    Reservation,
    /// May be shared between processes: it is anonymous and shared, or of a file that is memory.
    Shared,
    /// May hold code that the program makes.
    Executable,
    /// Is a thread's stack, or was mapped as one.
    Stack,
    /// Was locked by the program.
    Locked,
    /// Belongs to a mapping shorter than the least that is managed.
    Small,
    /// Came by no call that the library stands in for, or before the library was there.
    Raw,
    /// Belongs to a heap that is not managed, as asked for or because it could not be: mappings,
    /// and the blocks of the C library's malloc.
    NoHeap,
    /// Lies in huge pages of the system's pool.
    Huge,
    /// Belongs to a forked child, which has no pager.
    Child,
    /// Belongs to a child into which the library does not get: static, Go or set-uid.
    StaticChild,
    /// Belongs to the page cache, which the kernel takes back when it needs memory.
    File,
    /// Belongs to the pager or this library, and is paid for.
    Own,
}

/// Counts the reasons, [`Reason::Own`] not included.
pub const REASONS: usize = Reason::Own as usize;

/// Lists all reasons, in the order of their numbers.
pub const ALL: [Reason; REASONS] = [
    Reason::Hint,
    Reason::Brk,
    Reason::Reservation,
    Reason::Shared,
    Reason::Executable,
    Reason::Stack,
    Reason::Locked,
    Reason::Small,
    Reason::Raw,
    Reason::NoHeap,
    Reason::Huge,
    Reason::Child,
    Reason::StaticChild,
    Reason::File,
];

impl Reason {
    /// Names it in a sentence.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; REASONS] = [
            "hint",
            "brk",
            "reservation",
            "shared",
            "executable",
            "stack",
            "locked",
            "small",
            "raw",
            "no heap",
            "huge pages",
            "child",
            "static child",
            "file",
        ];
        NAMES.get(self as usize).copied().unwrap_or("own")
    }

    /// Finds the reason of a number.
    pub fn of_number(number: u8) -> Reason {
        ALL.get(usize::from(number)).copied().unwrap_or(Reason::Own)
    }
}

/// Holds the facts that decide why a call's mapping is left to the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    /// Says that an address was given.
    pub at_address: bool,
    /// Says that it is shorter than the least that is managed.
    pub short: bool,
    /// Holds the protection, as mmap(2) has it.
    pub prot: c_int,
    /// Holds the flags, as mmap(2) has them.
    pub flags: c_int,
    /// Says that it is of a file that is memory itself.
    pub in_memory: bool,
    /// Says that a heap is managed.
    pub heap: bool,
}

impl Call {
    /// Tells the reason: the first that would have kept the mapping from being managed.
    pub fn reason(&self) -> Reason {
        let has = |flag: c_int| self.flags & flag != 0;
        let anonymous = has(libc::MAP_ANONYMOUS);
        let shared = self.flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
        let fixed = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_32BIT;
        let reasons = [
            (has(libc::MAP_HUGETLB), Reason::Huge),
            (shared && (anonymous || self.in_memory), Reason::Shared),
            (shared, Reason::File),
            (has(libc::MAP_STACK | libc::MAP_GROWSDOWN), Reason::Stack),
            (has(libc::MAP_LOCKED), Reason::Locked),
            (self.prot & libc::PROT_EXEC != 0, Reason::Executable),
            (self.at_address || has(fixed), Reason::Hint),
            (self.short, Reason::Small),
            (!self.heap, Reason::NoHeap),
            (anonymous, Reason::Reservation),
        ];
        reasons.iter().find(|(is, _)| *is).map_or(Reason::Raw, |(_, reason)| *reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_that_stood_in_the_way_is_the_reason() {
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let call = |flags| Call { flags, heap: true, ..Call::default() };
        let cases = [
            (call(private), Reason::Reservation),
            (call(private | libc::MAP_FIXED), Reason::Hint),
            (call(private | libc::MAP_32BIT), Reason::Hint),
            (Call { at_address: true, ..call(private) }, Reason::Hint),
            (call(private | libc::MAP_STACK), Reason::Stack),
            (call(private | libc::MAP_LOCKED), Reason::Locked),
            (Call { prot: libc::PROT_EXEC, ..call(private) }, Reason::Executable),
            (Call { short: true, ..call(private) }, Reason::Small),
            (Call { heap: false, ..call(private) }, Reason::NoHeap),
            (call(shared), Reason::Shared),
            (Call { in_memory: true, ..call(libc::MAP_SHARED) }, Reason::Shared),
            (call(libc::MAP_SHARED), Reason::File),
            (call(libc::MAP_PRIVATE), Reason::Raw),
            (call(private | libc::MAP_HUGETLB), Reason::Huge),
        ];
        for (call, reason) in cases {
            assert_eq!(call.reason(), reason, "{call:?}");
        }
        assert!(ALL.iter().all(|&reason| Reason::of_number(reason as u8) == reason));
        assert_eq!(Reason::of_number(Reason::Own as u8), Reason::Own);
    }
}
