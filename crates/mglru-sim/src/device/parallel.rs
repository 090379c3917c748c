//! A device that serves requests in parallel channels and then over one shared rate, in the order
//! in which they leave their channels.
//!
//! A request's turn at the shared rate is settled when it leaves its channel, not when it is
//! submitted, so that a short request is not held up by a long one it overtakes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use mglru::types::Nanos;

use super::{DeviceSpec, Request};

#[derive(Clone, Debug)]
pub(super) struct Parallel {
    spec: DeviceSpec,
    /// When each channel is free; empty when there is no limit.
    free_at: BinaryHeap<Reverse<Nanos>>,
    /// Requests that have not left their channel: (when they will, order, token, transfer time).
    leaving: BinaryHeap<Reverse<(Nanos, u64, u64, Nanos)>>,
    submitted: u64,
    /// When the shared rate is free.
    rate_free_at: Nanos,
    /// Past their channel: (when finished, token). The times only grow.
    finishing: VecDeque<(Nanos, u64)>,
}

impl Parallel {
    pub(super) fn new(spec: &DeviceSpec) -> Self {
        Self {
            spec: spec.clone(),
            free_at: (0..spec.channels).map(|_| Reverse(0)).collect(),
            leaving: BinaryHeap::new(),
            submitted: 0,
            rate_free_at: 0,
            finishing: VecDeque::new(),
        }
    }

    pub(super) fn submit(&mut self, now: Nanos, request: Request) {
        let service = self.spec.service_ns(request.io);
        let leaves = self.take_channel(now, service);
        let transfer = self.spec.transfer_ns(request.io);
        self.leaving.push(Reverse((leaves, self.submitted, request.token, transfer)));
        self.submitted += 1;
    }

    /// The next request to leave its channel finishes then, unless a later one overtakes it.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        if let Some(&(at, _)) = self.finishing.front() {
            return Some(at);
        }
        let Reverse((leaves, _, _, transfer)) = *self.leaving.peek()?;
        Some(leaves.max(self.rate_free_at) + transfer)
    }

    pub(super) fn complete(&mut self, now: Nanos, out: &mut Vec<u64>) {
        self.leave_channels(now);
        let finished = self.finishing.iter().take_while(|(at, _)| *at <= now).count();
        out.extend(self.finishing.drain(..finished).map(|(_, token)| token));
    }

    fn take_channel(&mut self, now: Nanos, service: Nanos) -> Nanos {
        match self.free_at.peek_mut() {
            None => now + service,
            Some(mut first) => {
                first.0 = first.0.max(now) + service;
                first.0
            }
        }
    }

    fn leave_channels(&mut self, now: Nanos) {
        while let Some(&Reverse((leaves, _, token, transfer))) = self.leaving.peek() {
            if leaves > now {
                return;
            }
            self.leaving.pop();
            self.rate_free_at = self.rate_free_at.max(leaves) + transfer;
            self.finishing.push_back((self.rate_free_at, token));
        }
    }
}
