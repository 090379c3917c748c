//! The method of UMap 2.1, to compare with: one thread serves faults one by one, the oldest page
//! goes first, and every page is read and written by itself while the fault waits.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::store::{FileStore, Store};
use crate::sys::direct::Buffer;
use crate::sys::memory::{Memory, View};
use crate::sys::uffd::{Fault, Message, Uffd};
use crate::sys::wake::{self, Wake};
use crate::sys::{PAGE, raw, thread};

/// Messages taken at once.
const MESSAGES: usize = 32;

/// State that the handler and the mapping share.
struct Shared {
    memory: Memory,
    uffd: Uffd,
    view: View,
    wake: Wake,
    over: AtomicBool,
}

/// Maps a file with a fixed number of pages in memory. What is dirty when it is dropped is lost.
pub struct FifoPager {
    shared: Arc<Shared>,
    nr_words: usize,
    handler: Option<JoinHandle<()>>,
}

impl FifoPager {
    /// Maps the whole pages of a file, `most` of which are in memory at a time.
    ///
    /// # Errors
    /// The file cannot be opened again, or the kernel refuses userfaultfd.
    pub fn map(file: &File, most: usize) -> io::Result<Self> {
        let store = FileStore::new(file, true)?;
        let len = store.queue().map_or(0, |queue| queue.nr_pages as usize) * PAGE;
        let memory = Memory::new(len as u64)?;
        let (view, uffd) = (View::new(&memory, len)?, Uffd::open()?);
        view.register(&uffd, view.span())?;
        uffd.protect(view.span())?;
        let over = AtomicBool::new(false);
        let shared = Arc::new(Shared { memory, uffd, view, wake: Wake::new()?, over });
        let state = vec![State::Absent; len / PAGE];
        let handler = Handler {
            shared: shared.clone(),
            store,
            state,
            resident: VecDeque::new(),
            most,
            page: Buffer::new(PAGE)?,
        };
        let handler = thread::spawn("fifo-fault", move || handler.run())?;
        Ok(Self { shared, nr_words: len / 8, handler: Some(handler) })
    }
}

impl Deref for FifoPager {
    type Target = [AtomicU64];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the view starts at a page, is mapped for as long as `self` lives, and is
        // reached through atomics only.
        unsafe { std::slice::from_raw_parts(self.shared.view.as_ptr().cast(), self.nr_words) }
    }
}

impl Drop for FifoPager {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        self.shared.wake.ring();
        // A handler that panicked has said so.
        self.handler.take().map(JoinHandle::join);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Clean,
    Dirty,
}

struct Handler {
    shared: Arc<Shared>,
    store: FileStore,
    state: Vec<State>,
    /// The oldest first.
    resident: VecDeque<u32>,
    most: usize,
    page: Buffer,
}

impl Handler {
    fn run(mut self) {
        let mut messages = [Message::default(); MESSAGES];
        let shared = self.shared.clone();
        while !shared.over.load(Ordering::Acquire) {
            wake::sleep([shared.uffd.as_fd(), shared.wake.as_fd()], None);
            let n = shared.uffd.read(&mut messages).expect("the userfaultfd is ours");
            for fault in messages[..n].iter().filter_map(Message::fault) {
                self.serve(fault).expect("the file can be read and written");
            }
        }
    }

    /// The message is a hint; what is known of the page decides.
    fn serve(&mut self, fault: Fault) -> io::Result<()> {
        let page = ((fault.address - self.shared.view.address(0)) / PAGE as u64) as u32;
        let span = self.shared.view.pages(page, 1);
        match self.state[page as usize] {
            State::Absent => self.load(page, fault.write),
            _ if fault.write => {
                self.state[page as usize] = State::Dirty;
                self.shared.uffd.unprotect(span)
            }
            _ => self.shared.uffd.wake(span),
        }
    }

    fn load(&mut self, page: u32, write: bool) -> io::Result<()> {
        if self.resident.len() >= self.most {
            let oldest = self.resident.pop_front().expect("there is room for some");
            self.evict(oldest)?;
        }
        let queue = self.store.queue().expect("files have one");
        raw::read_all(queue.fd, &mut self.page, offset(page))?;
        self.state[page as usize] = if write { State::Dirty } else { State::Clean };
        self.resident.push_back(page);
        self.shared.uffd.copy(self.shared.view.address(page), &self.page, !write)
    }

    fn evict(&mut self, page: u32) -> io::Result<()> {
        if std::mem::replace(&mut self.state[page as usize], State::Absent) == State::Dirty {
            self.shared.uffd.protect(self.shared.view.pages(page, 1))?;
            self.shared.memory.read(offset(page), &mut self.page)?;
            let queue = self.store.queue().expect("files have one");
            raw::write_all(queue.fd, &self.page, offset(page))?;
        }
        let len = PAGE as u64;
        self.shared.memory.punch(crate::sys::uffd::Span { start: offset(page), len })
    }
}

fn offset(page: u32) -> u64 {
    u64::from(page) * PAGE as u64
}
