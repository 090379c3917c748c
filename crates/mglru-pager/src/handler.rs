//! The threads that serve an arena's faults: each reads what is missing, installs it, and lets
//! stores happen. None reclaims; without room a fault waits for the policy to make some.
//!
//! The kernel's message is a hint; the page's state, under its lock, decides.

mod ahead;
mod fill;
mod heap;
mod install;
mod stalls;
mod waiting;
mod watchdog;

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::arena::{Arena, Backing, ForHandler, INBOX_BYTES};
use crate::engine::{Engine, Note};
use crate::forks::{self, Who, Work};
use crate::pages::Presence;
use crate::sys::PAGE;
use crate::sys::direct::Buffer;
use crate::sys::ring::Ring;
use crate::sys::uffd::{Fault, Message, Notice};
use crate::sys::{clock, idle, thread, wake};

use ahead::Ahead;
use fill::Reading;
use install::Installer;
use waiting::{Waiting, Why};

/// Messages taken at once.
const MESSAGES: usize = 32;
/// Messages there is room for while the program forks: one for each thread that can fault, and
/// then some.
const HELD: usize = 1024;
/// Reads of an arena under way at once, all handlers together.
const DEPTH: usize = 16;
/// Bytes of a thread's stack and its small buffers.
const STACK: u64 = 64 << 10;
/// Pages of one read at most: 64 KiB.
const CLUSTER: u32 = 16;
/// How often faults that wait are looked at.
const WATCH: Duration = Duration::from_secs(1);

/// A page that was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Touch {
    page: u32,
    write: bool,
    /// It was there, protected.
    protected: bool,
    /// When it was heard of, ns.
    since: u64,
}

/// Holds the state that the handlers of one arena share.
pub struct Shared {
    engine: Arc<dyn Engine>,
    /// The arena's last misses of swap.
    ahead: Mutex<Ahead>,
    /// They end.
    closed: AtomicBool,
}

impl Shared {
    /// Has handlers do what the engine leaves to them.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, ahead: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// Ends the handlers, once they are woken.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

/// The handler's own state.
struct Handler {
    arena: Arc<Arena>,
    shared: Arc<Shared>,
    installer: Installer,
    ring: Ring,
    /// By buffer of the ring.
    reading: Vec<Option<Reading>>,
    /// Faults of which it is known that their threads stall.
    stalled: u32,
    /// When the last fault began that was reported as stuck, ns.
    reported_ns: u64,
    page: Buffer,
    scratch: Vec<u8>,
}

/// Bytes of one read at most. Swap is read page by page.
fn read_bytes(backing: &Backing) -> usize {
    backing.store().map_or(PAGE, |_| CLUSTER as usize * PAGE)
}

/// Reads of one handler under way at once.
fn depth(nr_handlers: usize) -> usize {
    DEPTH / nr_handlers
}

/// Returns the bytes of memory that an arena's handlers and their events take from the start: of
/// each its stack, a read, two pages and what unpacks them.
pub fn buffer_bytes(backing: &Backing, nr_handlers: usize) -> u64 {
    let each = STACK + (read_bytes(backing) + 4 * PAGE) as u64;
    nr_handlers as u64 * each + INBOX_BYTES
}

/// Starts a handler of an arena. It ends after [`Shared::close`], when it is woken.
pub fn start(end: ForHandler, shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let (arena, depth) = (Arc::clone(&end), depth(end.nr_handlers()));
    let handler = Handler {
        ring: Ring::new(depth as u16, read_bytes(arena.backing()))?,
        reading: (0..depth).map(|_| None).collect(),
        stalled: 0,
        reported_ns: 0,
        page: Buffer::new(PAGE)?,
        scratch: Vec::with_capacity(2 * PAGE),
        installer: Installer::new(end)?,
        shared: shared.clone(),
        arena,
    };
    thread::spawn("mglru-fault", move || handler.run(&shared))
}

impl Handler {
    /// Waking a thread on another processor interrupts it there, which costs more than a fault
    /// does otherwise: with a handler on each, the one beside the fault is mostly the first.
    fn run(mut self, shared: &Shared) {
        // Refused, it is served from wherever.
        let _ = thread::stay_on(self.installer.arena.nth(), self.arena.nr_handlers());
        let mut messages = [Message::default(); HELD];
        while !shared.closed.load(Ordering::Acquire) {
            let (n, work) = self.read(&mut messages);
            self.serve(&messages[..n]);
            self.do_what_is_left(&*shared.engine);
            self.retry();
            self.ring.submit().expect("the ring is ours");
            while let Some(finished) = self.ring.finished() {
                self.read_ended(finished.buffer, finished.result);
            }
            self.note_stalls();
            self.watch();
            drop(work);
            shared.engine.round_is_over();
            if n < MESSAGES && !self.installer.waiting.is_due() {
                self.sleep();
            }
        }
        self.set_stalled(0);
        self.arena.account().uncharge(self.ring.grown());
        // Nobody faults any more, but slots would stay taken for ever.
        shared.engine.left(&mut |note| {
            if let Note::Free(slot) = note {
                self.arena.free_slot(slot);
            }
        });
    }

    /// Takes what has come. While the program forks it goes on reading: one message is the fork's,
    /// which goes on when it was read.
    fn read(&self, messages: &mut [Message]) -> (usize, Work) {
        let read =
            |some: &mut [Message]| self.arena.uffd().read(some).expect("the userfaultfd is ours");
        let mut n = read(&mut messages[..MESSAGES]);
        loop {
            match forks::try_work(Who::Handler) {
                Some(work) => return (n, work),
                None => std::thread::yield_now(),
            }
            if n < messages.len() {
                n += read(&mut messages[n..]);
            }
        }
    }

    fn sleep(&mut self) {
        let Installer { arena, waiting, .. } = &mut self.installer;
        let watched = !waiting.is_empty() || self.reading.iter().any(Option::is_some);
        let at_most = watched.then_some(WATCH);
        let wake = arena.wake();
        let on = [arena.uffd().as_fd(), self.ring.as_fd(), wake.as_fd()];
        let [.., rung] = wake::sleep(on, at_most);
        if rung && wake.hush() {
            waiting.set_due();
        }
    }

    /// Serves faults last: once its message is read a forking thread goes on, and pages can be
    /// installed. A page installed before the fork is noted would be taken for one that the child
    /// shares.
    fn serve(&mut self, messages: &[Message]) {
        for message in messages.iter().filter(|message| message.fault().is_none()) {
            match message.notice() {
                Some(Notice::Gone(span)) => self.gone(span),
                Some(Notice::Fork(child)) => self.forked(child),
                Some(Notice::Fault(_)) | None => {}
            }
        }
        let since = clock::monotonic();
        for Fault { address, write, protected } in messages.iter().filter_map(Message::fault) {
            let page = self.page_at(address);
            self.touched(Touch { page, write, protected, since });
        }
    }

    /// Takes what threads left that serve their own faults.
    fn do_what_is_left(&mut self, engine: &dyn Engine) {
        let since = clock::monotonic();
        engine.left(&mut |note| match note {
            Note::Touched(page, write) => {
                if !self.installer.waiting.hear_again(page, write) {
                    self.touched(Touch { page, write, protected: false, since });
                }
            }
            Note::Happened(event, page) => self.arena.post(event, page),
            Note::Free(slot) => self.arena.free_slot(slot),
        });
    }

    fn page_at(&self, address: u64) -> u32 {
        ((address - self.arena.view().address(0)) / PAGE as u64) as u32
    }

    /// Faults that waited try again.
    fn retry(&mut self) {
        if !self.installer.waiting.is_due() {
            return;
        }
        let hopeless = self.installer.arena.take_hopeless();
        for (touch, why) in self.installer.waiting.take() {
            if hopeless && why == Why::Room {
                self.installer.refuse(touch);
            } else {
                self.touched(touch);
            }
        }
    }

    /// Serves a fault. If it ends without waiting, records how long it took.
    fn touched(&mut self, touch: Touch) {
        let under_way = self.under_way();
        let locked = self.arena.pages().lock_or_wait(touch.page);
        let kind = locked.and_then(|found| self.arena.kind_of(touch.page, found, touch.write));
        self.serve_one(touch, locked);
        if let Some(kind) = kind.filter(|_| self.under_way() == under_way) {
            self.served(kind, touch);
        }
    }

    fn serve_one(&mut self, touch: Touch, locked: Option<Presence>) {
        let Touch { page, write, protected, .. } = touch;
        match locked {
            None => {
                idle::hurry();
                self.installer.waiting.add(touch, Why::Lock);
            }
            Some(Presence::Absent) => self.missing(touch),
            Some(Presence::Staged) => self.rescue(touch),
            Some(presence) if self.arena.is_heap() && !protected => {
                self.fill_hole(touch, presence);
            }
            Some(presence) if write && presence.is_resident() => {
                self.installer.allow_store(page, presence);
            }
            Some(presence) => {
                self.installer.unlock(page, presence);
                self.installer.wake(page);
            }
        }
    }
}
