//! A client and the thread that serves it: one request after the other, no pause between them.

use crate::op::Op;
use crate::rng::Rng;
use crate::ycsb::{Action, Client as Requests, Request, share};

use super::engine::{Engine, MAX_JOURNAL_ENTRY};
use super::leaf_cache::{Evictor, Writing};
use super::params::WiredTigerParams;
use super::{BLOCK_PAGES, DOCUMENTS_PER_BLOCK, layout};

/// Shortest journal entry of an update, in bytes.
const MIN_JOURNAL_ENTRY: u32 = 200;
/// Lane of a client's random numbers that are no keys.
const DETAIL_LANE: u64 = 1 << 32;

/// One of the clients.
#[derive(Debug)]
pub(super) struct Client {
    requests: Requests,
    left: u64,
    /// Entry lengths and heap pages: kept apart from the keys.
    details: Rng,
    thread: u32,
    /// Pages of memory that no leaf occupies; the first ones are the threads' own.
    other_pages: u32,
    threads: u32,
    /// The request being served, and whether its thread has evicted a block for it.
    current: Option<Request>,
    has_helped: bool,
}

impl Client {
    pub(super) fn new(
        params: &WiredTigerParams,
        thread: u32,
        requests: Requests,
        left: u64,
        seed: u64,
    ) -> Self {
        let details = Rng::new(seed, DETAIL_LANE + u64::from(thread));
        let other_pages = params.other_pages();
        Self {
            requests,
            left,
            details,
            thread,
            other_pages,
            threads: params.threads,
            current: None,
            has_helped: false,
        }
    }

    /// Queues the first touch of this client's share of memory.
    pub(super) fn populate(&self, queue: &mut Vec<Op>) {
        let pages = share(u64::from(self.other_pages), self.threads, self.thread);
        let own = (0..pages).map(|i| i as u32 * self.threads + self.thread);
        queue.extend(own.map(|page| Op::Touch { region: layout::OTHER, page, write: true }));
    }

    /// Whether the thread is between two requests.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Receives the next request, if the client has not sent all of them.
    pub(super) fn next_request(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        self.has_helped = false;
        self.current = Some(self.requests.request());
        self.current
    }

    /// Queues the beginning of a request: from the trigger on its thread evicts a dirty block.
    pub(super) fn begin(
        &mut self,
        engine: &mut Engine,
        params: &WiredTigerParams,
        queue: &mut Vec<Op>,
    ) -> Option<Writing> {
        self.receive(params, queue);
        if !engine.leaves.is_too_dirty(Evictor::Client) {
            return None;
        }
        engine.help_clean_up(params, queue)
    }

    /// Queues the rest of a request, unless the thread must first wait for a block to be written.
    pub(super) fn serve(
        &mut self,
        engine: &mut Engine,
        params: &WiredTigerParams,
        queue: &mut Vec<Op>,
    ) -> Option<Writing> {
        let request = self.current?;
        let block = (request.record / DOCUMENTS_PER_BLOCK) as u32;
        if !engine.leaves.is_cached(block) {
            let writing = self.make_room(engine, params, queue);
            if writing.is_some() {
                return writing;
            }
            if !engine.leaves.has_free_frame() {
                queue.push(Op::Think { ns: params.eviction_poll_ns });
                return None;
            }
        }
        self.current = None;
        self.finish(request, engine, params, queue);
        None
    }

    /// Evicts a block for the task that brings one in, if the cache is too full: once, or until
    /// there is room.
    fn make_room(
        &mut self,
        engine: &mut Engine,
        params: &WiredTigerParams,
        queue: &mut Vec<Op>,
    ) -> Option<Writing> {
        let should_help = !self.has_helped && engine.leaves.is_too_full(Evictor::Client);
        if !should_help && engine.leaves.has_free_frame() {
            return None;
        }
        self.has_helped = true;
        engine.help(params, queue)
    }

    fn finish(
        &mut self,
        request: Request,
        engine: &mut Engine,
        params: &WiredTigerParams,
        queue: &mut Vec<Op>,
    ) {
        let Request { action, record, .. } = request;
        engine.look_up(record, queue);
        let frame = engine.fetch((record / DOCUMENTS_PER_BLOCK) as u32, queue);
        if action == Action::ReadModifyWrite {
            // The client sends its change as a request of its own.
            self.receive(params, queue);
            engine.look_up(record, queue);
        }
        if action != Action::Read {
            let choices = u64::from(MAX_JOURNAL_ENTRY - MIN_JOURNAL_ENTRY) + 1;
            let entry = MIN_JOURNAL_ENTRY + self.details.below(choices) as u32;
            engine.update(frame, page_of(record), entry, queue);
        }
        queue.push(Op::End { class: action.class() });
    }

    /// Network and parsing: CPU, the thread's own buffer, and somewhere in the heap.
    fn receive(&mut self, params: &WiredTigerParams, queue: &mut Vec<Op>) {
        let region = layout::OTHER;
        let heap = self.details.below(u64::from(self.other_pages)) as u32;
        queue.push(Op::Compute { ns: params.cpu_ns });
        queue.push(Op::Touch { region, page: self.thread, write: true });
        queue.push(Op::Touch { region, page: heap, write: false });
    }
}

/// Page of its block that a document begins in.
fn page_of(record: u64) -> u32 {
    (record % DOCUMENTS_PER_BLOCK * u64::from(BLOCK_PAGES) / DOCUMENTS_PER_BLOCK) as u32
}
