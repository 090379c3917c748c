//! What happened to pages, on its way to the policy.

use std::sync::Mutex;

use super::Event;
use crate::sys::idle;

/// Counts events after which the policy is woken to take them.
pub const INBOX: usize = 4096;
/// Gives the bytes that [`INBOX`] events take.
pub const INBOX_BYTES: u64 = (INBOX * size_of::<Posted>()) as u64;

/// Pairs an event with its page.
pub type Posted = (Event, u32);

/// Events in order: any thread posts them, the policy takes them. In a cache line of its own: every
/// fault writes it, while the policy reads what lies beside it for every event.
#[repr(align(64))]
pub(super) struct Inbox(Mutex<Vec<Posted>>);

impl Inbox {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::with_capacity(INBOX)))
    }

    /// Adds an event. True: the policy is to be woken.
    pub(super) fn push(&self, event: Event, page: u32) -> bool {
        let mut posted = idle::lock(&self.0);
        posted.push((event, page));
        posted.len() % INBOX == 0
    }

    /// Adds an event if there is room for it, without allocating. Whether there was, and whether
    /// the policy is to be woken.
    pub(super) fn push_in_place(&self, event: Event, page: u32) -> (bool, bool) {
        let mut posted = idle::lock(&self.0);
        let fits = posted.len() < posted.capacity();
        if fits {
            posted.push((event, page));
        }
        (fits, !fits || posted.len() % INBOX == 0)
    }

    /// Takes all events, leaving the empty `into` to be filled next.
    pub(super) fn take(&self, into: &mut Vec<Posted>) {
        std::mem::swap(into, &mut *idle::lock(&self.0));
    }
}
