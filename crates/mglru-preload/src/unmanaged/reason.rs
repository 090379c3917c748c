//! Why memory is outside of the budget.

use libc::c_int;

/// Why memory is outside of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The program named its address: by a hint, MAP_FIXED or MAP_32BIT.
    Hint,
    /// It is the C library's own heap (brk), or variables of programs and libraries.
    Brk,
    /// It was reserved longer than the heap takes, or for loads alone, or the heap's addresses are
    /// used up.
    Reservation,
    /// Processes may share it: it is anonymous and shared, or of a file that is memory.
    Shared,
    /// It may hold code that the program makes.
    Executable,
    /// It is a thread's stack, or was mapped as one.
    Stack,
    /// The program locked it.
    Locked,
    /// Its mapping is shorter than the least that is managed.
    Small,
    /// It came by no call that the library stands in for, or before the library was there.
    Raw,
    /// The heap is not managed, as asked for or because it could not be: what is mapped, and what
    /// the C library's malloc has.
    NoHeap,
    /// It is in huge pages of the system's pool.
    Huge,
    /// It is a forked child's, which has no pager.
    Child,
    /// It is of a child into which the library does not get: static, Go or set-uid.
    StaticChild,
    /// It is the page cache's, which the kernel takes back when it needs memory.
    File,
    /// It is the pager's or this library's own, and paid for.
    Own,
}

/// How many reasons there are, [`Reason::Own`] not counted.
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

/// The facts that decide why a call's mapping is left to the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    /// An address was given.
    pub at_address: bool,
    /// It is shorter than the least that is managed.
    pub short: bool,
    /// As mmap(2) has it.
    pub prot: c_int,
    /// As mmap(2) has it.
    pub flags: c_int,
    /// It is of a file that is memory itself.
    pub in_memory: bool,
    /// A heap is managed.
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
