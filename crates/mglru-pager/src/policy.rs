//! The one thread that runs the policy core: it learns what faults brought in, reclaims ahead of
//! need and on demand, and writes dirty pages back.
//!
//! Everything that changes the core's state happens here, so nothing of it is locked. Other
//! threads leave events in their arena's inbox and calls in [`Shared`].

mod attach;
mod by_hand;
mod change;
pub mod distance;
mod entries;
mod evict;
mod flush;
mod fresh;
mod harvest;
mod jobs;
mod pressure;
pub mod report;
mod staging;
mod taken;
mod turn;
mod world;
mod writeback;

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use mglru::{Bit, Config, Entry, Lru, MemcgId, NodeId, Zone};

use crate::account::Account;
use crate::arena::{Access, Event, INBOX, Posted};
use crate::error::PagerError;
use crate::events::{self, EventSender};
use crate::forks::{self, Who};
use crate::pages::Presence;
use crate::swap::Swap;
use crate::sys::idle::{self, IdlePolicy};
use crate::sys::thread;
use crate::sys::wake::{self, Wake};

pub use attach::{Served, Wanted};
use entries::Slotted;
use flush::Flush;
use jobs::Job;
use pressure::Watch;
use world::World;
use writeback::WRITE_BUFFER;

/// The one node and zone of a pager: its budget.
const NODE: NodeId = NodeId(0);
const ZONE: Zone = Zone(0);
/// How long a page is dirty at most until it is written: as with Linux.
const EXPIRY: Duration = Duration::from_secs(30);
/// Bytes that the thread itself takes: its buffers, stack and small tables.
const OVERHEAD: u64 = WRITE_BUFFER + (256 << 10);

type Call = Box<dyn FnOnce(&mut Policy) + Send>;

/// Holds the state that other threads share with the policy thread.
pub struct Shared {
    /// Wakes it.
    pub wake: Arc<Wake>,
    calls: Mutex<Vec<Call>>,
    stopping: AtomicBool,
}

impl Shared {
    /// Has the policy thread do something and waits for what came of it.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn call<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Policy) -> T + Send + 'static,
    ) -> Result<T, PagerError> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.send(Box::new(move |policy| drop(reply.send(what(policy)))));
        answer.recv().map_err(|_| PagerError::Stopped)
    }

    /// Has the policy thread do something that answers by itself.
    pub fn send(&self, call: Call) {
        self.calls().push(call);
        self.wake.summon();
    }

    /// Ends the policy thread.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake.summon();
    }

    fn is_called(&self) -> bool {
        !self.calls().is_empty() || self.stopping.load(Ordering::Acquire)
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        idle::lock(&self.calls)
    }
}

/// Holds the policy thread's state.
pub struct Policy {
    lru: Lru,
    world: World,
    jobs: Vec<Job>,
    flushes: Vec<Flush>,
    shared: Arc<Shared>,
    posted: Vec<Posted>,
    next_sweep: u64,
    watch: Watch,
    idle: IdlePolicy,
}

/// Starts the policy thread over `root`.
pub fn start(
    config: Config,
    root: Arc<Account>,
    swap: Arc<Swap>,
    second_chance: bool,
) -> io::Result<(Arc<Shared>, JoinHandle<()>)> {
    let shared = Arc::new(Shared {
        wake: Arc::new(Wake::new()?),
        calls: Mutex::default(),
        stopping: AtomicBool::new(false),
    });
    root.charge_anyway(OVERHEAD);
    let world = World::new(root, swap, second_chance)?;
    let mut policy = Policy {
        lru: Lru::new(config, 0),
        world,
        jobs: Vec::new(),
        flushes: Vec::new(),
        shared: shared.clone(),
        posted: Vec::with_capacity(INBOX),
        next_sweep: EXPIRY.as_nanos() as u64,
        watch: Watch::new(),
        idle: IdlePolicy::new(),
    };
    let thread = thread::spawn(events::THREAD, move || policy.run())?;
    Ok((shared, thread))
}

impl Policy {
    fn run(&mut self) {
        while !self.shared.stopping.load(Ordering::Acquire) {
            let work = forks::work(Who::Other);
            self.learn();
            self.take_calls();
            self.reap_writes();
            self.open_jobs();
            self.give_way();
            let reclaimed = self.step_jobs();
            let turned = self.turn();
            self.trim_staging();
            self.world.settle_slack();
            // Without memory for its buffer it waits for better times.
            let drained = self.world.drain_pool().unwrap_or(false);
            let wrote = self.flush();
            self.world.writer.submit();
            self.feed_starved();
            self.tick_pressure();
            drop(work);
            if !(reclaimed || turned || drained || wrote) {
                self.sleep();
            }
        }
    }

    fn take_calls(&mut self) {
        debug_assert!(self.world.taken.is_empty(), "a call may change what is mapped there");
        let calls = std::mem::take(&mut *self.shared.calls());
        for call in calls {
            call(self);
        }
    }

    /// Sleeps until somebody wants something, a write ends, or a sleeping job is due.
    fn sleep(&mut self) {
        let now = self.world.clock.now();
        let due = self.jobs.iter().map(|job| job.asleep_until).min();
        let sweep = self.world.has_stores().then_some(self.next_sweep);
        let at = due.into_iter().chain(sweep).chain(self.next_tick()).min();
        let at_most = at.map(|at| Duration::from_nanos(at.saturating_sub(now)));
        let shared = self.shared.clone();
        let [rung, _] = wake::sleep([shared.wake.as_fd(), self.world.writer.as_fd()], at_most);
        if rung {
            shared.wake.hush();
        }
    }

    /// Takes note of what happened to pages since last time.
    fn learn(&mut self) {
        let mut posted = std::mem::take(&mut self.posted);
        for id in 0..self.world.arenas.len() as u32 {
            let Some(attached) = self.world.arenas[id as usize].as_ref() else { continue };
            attached.arena.take_posted(&mut posted);
            for (event, page) in posted.drain(..) {
                match event {
                    Event::Filled | Event::FilledForStore | Event::Joined => {
                        self.filled(id, page, event);
                    }
                    Event::Dirtied => self.dirtied(id, page),
                    Event::Dropped => self.dropped(id, page),
                    Event::Used => self.used(id, page),
                }
            }
        }
        self.posted = posted;
        self.settle_fresh();
    }

    /// A page became resident: it gets a folio, unless it is gone again already.
    fn filled(&mut self, id: u32, page: u32, event: Event) {
        let attached = self.world.attached(id);
        let presence = attached.arena.pages().presence(page);
        let before = attached.entries.get(page);
        if !presence.is_resident() || matches!(before, Slotted::Folio(_)) {
            return;
        }
        let (kind, memcg) = (attached.kind(page), attached.arena.account().memcg);
        // A first random access does not foretell a second: the page has to prove itself.
        let recency = attached.arena.access() == Access::Normal;
        let pinned = attached.arena.pages().is_pinned(page);
        let folio = self.lru.new_folio(kind, memcg, NODE, ZONE, 0, [id, page]);
        self.lru.folios_mut()[folio].set_mapcount(1);
        if let Slotted::Shadow(shadow) = before {
            self.lru.refault(folio, shadow, recency);
        }
        self.lru.add(folio, Entry::Fault { recency });
        self.world.attached_mut(id).entries.set_folio(page, folio);
        let touched = event != Event::Joined;
        self.world.note_back(id, page, touched);
        if presence == Presence::Dirty {
            self.lru.set_dirty(folio);
        }
        if pinned {
            self.lru.set_mlocked(folio, true);
        }
        if touched {
            self.world.note_fault(id, page, event == Event::FilledForStore);
            self.note_fresh(id, page);
        }
    }

    /// A page became newer than its store, if it has not been written since. A copy's is another
    /// page from then on.
    fn dirtied(&mut self, id: u32, page: u32) {
        let attached = self.world.attached(id);
        let dirty = attached.arena.pages().presence(page) == Presence::Dirty;
        let (true, Slotted::Folio(folio)) = (dirty, attached.entries.get(page)) else { return };
        if attached.arena.is_copy() && !self.lru.folios()[folio].flags.has(Bit::SWAPBACKED) {
            self.drop_folio(id, page);
            self.filled(id, page, Event::FilledForStore);
        } else {
            self.lru.set_dirty(folio);
        }
    }

    /// The caller used a page: it goes to the head of its list, as an exact LRU has it.
    fn used(&mut self, id: u32, page: u32) {
        let Some(folio) = self.world.attached(id).entries.folio(page) else { return };
        if !self.lru.folios()[folio].flags.has(Bit::WRITEBACK) {
            self.lru.remove(folio);
            self.lru.add(folio, Entry::Plain);
        }
    }

    /// Writes trace events from now on, to a ring that the root pays for.
    pub(crate) fn trace_events(&mut self, sender: EventSender) {
        let root = self.world.accounts[0].clone();
        root.charge_anyway(sender.bytes());
        if let Some(before) = self.world.events.replace(sender) {
            root.uncharge(before.bytes());
        }
    }

    /// Returns the account of a group.
    pub fn account(&self, memcg: MemcgId) -> &Arc<Account> {
        &self.world.accounts[memcg.index()]
    }
}
