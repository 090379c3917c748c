//! Children of a fork. A child has no pager: the memory it shares is its own to keep, and what
//! was not in memory at the fork its parent brings it, by a thread that does nothing else.
//!
//! The same thread undoes sharing on the parent's side: a page that a child shares cannot be
//! taken from the parent until a store gave the parent its own.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::forks::{self, Who};
use crate::pages::Slot;
use crate::swap::{Loaded, PaidSwap};
use crate::sys::direct::Buffer;
use crate::sys::uffd::{Fault, Message, Notice, Span, Uffd, is_again};
use crate::sys::wake::{self, Wake};
use crate::sys::{PAGE, heap, thread};
use crate::withheld::Withheld;

/// How often children are looked for that ended: the kernel does not say.
const REAP: Duration = Duration::from_secs(1);
/// Messages taken at once.
const MESSAGES: usize = 16;

/// Selects when a child gets the pages that were not in memory at its fork.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPolicy {
    /// Serves pages as the child touches them, for as long as its parent lives; the rest when its
    /// parent ends.
    #[default]
    Serve,
    /// Copies all of them at once.
    Copy,
}

impl ForkPolicy {
    /// Returns the name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Copy => "copy",
        }
    }
}

/// Sends requests to the thread that serves children.
pub struct Children {
    wake: Wake,
    inbox: Mutex<Inbox>,
    /// Pages are on their way to be the parent's alone.
    unsharing: AtomicBool,
    stopping: AtomicBool,
    /// Lists addresses that the program keeps from its children.
    pub withheld: Withheld,
}

#[derive(Default)]
struct Inbox {
    adopted: Vec<Child>,
    shared: Vec<u64>,
    finish: Vec<SyncSender<()>>,
    /// Nothing is made the parent's own any more.
    kept_shared: bool,
}

/// The content that a child is to find at a page.
#[derive(Clone)]
enum Held {
    /// Holds a share of a slot.
    Slot(Slot),
    Bytes(Box<[u8]>),
}

/// Describes the parent's heap, as a child that was forked from it knows it.
#[derive(Clone)]
pub struct Parent {
    /// Holds the address of its first page.
    pub start: u64,
    /// Counts the pages of the heap.
    pub nr_pages: u32,
    /// Holds an address where children have nothing.
    pub absent: u64,
    /// Holds the swap that its pages were in.
    pub swap: PaidSwap,
}

impl Parent {
    fn address(&self, page: u32) -> u64 {
        self.start + u64::from(page) * PAGE as u64
    }

    /// The page of an address, or the end of the heap's.
    fn page_at(&self, address: u64) -> u32 {
        (address.saturating_sub(self.start) / PAGE as u64).min(self.nr_pages.into()) as u32
    }
}

/// Describes a forked child: its faults, and the pages that it has not been given yet.
pub struct Child {
    parent: Parent,
    uffd: Uffd,
    held: BTreeMap<u32, Held>,
    /// Faults that came while its address space was changing.
    again: Vec<Fault>,
}

/// The child is gone.
struct Ended;

/// The steps that bring a page.
struct Tools {
    page: Buffer,
    zeros: Buffer,
    scratch: Vec<u8>,
}

impl Children {
    /// Starts the thread.
    pub fn start(policy: ForkPolicy) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let children = Arc::new(Self {
            wake: Wake::new()?,
            inbox: Mutex::default(),
            unsharing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            withheld: Withheld::new(),
        });
        let (page, zeros) = (Buffer::for_transfers(PAGE)?, Buffer::new(PAGE)?);
        let tools = Tools { page, zeros, scratch: Vec::with_capacity(2 * PAGE) };
        let (shared, children) = (children.clone(), children);
        let thread = thread::spawn("mglru-fork", move || shared.run(policy, tools))?;
        Ok((children, thread))
    }

    /// Serves a child from now on.
    pub fn adopt(&self, child: Child) {
        self.post(|inbox| inbox.adopted.push(child));
    }

    /// Notes that these addresses of the parent are shared with a child.
    pub fn unshare(&self, addresses: Vec<u64>) {
        self.post(|inbox| {
            if !inbox.kept_shared {
                self.unsharing.store(true, Ordering::Release);
                inbox.shared.extend(addresses);
            }
        });
    }

    /// Leaves what is shared as it is, because handlers will end, and waits for what is under way.
    pub fn keep_shared(&self) {
        self.post(|inbox| inbox.kept_shared = true);
        self.finish();
    }

    /// Tells whether shared pages will soon be the parent's alone.
    pub fn is_unsharing(&self) -> bool {
        self.unsharing.load(Ordering::Acquire)
    }

    /// Gives all children everything, because their parent ends.
    pub fn finish(&self) {
        let (reply, answer) = mpsc::sync_channel(1);
        self.post(|inbox| inbox.finish.push(reply));
        // A thread that is gone has nobody left to serve.
        let _ = answer.recv();
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake.ring();
    }

    fn post(&self, what: impl FnOnce(&mut Inbox)) {
        what(&mut self.inbox());
        self.wake.ring();
    }

    fn run(&self, policy: ForkPolicy, mut tools: Tools) {
        let mut children: Vec<Child> = Vec::new();
        while !self.stopping.load(Ordering::Acquire) {
            let inbox = self.take();
            children.extend(inbox.adopted);
            // It may wait for a handler, so no fork waits for it.
            self.make_own(&inbox.shared);
            let work = forks::work(Who::Other);
            let all = policy == ForkPolicy::Copy || !inbox.finish.is_empty();
            serve_all(&mut children, all, &mut tools);
            drop(work);
            for reply in inbox.finish {
                // The caller may have given up.
                let _ = reply.send(());
            }
            self.sleep(&children);
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Inbox {
        let mut inbox = self.inbox();
        let kept_shared = inbox.kept_shared;
        std::mem::replace(&mut inbox, Inbox { kept_shared, ..Inbox::default() })
    }

    /// Each page that is still there is stored to, as it were.
    fn make_own(&self, addresses: &[u64]) {
        if addresses.is_empty() {
            return;
        }
        addresses.iter().for_each(|&address| heap::unshare(address));
        let inbox = self.inbox();
        self.unsharing.store(!inbox.shared.is_empty(), Ordering::Release);
    }

    fn sleep(&self, children: &[Child]) {
        if children.iter().all(|child| child.again.is_empty()) {
            let fds = children.iter().map(|child| child.uffd.as_fd());
            let at_most = (!children.is_empty()).then_some(REAP);
            wake::sleep_any(fds.chain([self.wake.as_fd()]), at_most);
        } else {
            std::thread::yield_now();
        }
        self.wake.hush();
    }
}

/// Serves what has come; with `all`, everything there is, after which children need nobody.
fn serve_all(children: &mut Vec<Child>, all: bool, tools: &mut Tools) {
    let mut at = 0;
    while at < children.len() {
        let mut born = Vec::new();
        let child = &mut children[at];
        let served = child.serve(&mut born, tools).and_then(|()| child.is_alive(tools));
        let over = served.is_err() || all && child.fill(&mut born, tools).is_err();
        if over || all {
            children.swap_remove(at);
        } else {
            at += 1;
        }
        children.extend(born);
    }
}

impl Child {
    /// Makes the record of a child that has received nothing yet.
    pub fn new(parent: Parent, uffd: Uffd) -> Self {
        Self { parent, uffd, held: BTreeMap::new(), again: Vec::new() }
    }

    /// Gives the child a page now, or keeps a copy while its address space changes (it forks too).
    pub fn give(&mut self, page: u32, content: &[u8]) {
        match self.uffd.copy(self.parent.address(page), content, false) {
            Err(error) if is_again(&error) => {
                self.held.insert(page, Held::Bytes(content.into()));
            }
            // It has its own already, or has ended.
            _ => {}
        }
    }

    /// Lets the child read the page from a swap slot that parent and child share.
    pub fn share_slot(&mut self, page: u32, slot: Slot) {
        self.held.insert(page, Held::Slot(slot));
    }

    fn serve(&mut self, born: &mut Vec<Self>, tools: &mut Tools) -> Result<(), Ended> {
        let mut messages = [Message::default(); MESSAGES];
        let n = self.uffd.read(&mut messages).map_err(|_| Ended)?;
        for notice in messages[..n].iter().filter_map(Message::notice) {
            match notice {
                Notice::Fault(fault) => self.again.push(fault),
                Notice::Gone(span) => self.gone(span),
                Notice::Fork(uffd) => born.push(self.forked(uffd)),
            }
        }
        for fault in std::mem::take(&mut self.again) {
            self.fault(fault, tools)?;
        }
        Ok(())
    }

    fn gone(&mut self, span: Span) {
        let range = self.parent.page_at(span.start)..self.parent.page_at(span.start + span.len);
        let dropped: Vec<u32> = self.held.range(range).map(|(&page, _)| page).collect();
        dropped.into_iter().for_each(|page| self.forget(page));
    }

    fn forget(&mut self, page: u32) {
        if let Some(Held::Slot(slot)) = self.held.remove(&page) {
            self.parent.swap.give_up(slot);
        }
    }

    /// A grandchild: it lacks what its parent lacks.
    fn forked(&self, uffd: Uffd) -> Self {
        for held in self.held.values() {
            if let Held::Slot(slot) = held {
                self.parent.swap.share(*slot);
            }
        }
        let mut child = Self::new(self.parent.clone(), uffd);
        child.held = self.held.clone();
        child
    }

    fn fault(&mut self, fault: Fault, tools: &mut Tools) -> Result<(), Ended> {
        let span = Span { start: fault.address, len: PAGE as u64 };
        let done = if fault.protected {
            self.uffd.unprotect(span)
        } else {
            self.bring(self.parent.page_at(fault.address), tools)
        };
        match done {
            Err(error) if is_again(&error) => self.again.push(fault),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(Ended),
            // It is there already, or was unmapped.
            Err(_) => drop(self.uffd.wake(span)),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Gives it one page.
    fn bring(&mut self, page: u32, tools: &mut Tools) -> io::Result<()> {
        let address = self.parent.address(page);
        let done = match self.held.get(&page) {
            None => return self.uffd.copy(address, &tools.zeros, false),
            Some(Held::Bytes(bytes)) => self.uffd.copy(address, bytes, false),
            Some(&Held::Slot(slot)) => match tools.load(&self.parent.swap, slot) {
                Ok(()) => self.uffd.copy(address, &tools.page, false),
                Err(_) => self.uffd.poison(Span { start: address, len: PAGE as u64 }),
            },
        };
        if !done.as_ref().is_err_and(is_again) {
            self.forget(page);
        }
        done
    }

    /// Gives it everything.
    fn fill(&mut self, born: &mut Vec<Self>, tools: &mut Tools) -> Result<(), Ended> {
        while let Some((&page, _)) = self.held.first_key_value() {
            match self.bring(page, tools) {
                Err(error) if is_again(&error) => self.serve(born, tools)?,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(Ended),
                _ => {}
            }
        }
        self.serve(born, tools)
    }

    /// Only a refused copy shows that it ended: it has no memory there.
    fn is_alive(&self, tools: &Tools) -> Result<(), Ended> {
        match self.uffd.copy(self.parent.absent, &tools.zeros, false) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(Ended),
            _ => Ok(()),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        for held in held.into_values() {
            if let Held::Slot(slot) = held {
                self.parent.swap.give_up(slot);
            }
        }
    }
}

impl Tools {
    /// Brings what a slot holds into the buffer.
    fn load(&mut self, swap: &PaidSwap, slot: Slot) -> io::Result<()> {
        match swap.load(slot, &mut self.page, &mut self.scratch) {
            Loaded::Content => Ok(()),
            Loaded::ToRead(_) => swap.read(slot, &mut self.page),
        }
    }
}
