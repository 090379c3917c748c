//! A pager: one budget, one policy thread, a tree of groups.

use std::sync::Arc;

use mglru::{Config, MemcgId};

use crate::account::{Account, NO_LIMIT, Setting};
use crate::engine::FaultEngine;
use crate::error::PagerError;
use crate::events::EventSender;
use crate::group::Group;
use crate::policy;
use crate::running::{LEAST_MAX, Running};
use crate::swap::{Swap, SwapOptions};

/// Holds the options of a pager.
#[derive(Clone, Debug)]
pub struct PagerOptions {
    memory_max: u64,
    memory_high: u64,
    swap: SwapOptions,
    policy: Config,
    faults: FaultEngine,
    second_chance: bool,
    kept_bits: bool,
}

impl Default for PagerOptions {
    fn default() -> Self {
        let (policy, swap) = (Config::default(), SwapOptions::default());
        let (faults, second_chance, kept_bits) = (FaultEngine::default(), false, true);
        let (memory_max, memory_high) = (NO_LIMIT, NO_LIMIT);
        Self { memory_max, memory_high, swap, policy, faults, second_chance, kept_bits }
    }
}

impl PagerOptions {
    /// Creates options with no limits, no swap and multi-gen LRU.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the budget, bytes, of resident pages, compressed pages and the pager's own tables and
    /// buffers together. Faults stop short of it; packing pages may exceed it by a chunk or two of
    /// the pool for a moment.
    pub fn memory_max(mut self, bytes: u64) -> Self {
        self.memory_max = bytes;
        self
    }

    /// Sets the size from which on pages are reclaimed in the background, bytes.
    pub fn memory_high(mut self, bytes: u64) -> Self {
        self.memory_high = bytes;
        self
    }

    /// Sets where anonymous pages go. Without swap they stay.
    pub fn swap(mut self, swap: SwapOptions) -> Self {
        self.swap = swap;
        self
    }

    /// Sets the rules of reclaim.
    pub fn policy(mut self, config: Config) -> Self {
        self.policy = config;
        self
    }

    /// Selects the engine that serves faults.
    pub fn fault_engine(mut self, engine: FaultEngine) -> Self {
        self.faults = engine;
        self
    }

    /// Passes a victim that was used since it was last met: with the control `fifo` as policy this
    /// is CLOCK, to compare with.
    pub fn second_chance(mut self, second_chance: bool) -> Self {
        self.second_chance = second_chance;
        self
    }

    /// Sets whether the accessed bits of a heap are those that the kernel keeps (Linux 7.3) or, to
    /// compare with, what older kernels tell.
    pub fn kept_bits(mut self, kept_bits: bool) -> Self {
        self.kept_bits = kept_bits;
        self
    }

    /// Starts the pager.
    ///
    /// # Errors
    /// The budget is below 4 MiB, the kernel lacks what is needed (see [`crate::probe`]), or the
    /// swap file cannot be made.
    pub fn open(self) -> Result<Pager, PagerError> {
        if self.memory_max < LEAST_MAX {
            let takes = format!("{LEAST_MAX} bytes and more");
            return Err(PagerError::OutOfRange { what: "memory.max", got: self.memory_max, takes });
        }
        let root = Arc::new(Account::new("/".into(), MemcgId::ROOT, None));
        root.set(Setting::Max, self.memory_max);
        root.set(Setting::High, self.memory_high);
        let swap = Arc::new(Swap::new(&self.swap)?);
        let started = policy::start(self.policy, root.clone(), swap, self.second_chance)?;
        let running = Running::new(started, root, self.faults, self.kept_bits);
        Ok(Pager { running: Arc::new(running) })
    }
}

/// Gives access to a pager. Clones share it; it ends when they and all its mappings are gone.
#[derive(Clone)]
pub struct Pager {
    running: Arc<Running>,
}

impl Pager {
    /// Returns the group above all others.
    pub fn root(&self) -> Group {
        Group::new(self.running.clone(), self.running.root().clone())
    }

    /// Finds the group of a path, such as `/` or `/web/cache`.
    ///
    /// # Errors
    /// There is none.
    pub fn group(&self, path: &str) -> Result<Group, PagerError> {
        let wanted = path.to_string();
        let found = self.running.shared().call(move |policy| policy.group(&wanted))?;
        let account = found.ok_or_else(|| PagerError::NoGroup(path.into()))?;
        Ok(Group::new(self.running.clone(), account))
    }

    /// Writes the trace events of reclaim to a ring from now on. The ring is paid for from the
    /// budget.
    ///
    /// # Errors
    /// The policy thread is gone.
    pub fn trace_events(&self, sender: EventSender) -> Result<(), PagerError> {
        self.running.shared().call(move |policy| policy.trace_events(sender))
    }

    /// Asserts the invariants of the policy core.
    ///
    /// # Errors
    /// The policy thread is gone: they did not hold.
    pub fn check(&self) -> Result<(), PagerError> {
        self.running.shared().call(policy::Policy::check)
    }
}
