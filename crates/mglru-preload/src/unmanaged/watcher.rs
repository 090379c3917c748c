//! The thread that looks at what is outside of the budget, now and then and when it is asked.
//!
//! It uses no descriptors of the program's (`apart`).

use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mglru_pager::threads;

use super::children::{self, Pids};
use super::figures::{Figures, Shown};
use super::judge::Judge;
use super::proc::{self, Path};
use super::ranges::Ranges;
use super::reason::Reason;
use super::{smaps, strict};
use crate::{apart, heap};

/// How often it looks whether anything changed.
const EVERY: Duration = Duration::from_millis(250);
/// As above, where the program is to be ended.
const EVERY_STRICT: Duration = Duration::from_millis(50);
/// Looking at everything takes a fiftieth of a processor's time at most.
const REST: u32 = 50;
/// It looks again after this time although nothing seems to have changed: the pager may have
/// evicted as much as the program took elsewhere.
const UNSEEN: Duration = Duration::from_secs(2);
/// A change of less is not looked at, bytes.
const CHANGE: u64 = 1 << 20;
/// A thread that asks waits this long at most: a program must end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Counts the threads whose stacks are distinguished from other memory.
const MOST_STACKS: usize = 1024;

/// Holds the current figures.
pub static NOW: Shown = Shown::new();
/// Holds the highest figures that there were.
pub static PEAK: Shown = Shown::new();

static RUNS: AtomicBool = AtomicBool::new(false);
/// Counts of questions and of answers; threads wait for both.
static ASKED: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);
/// Somebody asks for figures, however small.
static EXACTLY: AtomicBool = AtomicBool::new(false);

/// Starts it. Without it what is said is what there is at the end.
pub fn start(ranges: &'static Ranges, least: u64) {
    let strict = strict::is_asked_for();
    let watch = move || {
        if apart::leave_descriptors().is_ok() {
            RUNS.store(true, Ordering::Release);
            Watcher::new(ranges, least, strict).run();
        }
    };
    let _ = mglru_pager::threads::spawn("mglru-outside", watch);
}

/// Notes that a forked child has no such thread.
pub fn forget() {
    RUNS.store(false, Ordering::Release);
}

/// Makes the watcher look at everything now; `exactly`: also if it is too little to be said.
/// Without the thread the caller looks.
pub fn ask(ranges: &Ranges, exactly: bool) {
    if !RUNS.load(Ordering::Acquire) {
        return look_here(ranges);
    }
    EXACTLY.fetch_or(exactly, Ordering::AcqRel);
    let turn = ASKED.fetch_add(1, Ordering::AcqRel) + 1;
    threads::wake_all(&ASKED);
    let until = Instant::now() + PATIENCE;
    loop {
        let done = DONE.load(Ordering::Acquire);
        let left = until.saturating_duration_since(Instant::now());
        if done.wrapping_sub(turn) as i32 >= 0 || left.is_zero() {
            return;
        }
        threads::wait(&DONE, done, left);
    }
}

/// Signals once from one thread to another that waits.
pub struct Signal<T> {
    rung: AtomicU32,
    said: OnceLock<T>,
}

impl<T: Copy> Signal<T> {
    /// Makes a signal that was not given yet.
    pub const fn new() -> Self {
        Self { rung: AtomicU32::new(0), said: OnceLock::new() }
    }

    /// Wakes the threads that wait, with what the first call says.
    pub fn ring(&self, what: T) {
        let _ = self.said.set(what);
        self.rung.store(1, Ordering::Release);
        threads::wake_all(&self.rung);
    }

    /// Waits for the signal and returns what came with it.
    pub fn wait(&self) -> T {
        loop {
            if let Some(said) = self.said.get() {
                return *said;
            }
            threads::wait(&self.rung, 0, Duration::from_secs(3600));
        }
    }
}

struct Watcher {
    ranges: &'static Ranges,
    /// Less is not worth saying, bytes.
    least: u64,
    strict: Option<strict::Watch>,
    pids: Pids,
    stacks: [usize; MOST_STACKS],
    /// When everything was looked at, the processor time that took, and what was resident then.
    at: Instant,
    took: Duration,
    resident: Resident,
    /// The most that was resident at any look.
    most: Resident,
}

impl Watcher {
    fn new(ranges: &'static Ranges, least: u64, strict: bool) -> Self {
        let strict = strict.then(strict::Watch::new);
        let (pids, stacks) = (Pids::new(), [0; MOST_STACKS]);
        let (at, took) = (Instant::now(), Duration::ZERO);
        Self { ranges, least, strict, pids, stacks, at, took, resident: [0; 2], most: [0; 2] }
    }

    fn run(mut self) {
        let every = if self.strict.is_some() { EVERY_STRICT } else { EVERY };
        loop {
            let asked = ASKED.load(Ordering::Acquire);
            let is_asked = asked != DONE.load(Ordering::Acquire);
            if if is_asked { self.is_wanted() } else { self.is_due() } {
                self.look();
            }
            if let Some(strict) = &mut self.strict {
                strict.judge(&NOW.get(), self.least, &mut self.pids);
            }
            DONE.store(asked, Ordering::Release);
            threads::wake_all(&DONE);
            threads::wait(&ASKED, asked, every);
        }
    }

    /// Tells whether looking is worth it when somebody asks.
    fn is_wanted(&self) -> bool {
        EXACTLY.swap(false, Ordering::AcqRel)
            || own_bytes() > self.least
            || self.ranges.has(Reason::File)
            || children::any()
    }

    /// Tells whether the resident memory changed by more than a sixteenth, or may have changed.
    fn is_due(&self) -> bool {
        let (now, since) = (resident(), self.at.elapsed());
        let differs = |(now, then): (&u64, &u64)| now.abs_diff(*then) > CHANGE.max(then / 16);
        let is_changed = now.iter().zip(&self.resident).any(differs);
        let is_rested = since >= self.took * REST;
        is_rested && (is_changed || children::any() || since >= UNSEEN)
            || is_new_height(&now, &self.most)
    }

    fn look(&mut self) {
        let before = own_time();
        (self.at, self.resident) = (Instant::now(), resident());
        self.most = std::array::from_fn(|i| self.most[i].max(self.resident[i]));
        look(self.ranges, &mut self.pids, &mut self.stacks);
        self.took = own_time().saturating_sub(before);
    }
}

/// Tells whether memory grew by an eighth over all that was seen: it is looked at without a rest,
/// because a look that met the program's own faults may have taken a second, and a short-lived peak
/// must not go unseen. There are six such looks from any size to its double.
fn is_new_height(resident: &Resident, most: &Resident) -> bool {
    resident.iter().zip(most).any(|(now, most)| *now > most + CHANGE.max(most / 8))
}

/// Memory for a look, which the caller's stack has no room for: it may be a handler's.
struct Scratch {
    busy: AtomicBool,
    pids: UnsafeCell<Pids>,
    stacks: UnsafeCell<[usize; MOST_STACKS]>,
}

// SAFETY: only the thread that made it busy uses the cells.
unsafe impl Sync for Scratch {}

static SCRATCH: Scratch = Scratch {
    busy: AtomicBool::new(false),
    pids: UnsafeCell::new(Pids::new()),
    stacks: UnsafeCell::new([0; MOST_STACKS]),
};

fn look_here(ranges: &Ranges) {
    if !SCRATCH.busy.swap(true, Ordering::Acquire) {
        // SAFETY: nobody else has them while it is busy.
        let (pids, stacks) = unsafe { (&mut *SCRATCH.pids.get(), &mut *SCRATCH.stacks.get()) };
        look(ranges, pids, stacks);
        SCRATCH.busy.store(false, Ordering::Release);
    }
}

/// Counts what this process and those below it have outside of the budget.
fn look(ranges: &Ranges, pids: &mut Pids, stacks: &mut [usize]) {
    let figures = &mut of_process(ranges, stacks);
    if children::any() {
        children::count(pids, std::process::id(), figures);
    }
    NOW.set(figures);
    PEAK.raise(figures);
}

/// Counts all that a forked child has of its own, once its parent has ended.
pub fn look_as_orphan() {
    let (mut judge, mut figures) = (children::Judge::default(), Figures::default());
    smaps::areas(&Path::new(format_args!("/proc/thread-self/smaps")), |area| judge.take(area));
    judge.add_to(&mut figures);
    NOW.set(&figures);
    PEAK.set(&figures);
}

/// Tells the processor time of this thread: that of other programs does not keep it from looking.
fn own_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Bytes resident: of private memory, and of files and shared memory. Their sum would hide what the
/// program takes of one while the pager evicts of the other.
type Resident = [u64; 2];

/// Tells the bytes resident by the kernel's quick count.
fn resident() -> Resident {
    let mut buffer = [0; 128];
    let head = proc::head(&Path::new(format_args!("/proc/thread-self/statm")), &mut buffer);
    let mut pages = head.split(|&byte| byte == b' ').skip(1).map(proc::number);
    let [all, shared] = [(); 2].map(|()| pages.next().flatten().unwrap_or(0));
    [all.saturating_sub(shared), shared].map(|pages| pages * 4096)
}

/// Counts bytes of no file, resident or in swap: as much could be outside of the budget.
fn own_bytes() -> u64 {
    const KEYS: [&[u8]; 3] = [b"RssAnon:", b"RssShmem:", b"VmSwap:"];
    let mut kib = 0;
    proc::lines(&Path::new(format_args!("/proc/thread-self/status")), |line| {
        let value = KEYS.iter().find_map(|key| line.strip_prefix(*key)).unwrap_or_default();
        let digits = value.trim_ascii().split(|&byte| byte == b' ').next();
        kib += digits.and_then(proc::number).unwrap_or(0);
    });
    kib << 10
}

/// Counts what this process has outside of the budget.
fn of_process(ranges: &Ranges, stacks: &mut [usize]) -> Figures {
    let n = find_stacks(stacks);
    // The C library's malloc is in use where there is no heap.
    let other = if heap::exists() { Reason::Raw } else { Reason::NoHeap };
    let mut judge = Judge::new(ranges, &stacks[..n], other);
    smaps::areas(&Path::new(format_args!("/proc/thread-self/smaps")), |area| judge.take(area));
    judge.end()
}

/// Finds an address in the stack of each thread but the first: the C library keeps what it knows
/// of a thread at the end of its stack, and has registered a list there with the kernel.
fn find_stacks(stacks: &mut [usize]) -> usize {
    let own = std::process::id();
    let mut n = 0;
    proc::numbers(&Path::new(format_args!("/proc/{own}/task")), |task| {
        let (mut head, mut len) = (0_usize, 0_usize);
        let (to, size) = (&raw mut head, &raw mut len);
        // SAFETY: both are places for a word.
        let status = unsafe { libc::syscall(libc::SYS_get_robust_list, task, to, size) };
        if task != own && status == 0 && head != 0 {
            stacks[n] = head;
            n += 1;
        }
        n < stacks.len()
    });
    n
}
