//! A disk with one head: requests are taken in batches, each sorted by address, and served one by
//! one. A request that starts where the last one ended needs no seek.

use std::collections::VecDeque;

use mglru::types::Nanos;
use mglru_workload::rng::Rng;

use super::{DeviceSpec, Request};

#[derive(Clone, Debug)]
pub(super) struct Elevator {
    spec: DeviceSpec,
    rng: Rng,
    /// Address after the last request served.
    head: u64,
    arrivals: VecDeque<Request>,
    /// The batch being served, in order of address.
    batch: VecDeque<Request>,
    /// The request being served and when it is done.
    serving: Option<(Nanos, u64)>,
    /// Finished before the caller looked: (when, token).
    finished: Vec<(Nanos, u64)>,
}

impl Elevator {
    pub(super) fn new(spec: &DeviceSpec, rng: Rng) -> Self {
        Self {
            spec: spec.clone(),
            rng,
            head: 0,
            arrivals: VecDeque::new(),
            batch: VecDeque::new(),
            serving: None,
            finished: Vec::new(),
        }
    }

    pub(super) fn submit(&mut self, now: Nanos, request: Request) {
        self.advance(now);
        self.arrivals.push_back(request);
        if self.serving.is_none() {
            self.serve_next(now);
        }
    }

    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.finished.first().copied().or(self.serving).map(|(done, _)| done)
    }

    pub(super) fn complete(&mut self, now: Nanos, out: &mut Vec<u64>) {
        self.advance(now);
        out.extend(self.finished.drain(..).map(|(_, token)| token));
    }

    /// Serves up to `now`.
    fn advance(&mut self, now: Nanos) {
        while let Some(served) = self.serving.filter(|(done, _)| *done <= now) {
            self.finished.push(served);
            self.serve_next(served.0);
        }
    }

    fn serve_next(&mut self, now: Nanos) {
        if self.batch.is_empty() {
            self.take_batch();
        }
        self.serving = self.batch.pop_front().map(|request| {
            let io = request.io;
            let busy = self.seek(io.lba_page) + self.spec.service_ns(io);
            self.head = io.lba_page + u64::from(io.pages);
            (now + busy + self.spec.transfer_ns(io), request.token)
        });
    }

    fn take_batch(&mut self) {
        let nr = self.arrivals.len().min(self.spec.elevator_batch as usize);
        self.batch.extend(self.arrivals.drain(..nr));
        // Stable: requests for the same address keep their order.
        self.batch.make_contiguous().sort_by_key(|request| request.io.lba_page);
    }

    fn seek(&mut self, to: u64) -> Nanos {
        match to == self.head {
            true => 0,
            false => self.spec.seek_ns + self.rng.below(self.spec.seek_spread_ns + 1),
        }
    }
}
