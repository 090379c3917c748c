//! Groups: what of the budget belongs to whom, with cgroup v2's names and meanings.

mod map;
mod patience;

use std::sync::{Arc, mpsc};

use mglru::{Counter, MemcgId};

use crate::account::{Account, Happened, NO_LIMIT, Setting};
use crate::arena::{Backing, Place, Plan};
use crate::error::PagerError;
use crate::faults::Kind;
use crate::mapping::Mapped;
use crate::policy::report::GroupReport;
use crate::policy::{Policy, Served, Wanted};
use crate::running::{LEAST_MAX, Running};
use crate::service::{self, Service};
use crate::sys::{PAGE, clock};
pub use map::Map;
use patience::{PATIENCE, wait_while_it_falls};

/// Events by the names that tools know.
const EVENTS: [(&str, Happened); 10] = [
    ("low", Happened::Low),
    ("high", Happened::High),
    ("max", Happened::Max),
    ("oom", Happened::Oom),
    ("swap_fail", Happened::SwapFail),
    ("zswpout", Happened::Zswpout),
    ("pswpout", Happened::Pswpout),
    ("pswpin", Happened::Pswpin),
    ("swpout_zero", Happened::SwpoutZero),
    ("faults_stuck", Happened::Stuck),
];

/// More bytes than a mapping takes from the start beside its tables.
const MAPPING: u64 = 1 << 20;
/// Tables take less than this part of what they know.
const TABLES: u64 = 256;
/// How often room is made for a mapping: faults may take it.
const TRIES: u32 = 8;

/// Names a limit or protection of a group, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Sets `memory.min`: the group is never reclaimed below it.
    Min,
    /// Sets `memory.low`: the group is not reclaimed below it while others have more.
    Low,
    /// Sets `memory.high`: the group is reclaimed down to it in the background.
    High,
    /// Sets `memory.max`, which is never exceeded.
    Max,
    /// Sets `memory.swap.max`.
    SwapMax,
}

impl Limit {
    fn setting(self) -> Setting {
        match self {
            Self::Min => Setting::Min,
            Self::Low => Setting::Low,
            Self::High => Setting::High,
            Self::Max => Setting::Max,
            Self::SwapMax => Setting::SwapMax,
        }
    }
}

/// Holds `memory.stat`, `memory.events` and sizes of a group at one moment, under their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStat(Vec<(&'static str, u64)>);

impl GroupStat {
    /// Returns the value of a key, such as `memory.current`, `workingset_refault_file` or `oom`.
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// Lists all keys and values. Sizes are bytes, as in cgroup v2; events are counts of pages.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// Gives access to a group of a pager.
#[derive(Clone)]
pub struct Group {
    running: Arc<Running>,
    account: Arc<Account>,
}

impl Group {
    pub(crate) fn new(running: Arc<Running>, account: Arc<Account>) -> Self {
        Self { running, account }
    }

    /// Returns its path, `/` for the root.
    pub fn path(&self) -> &str {
        &self.account.path
    }

    /// Creates a group below this one.
    ///
    /// # Errors
    /// The name is empty, has a slash or a control character, or is taken.
    pub fn create(&self, name: &str) -> Result<Self, PagerError> {
        let parent = self.account.clone();
        let path = format!("{}/{name}", parent.path.trim_end_matches('/'));
        if name.is_empty() || [".", ".."].contains(&name) || name.contains(is_no_letter) {
            return Err(PagerError::GroupName(path));
        }
        let account = self.running.shared().call(move |policy| match policy.group(&path) {
            Some(_) => Err(PagerError::GroupName(path)),
            None => policy.add_group(&parent, path),
        })??;
        Ok(Self::new(self.running.clone(), account))
    }

    /// Lists the groups directly below this one.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn children(&self) -> Result<Vec<Self>, PagerError> {
        let accounts = self.ask(|policy, memcg| policy.children(memcg))?;
        Ok(accounts.into_iter().map(|account| Self::new(self.running.clone(), account)).collect())
    }

    /// Takes the group away.
    ///
    /// # Errors
    /// It is the root, or has groups or mappings.
    pub fn remove(&self) -> Result<(), PagerError> {
        self.ask(|policy, memcg| policy.remove_group(memcg))?
    }

    /// Asks the policy thread something about this group.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Policy, MemcgId) -> T + Send + 'static,
    ) -> Result<T, PagerError> {
        let memcg = self.account.memcg;
        self.running.shared().call(move |policy| what(policy, memcg))
    }

    /// Returns a limit, bytes; `None` is `max`.
    pub fn limit(&self, limit: Limit) -> Option<u64> {
        Some(self.account.get(limit.setting())).filter(|&bytes| bytes != NO_LIMIT)
    }

    /// Sets a limit; `None` is `max`. A lower `memory.max` reclaims in the background; faults wait
    /// until usage is below it.
    pub fn set_limit(&self, limit: Limit, bytes: Option<u64>) {
        self.account.set(limit.setting(), bytes.unwrap_or(NO_LIMIT));
        self.account.wanted.store(true, std::sync::atomic::Ordering::Release);
        self.running.shared().wake.summon();
    }

    /// As [`Self::set_limit`], for a caller that is not trusted: the root keeps room for the pager.
    /// As the kernel does for a write to the file, reclaims what is over the limit before it
    /// returns.
    pub(crate) fn change_limit(&self, limit: Limit, bytes: Option<u64>) -> Result<(), PagerError> {
        let root = self.account.parent().is_none();
        if let Some(got) = bytes.filter(|&n| root && limit == Limit::Max && n < LEAST_MAX) {
            let takes = format!("{LEAST_MAX} bytes and more");
            return Err(PagerError::OutOfRange { what: "memory.max", got, takes });
        }
        self.set_limit(limit, bytes);
        let lowered = matches!(limit, Limit::Max | Limit::High);
        if lowered && bytes.is_some_and(|bytes| self.current() > bytes) {
            self.wait_for(limit.setting())?;
        }
        Ok(())
    }

    /// Returns when what is in use fits a limit, or no more can go, or long nothing went.
    fn wait_for(&self, limit: Setting) -> Result<(), PagerError> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.ask(move |policy, memcg| policy.request_lowered(memcg, limit, reply))?;
        wait_while_it_falls(&answer, PATIENCE, || self.current())
    }

    /// Returns `memory.swappiness`.
    pub fn swappiness(&self) -> u8 {
        self.account.swappiness()
    }

    /// Sets `memory.swappiness`, 0 to 200.
    ///
    /// # Errors
    /// More than 200.
    pub fn set_swappiness(&self, swappiness: u8) -> Result<(), PagerError> {
        if swappiness > 200 {
            let (got, takes) = (swappiness.into(), "0 to 200".into());
            return Err(PagerError::OutOfRange { what: "memory.swappiness", got, takes });
        }
        self.account.set_swappiness(swappiness);
        Ok(())
    }

    /// Returns `memory.current`, bytes.
    pub fn current(&self) -> u64 {
        self.account.usage()
    }

    /// Returns `memory.peak`, bytes.
    pub fn peak(&self) -> u64 {
        self.account.peak()
    }

    /// Returns `memory.swap.current`, bytes.
    pub fn swap_current(&self) -> u64 {
        self.account.swap()
    }

    /// Returns `memory.pressure`: how long threads waited for room or for pages that should have
    /// stayed, this group's and those below it.
    pub fn pressure(&self) -> String {
        self.account.pressure.text(clock::monotonic())
    }

    /// Reclaims as `memory.reclaim` does: evicts up to `bytes`, and returns how many it evicted.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn reclaim(&self, bytes: u64) -> Result<u64, PagerError> {
        self.reclaim_with(bytes, None)
    }

    pub(crate) fn reclaim_with(
        &self,
        bytes: u64,
        swappiness: Option<u8>,
    ) -> Result<u64, PagerError> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.ask(move |policy, memcg| policy.request_reclaim(memcg, bytes, swappiness, reply))?;
        answer.recv().map(|pages| pages * PAGE as u64).map_err(|_| PagerError::Stopped)
    }

    /// Returns its generations, in the layout of the kernel's lru_gen file.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn lru_gen(&self) -> Result<String, PagerError> {
        self.ask(|policy, memcg| policy.lru_gen(memcg))
    }

    /// Makes a new generation: walks all mappings of the group and takes their accessed bits.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn age(&self) -> Result<bool, PagerError> {
        self.ask(|policy, memcg| policy.age(memcg))
    }

    /// Reads what the policy knows of it and of all below it.
    pub(crate) fn report(&self) -> Result<GroupReport, PagerError> {
        self.ask(|policy, memcg| policy.report(memcg))
    }

    /// Returns all counters, groups below included.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn stat(&self) -> Result<GroupStat, PagerError> {
        let report = self.report()?;
        let (account, page, sizes) = (&self.account, PAGE as u64, report.sizes);
        let counter = |counter: Counter| report.counters[counter];
        let mut stat = vec![
            ("memory.current", account.usage()),
            ("memory.peak", account.peak()),
            ("memory.swap.current", account.swap()),
            ("anon", (sizes.inactive_anon + sizes.active_anon) * page),
            ("file", (sizes.inactive_file + sizes.active_file) * page),
            ("inactive_anon", sizes.inactive_anon * page),
            ("active_anon", sizes.active_anon * page),
            ("inactive_file", sizes.inactive_file * page),
            ("active_file", sizes.active_file * page),
            ("unevictable", sizes.unevictable * page),
            ("file_dirty", report.file_dirty * page),
            ("file_writeback", report.file_writeback * page),
            ("pgfault", Kind::ALL.iter().map(|&kind| report.count(kind)).sum()),
            ("pgmajfault", report.count(Kind::Major) + report.count(Kind::Zswap)),
            ("zswpin", report.count(Kind::Zswap)),
            ("pgscan", counter(Counter::PgscanAnon) + counter(Counter::PgscanFile)),
            ("pgsteal", counter(Counter::PgstealAnon) + counter(Counter::PgstealFile)),
        ];
        stat.extend(EVENTS.map(|(name, what)| (name, report.event(what))));
        stat.extend(Counter::ALL.iter().map(|&c| (c.name(), report.counters[c])));
        Ok(GroupStat(stat))
    }

    pub(crate) fn map_backing(&self, len: usize, backing: Backing) -> Result<Mapped, PagerError> {
        self.map_arena(len, len, backing, Place::anywhere())
    }

    fn map_arena(
        &self,
        len: usize,
        held: usize,
        backing: Backing,
        place: Place,
    ) -> Result<Mapped, PagerError> {
        Ok(Mapped::new(self.serve(len, held, backing, place)?, len))
    }

    /// Creates an arena of `len` bytes, of which `held` may have content from the start, and
    /// serves it.
    pub(crate) fn serve(
        &self,
        len: usize,
        held: usize,
        backing: Backing,
        place: Place,
    ) -> Result<Service, PagerError> {
        let nr_pages = u32::try_from(len.div_ceil(PAGE)).ok().filter(|&n| n > 0 && n < u32::MAX);
        let Some(nr_pages) = nr_pages else {
            let takes = "1 byte to 16 TiB".into();
            return Err(PagerError::OutOfRange { what: "length", got: len as u64, takes });
        };
        let nr_held = held.div_ceil(PAGE).min(nr_pages as usize) as u32;
        let plan = Plan { nr_pages, nr_held, backing, place };
        let wanted = service::wanted(&self.running, plan);
        let engine = wanted.engine.clone();
        // A group that is full makes room for what a mapping takes from the start.
        let room = MAPPING + held as u64 / TABLES;
        let ends = self.attach(wanted, room)?;
        Service::start(&self.running, ends, engine)
    }

    /// Has the policy thread know an arena. Its owner's and its handlers' ends.
    fn attach(&self, wanted: Wanted, room: u64) -> Result<Served, PagerError> {
        let mut tries = if room < self.account.get(Setting::Max) / 2 { TRIES } else { 0 };
        loop {
            let wanted = wanted.clone();
            match self.ask(move |policy, memcg| policy.attach(wanted, memcg))? {
                Err(PagerError::NoRoom(_)) if tries > 0 && self.reclaim(room)? > 0 => tries -= 1,
                done => return done,
            }
        }
    }
}

/// Not for the name of a group.
fn is_no_letter(c: char) -> bool {
    c == '/' || c.is_control()
}

fn usize_of(len: u64) -> Result<usize, PagerError> {
    let takes = || "the address space".to_string();
    usize::try_from(len).map_err(|_| PagerError::OutOfRange {
        what: "length",
        got: len,
        takes: takes(),
    })
}
