//! Reclaim under way: ahead of need down to the reserve, on demand for faults that wait, and on
//! request. One job a group at most, each stepped in turn.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use mglru::{ChargeRetry, Gfp, MemcgId, Reclaim, RetryStep, Step};

use super::world::Attached;
use super::{NODE, Policy, ZONE};
use crate::account::{Account, Happened, PAGE_COST, Setting};
use crate::arena::Arena;
use crate::sys::{PAGE, raw};

/// Pages a group asks reclaim for at once.
const GOAL: u64 = 64;
/// Steps between looks at the inbox.
const STEPS: usize = 4;
/// How long reclaim waits at most for writes to end before it looks again, ns.
const WRITES: u64 = 1_000_000;
/// Pages that are written at once for a job, at most.
const MOST_WRITTEN: u64 = 2 * GOAL;
/// Written pages that are worth a step while faults wait.
const URGENT: u64 = GOAL / 4;

/// Why it reclaims.
pub(super) enum Purpose {
    /// Reclaims down to the reserve, or to `memory.high`.
    Background,
    /// Reclaims for faults that wait for room.
    Direct(ChargeRetry),
    /// Serves `memory.reclaim`: answers with the pages reclaimed.
    Requested(SyncSender<u64>),
    /// Reclaims for a limit that was lowered below what is in use: answers once that fits, or
    /// nothing more goes.
    Lowered(ChargeRetry, Setting, SyncSender<()>),
}

/// A reclaim under way.
pub(super) struct Job {
    account: Arc<Account>,
    reclaim: Reclaim,
    purpose: Purpose,
    pub(super) asleep_until: u64,
    /// Pages written for reclaim that no step came by yet.
    written: u64,
}

impl Job {
    fn new(account: Arc<Account>, purpose: Purpose) -> Self {
        let reclaim = call_for(&account, &purpose);
        Self { account, reclaim, purpose, asleep_until: 0, written: 0 }
    }

    /// Does a caller wait for its answer?
    fn is_requested(&self) -> bool {
        matches!(self.purpose, Purpose::Requested(_) | Purpose::Lowered(..))
    }

    /// While a limit is exceeded somebody waits.
    fn is_over_limit(&self) -> bool {
        self.account.usage() > self.account.get(Setting::Max)
    }

    fn has_room(&self) -> bool {
        match self.purpose {
            Purpose::Lowered(_, limit, _) => self.account.usage() <= self.account.get(limit),
            _ => self.account.room() >= PAGE_COST,
        }
    }

    /// Pages that may be written at a time. A fault that waits for room takes clean pages from
    /// further on rather than wait for writes too.
    fn wanted(&self) -> u64 {
        match self.purpose {
            Purpose::Requested(_) => GOAL,
            Purpose::Direct(_) | Purpose::Lowered(..) => MOST_WRITTEN,
            Purpose::Background => {
                let over = self.account.usage().saturating_sub(self.account.background_until());
                over.div_ceil(PAGE_COST).min(MOST_WRITTEN)
            }
        }
    }

    /// Are those pages enough that are `leaving` or written already? A dirty page that is met goes
    /// to the young ones until it is written: looking for more than are wanted makes pages old
    /// that are in use. A step takes `GOAL` pages, and those written first.
    fn waits_for_writes(&self, leaving: u64) -> bool {
        let worth_a_step = if matches!(self.purpose, Purpose::Direct(_)) { URGENT } else { GOAL };
        let wanted = self.wanted();
        leaving > 0 && self.written < worth_a_step && self.written + leaving >= wanted && wanted > 0
    }
}

fn call_for(account: &Account, purpose: &Purpose) -> Reclaim {
    match (purpose, account.memcg) {
        (Purpose::Background, MemcgId::ROOT) if account.get(Setting::High) > account.usage() => {
            Reclaim::kswapd(NODE, 0)
        }
        (Purpose::Direct(_), MemcgId::ROOT) => Reclaim::direct(NODE, ZONE, 0, Gfp::default()),
        (_, memcg) => Reclaim::memcg(memcg, GOAL, Gfp::default()),
    }
}

impl Policy {
    /// `memory.reclaim`.
    pub(crate) fn request_reclaim(
        &mut self,
        memcg: MemcgId,
        bytes: u64,
        swappiness: Option<u8>,
        reply: SyncSender<u64>,
    ) {
        self.mark_all_ran();
        self.jobs.push(Job {
            account: self.account(memcg).clone(),
            reclaim: Reclaim::proactive(memcg, bytes.div_ceil(PAGE as u64), swappiness),
            purpose: Purpose::Requested(reply),
            asleep_until: 0,
            written: 0,
        });
    }

    /// Reclaims down to a limit that was lowered, as the kernel does for the task that writes it.
    pub(crate) fn request_lowered(
        &mut self,
        memcg: MemcgId,
        limit: Setting,
        reply: SyncSender<()>,
    ) {
        self.mark_all_ran();
        let account = self.account(memcg).clone();
        let purpose = Purpose::Lowered(ChargeRetry::default(), limit, reply);
        self.jobs.push(Job::new(account, purpose));
    }

    /// Starts a job for each group that wants one.
    pub(super) fn open_jobs(&mut self) {
        for memcg in 0..self.world.accounts.len() {
            let account = self.world.accounts[memcg].clone();
            // The flag may be cleared by a job that ends while a fault begins to wait.
            if !account.wanted.load(Ordering::Acquire) && !self.is_starved(&account) {
                continue;
            }
            let mine = |job: &&mut Job| Arc::ptr_eq(&job.account, &account) && !job.is_requested();
            let purpose = self.purpose_for(&account);
            match (self.jobs.iter_mut().find(mine), purpose) {
                (Some(job), Some(Purpose::Direct(retry))) => {
                    if matches!(job.purpose, Purpose::Background) {
                        job.purpose = Purpose::Direct(retry);
                    }
                }
                (Some(_), _) => {}
                (None, Some(purpose)) => {
                    if account.usage() > account.get(Setting::High) {
                        account.note(Happened::High);
                    }
                    self.mark_all_ran();
                    self.jobs.push(Job::new(account, purpose));
                }
                (None, None) => account.wanted.store(false, Ordering::Release),
            }
        }
    }

    fn purpose_for(&self, account: &Arc<Account>) -> Option<Purpose> {
        let starves = self.is_starved(account) && account.room() < PAGE_COST;
        if starves {
            return Some(Purpose::Direct(ChargeRetry::default()));
        }
        (account.usage() > account.background_from()).then_some(Purpose::Background)
    }

    fn is_starved(&self, account: &Account) -> bool {
        self.world.live().any(|attached| {
            attached.arena.waits_for_room() && attached.arena.account().is_within(account)
        })
    }

    /// Loads and stores are not seen: every address space may have run.
    fn mark_all_ran(&mut self) {
        for attached in self.world.arenas.iter().flatten() {
            self.lru.mm_ran(attached.mm, NODE);
        }
    }

    /// Gives the processor up to others while nobody waits; goes ahead of them while a limit is
    /// exceeded, because only this brings usage down.
    pub(super) fn give_way(&mut self) {
        self.idle.go_ahead(self.jobs.iter().any(Job::is_over_limit));
        if self.is_waited_for() || self.idle.lower() && self.is_waited_for() {
            self.idle.raise();
        }
    }

    fn is_waited_for(&self) -> bool {
        let asked = |job: &Job| !matches!(job.purpose, Purpose::Background) || job.is_over_limit();
        let starved = |attached: &Attached| attached.arena.waits_for_room();
        self.jobs.iter().any(asked)
            || !self.flushes.is_empty()
            || self.shared.is_called()
            || self.world.live().any(starved)
    }

    /// Takes each job a few steps further. True when one of them did something.
    pub(super) fn step_jobs(&mut self) -> bool {
        let now = self.world.clock.now();
        let mut jobs = std::mem::take(&mut self.jobs);
        let mut stepped = false;
        jobs.retain_mut(|job| {
            if job.asleep_until > now {
                return true;
            }
            stepped = true;
            (0..STEPS).all(|_| job.asleep_until > now || !self.step_job(job))
        });
        jobs.append(&mut self.jobs);
        self.jobs = jobs;
        stepped
    }

    /// One step. True when the job is over.
    fn step_job(&mut self, job: &mut Job) -> bool {
        let leaving = self.pages_leaving(&job.account);
        let waits = self.world.writer.is_swap_busy(&job.account) || job.waits_for_writes(leaving);
        if waits && !self.world.writer.is_late() {
            job.asleep_until = self.world.clock.now() + WRITES;
            return false;
        }
        job.written = job.written.saturating_sub(GOAL);
        let step = job.reclaim.step(&mut self.lru, &mut self.world);
        self.world.taken.clear();
        match step {
            Step::Again(_) => false,
            Step::Sleep { at_most, .. } => {
                job.asleep_until = self.world.clock.now().saturating_add(at_most);
                false
            }
            Step::Done { reclaimed } => self.call_ended(job, reclaimed),
        }
    }

    /// Pages of a group that are written, or will be, so that they can be evicted.
    fn pages_leaving(&self, account: &Account) -> u64 {
        let within = |id: u32| self.world.attached(id).arena.account().is_within(account);
        let met = self.world.met_dirty.iter().filter(|(id, _)| within(*id)).count() as u64;
        let leaving = self.world.writer.leaving().filter(|(id, _)| within(*id));
        met + leaving.map(|(_, n)| n).sum::<u64>()
    }

    /// So many pages of an arena can be evicted now.
    pub(super) fn note_written(&mut self, arena: &Arena, nr_pages: u32) {
        let theirs = |job: &&mut Job| arena.account().is_within(&job.account);
        let jobs = self.jobs.iter_mut().filter(theirs);
        jobs.for_each(|job| job.written += u64::from(nr_pages));
    }

    /// A reclaim call came back: is it enough, or is another wanted?
    fn call_ended(&mut self, job: &mut Job, reclaimed: u64) -> bool {
        let room = job.has_room();
        let heaps = !room && reclaimed == 0 && self.waits_for_heaps();
        let over = match &mut job.purpose {
            Purpose::Requested(reply) => {
                // The caller may have given up; the pages are reclaimed all the same.
                let _ = reply.send(reclaimed);
                return true;
            }
            Purpose::Background => {
                reclaimed == 0 && !heaps || job.account.usage() <= job.account.background_until()
            }
            // A write that ends may make room: that is no fruitless call.
            Purpose::Direct(_) | Purpose::Lowered(..) if heaps => {
                job.asleep_until = self.world.clock.now() + 100_000;
                false
            }
            Purpose::Direct(_) | Purpose::Lowered(..) if !room && self.world.writer.is_busy() => {
                job.asleep_until = self.world.clock.now() + 10_000_000;
                false
            }
            Purpose::Direct(retry) => match retry.next(reclaimed, room) {
                RetryStep::Served => true,
                RetryStep::Reclaim => false,
                RetryStep::Oom => {
                    self.out_of_memory(&job.account);
                    true
                }
            },
            Purpose::Lowered(retry, limit, reply) => match retry.next(reclaimed, room) {
                RetryStep::Reclaim => false,
                step => {
                    if step == RetryStep::Oom && *limit == Setting::Max {
                        self.out_of_memory(&job.account);
                    }
                    // The caller may have given up; the pages that could go are gone.
                    let _ = reply.send(());
                    return true;
                }
            },
        };
        if over {
            job.account.wanted.store(false, Ordering::Release);
        } else {
            self.mark_all_ran();
            job.reclaim = call_for(&job.account, &job.purpose);
        }
        over
    }

    /// Why nothing more can go. Not all that is in use can.
    fn why_no_room(&self, account: &Account) -> String {
        if account.swap_room() < PAGE as u64 {
            return "memory.swap.max is reached".into();
        }
        match self.world.swap.is_full() {
            true => self.world.swap.why_full(),
            false => "nothing of it can be evicted".into(),
        }
    }

    /// Nothing can be reclaimed: faults that wait below this group fail.
    fn out_of_memory(&self, account: &Arc<Account>) {
        if account.note(Happened::Oom) == 0 {
            raw::say(&format!(
                "{}: out of memory: {} bytes of memory.max {} are in use, and {}; \
                 pages that find no room are SIGBUS (said once)",
                account.path,
                account.usage(),
                account.get(Setting::Max),
                self.why_no_room(account),
            ));
        }
        for attached in self.world.live() {
            let arena = &attached.arena;
            if arena.account().is_within(account) {
                arena.fail_waiting();
            }
        }
    }

    /// Lets faults go on whose groups have room again.
    pub(super) fn feed_starved(&mut self) {
        for attached in self.world.live() {
            let arena = &attached.arena;
            let has_room = || arena.account().ancestry().all(|a| a.room() >= PAGE_COST);
            if arena.waits_for_room() && has_room() {
                arena.retry_waiting();
            }
        }
    }
}

#[cfg(test)]
mod tests;
