//! Reports memory that no pager manages: how much of the program's memory is outside of the
//! budget, and why. At the program's end in one line, while it runs in `memory.unmanaged`.
//!
//! The kernel says what is resident (`smaps`); why it is outside is noted where a mapping is
//! left to the kernel (`ranges`). A thread (`watcher`) brings both together when what is resident
//! has changed, and at the end. Not counted is what any process has: code, stacks of ordinary
//! depth, the pager itself. Nothing is said of 6 MiB: variables of libraries, and what malloc had
//! before this library was there, come to 4 in an interpreter.

mod children;
mod figures;
mod judge;
mod line;
mod proc;
mod ranges;
mod reason;
mod smaps;
mod strict;
mod watcher;

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use libc::{c_int, c_void};
use mglru_pager::threads;

use self::line::Line;
use self::ranges::Ranges;
use self::reason::{Call, Reason};
use crate::{candidate, heap, memory, settings};

static RANGES: Ranges = Ranges::new();
/// Whether there will be a heap is known.
static STARTED: AtomicBool = AtomicBool::new(false);
/// In a forked child, whose parent counts it for as long as it lives: that parent.
static PARENT: AtomicI32 = AtomicI32::new(0);
/// Bytes already reported: a program whose execve failed goes on and must not hear them twice.
static SAID: AtomicU64 = AtomicU64::new(0);

/// The process that has the thread which looks.
static PID: AtomicU32 = AtomicU32::new(0);
/// Less than this is not worth saying, bytes.
const LEAST: u64 = 6 << 20;

/// Starts to look. Memory that the pager maps from now on is distinguished from the program's.
pub fn start() {
    threads::on_map(|range, mapped| if mapped { note_own(&range) } else { RANGES.forget(&range) });
    PID.store(std::process::id(), Ordering::Release);
    // A process without a heap has no thread of the pager's until it maps a file: some calls, of
    // those that give up rights for one, are refused where there are several.
    if settings::fork().is_some() || strict::is_asked_for() {
        watcher::start(&RANGES, LEAST);
    }
    mglru_pager::set_unmanaged_source(|| {
        watcher::ask(&RANGES, true);
        line::file(&watcher::NOW.get(), &watcher::PEAK.get())
    });
    if strict::is_asked_for() {
        strict::start();
    }
}

/// Records that the program is about to begin, with a heap or without.
pub fn started() {
    STARTED.store(true, Ordering::Release);
}

/// Notes memory of this library's own.
pub fn note_own(range: &Range<usize>) {
    RANGES.note(range, Reason::Own);
}

/// Notes that a range is about to be unmapped.
pub fn gone(range: &Range<usize>) {
    RANGES.forget(range);
}

/// Notes a mapping that mmap left to the kernel, with the arguments it had.
pub fn left(start: usize, range: Range<usize>, prot: c_int, flags: c_int, fd: c_int) {
    let len = range.len();
    if start == libc::MAP_FAILED as usize || flags & libc::MAP_ANONYMOUS == 0 && fd < 0 {
        return;
    }
    let mapped = start..start + len;
    let shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE;
    if threads::is_pager() {
        return note_own(&mapped);
    }
    let fixed = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0;
    let call = Call {
        at_address: range.start != 0,
        short: len < settings::least(),
        prot,
        flags,
        in_memory: shared && flags & libc::MAP_ANONYMOUS == 0 && is_memory(fd),
        heap: heap::is_managed(),
    };
    // A mapping opened within a reservation was left for the reservation's reason.
    let within = RANGES.at(start).filter(|_| fixed && call.reason() == Reason::Hint);
    let early = Some(Reason::Raw).filter(|_| !shared && !STARTED.load(Ordering::Acquire));
    RANGES.note(&mapped, early.or(within).unwrap_or_else(|| call.reason()));
}

fn is_memory(fd: c_int) -> bool {
    // SAFETY: the descriptor is open while the caller's call lasts.
    candidate::is_in_memory(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Notes that the kernel moved a mapping, or changed its length.
pub fn moved(from: &Range<usize>, to: *mut c_void, len: usize) {
    if to != libc::MAP_FAILED
        && let Some(reason) = RANGES.at(from.start)
    {
        RANGES.forget(from);
        RANGES.note(&(to as usize..to as usize + len), reason);
    }
}

/// Finds the mappings of a range that are locked.
pub fn locked_within(range: &Range<usize>) -> Vec<Range<usize>> {
    let mut locked = Vec::new();
    smaps::areas(&proc::Path::new(format_args!("/proc/thread-self/smaps")), |area| {
        let part = area.start.max(range.start)..area.end.min(range.end);
        if area.locked && !part.is_empty() {
            locked.push(part);
        }
    });
    locked
}

/// Notes that this is a forked child: its parent counts what it has.
pub fn in_child() {
    watcher::forget();
    // SAFETY: takes nothing.
    PARENT.store(unsafe { libc::getppid() }, Ordering::Release);
}

/// Says what was outside of the budget, if that is worth a line: the program ends, or becomes
/// another. It allocates nothing, and may be called where a signal was.
pub fn say_at_end() {
    if std::process::id() == PID.load(Ordering::Acquire) {
        watcher::ask(&RANGES, false);
    } else if is_orphan() {
        watcher::look_as_orphan();
    } else {
        return;
    }
    let peak = watcher::PEAK.get();
    let all = peak.total() + peak.of(Reason::File);
    let said = SAID.swap(all, Ordering::AcqRel);
    if said == 0 || all > said + said / 16 + (1 << 20) {
        let mut line = Line::new();
        // It has room for every reason.
        let _ = line::at_end(&mut line, &peak, LEAST);
        line::say(&line);
    }
}

/// This is a forked child, and the parent that counted it has ended. A child that has its parent's
/// memory until it becomes another program is none.
fn is_orphan() -> bool {
    // SAFETY: takes nothing.
    memory::in_child() && PARENT.load(Ordering::Acquire) != unsafe { libc::getppid() }
}
