//! A replacement policy from outside: it hears what happens to the pages of a group and names those
//! to evict, in the place of the LRU.
//!
//! Limits, the choice between groups and types, references of page tables, dirty pages and writes
//! stay the machine's: what the policy names is judged as reclaim judges a folio, and returns if it
//! was used meanwhile or cannot go.
//!
//! ```
//! use std::collections::VecDeque;
//! use std::sync::Arc;
//!
//! use mglru::Config;
//! use mglru_sim::custom::{CustomPolicy, Rules};
//! use mglru_sim::{MachineSpec, run};
//! use mglru_workload::WorkloadSpec;
//!
//! #[derive(Default)]
//! struct Fifo(VecDeque<u64>);
//!
//! impl CustomPolicy for Fifo {
//!     fn inserted(&mut self, page: u64, _accessed: bool) -> Result<(), String> {
//!         self.0.push_back(page);
//!         Ok(())
//!     }
//!
//!     fn removed(&mut self, page: u64) -> Result<(), String> {
//!         self.0.retain(|&other| other != page);
//!         Ok(())
//!     }
//!
//!     fn victims(&mut self, count: u64, out: &mut Vec<u64>) -> Result<(), String> {
//!         let n = self.0.len().min(count as usize);
//!         out.extend(self.0.drain(..n));
//!         Ok(())
//!     }
//! }
//!
//! let machine = "memory = \"64MiB\"\ngroups.\"/touch\".\"memory.max\" = \"4MiB\"";
//! let machine: MachineSpec = toml::from_str(machine)?;
//! let load = "kind = \"touch\"\nengine = \"pread\"\npages = 2048\noperations = 9000";
//! let load: WorkloadSpec = toml::from_str(load)?;
//!
//! let make = Arc::new(|_list| Ok(Box::new(Fifo::default()) as Box<dyn CustomPolicy>));
//! let rules = Rules::custom(Config::variant("classic")?, make);
//! let outcome = run(&machine, rules, load.build(1, 1.0)?, 1, None)?;
//! assert!(outcome.counter("pgsteal_direct") > Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod lists;

use std::fmt;
use std::sync::Arc;

use mglru::Config;
use mglru::config::Algorithm;
pub use mglru::host::ListId;

pub(crate) use lists::Lists;

/// Chooses which page of one list goes: one of these for each group, node and type of memory.
///
/// A page is a number that stays the same when the page comes back; a large folio is its first
/// page. An error ends the run with its text.
pub trait CustomPolicy: Send {
    /// Takes a page that is new on the list. `accessed`: the request that brought it reads or
    /// writes it; not so what is only read ahead.
    ///
    /// # Errors
    /// Ends the run.
    fn inserted(&mut self, page: u64, accessed: bool) -> Result<(), String>;

    /// Learns that a page was accessed through a descriptor. What page tables know shows in
    /// [`Self::returned`].
    ///
    /// # Errors
    /// Ends the run.
    fn accessed(&mut self, page: u64) -> Result<(), String> {
        let _ = page;
        Ok(())
    }

    /// Forgets a page that left the list for another reason than eviction: its file was cut, its
    /// memory unmapped or locked.
    ///
    /// # Errors
    /// Ends the run.
    fn removed(&mut self, page: u64) -> Result<(), String>;

    /// Takes back a page that it named and that could not go. `accessed`: it was used through a
    /// mapping since it was looked at last; otherwise it is dirty, locked or pinned.
    ///
    /// # Errors
    /// Ends the run.
    fn returned(&mut self, page: u64, accessed: bool) -> Result<(), String> {
        self.inserted(page, accessed)
    }

    /// Learns that a page that it holds should go soon: it was dirty when it was named and has been
    /// written since, or its program says that it is cold.
    ///
    /// # Errors
    /// Ends the run.
    fn cold(&mut self, page: u64) -> Result<(), String> {
        self.removed(page)?;
        self.inserted(page, false)
    }

    /// Learns that a page that it named is gone.
    ///
    /// # Errors
    /// Ends the run.
    fn evicted(&mut self, page: u64) -> Result<(), String> {
        let _ = page;
        Ok(())
    }

    /// Names pages of the list to evict, the first one first, and holds them no more:
    /// [`Self::returned`] or [`Self::evicted`] follows. `count` counts single pages; of large
    /// folios those beyond it return. The list is not empty, and one page at least is to be named.
    ///
    /// # Errors
    /// Ends the run.
    fn victims(&mut self, count: u64, out: &mut Vec<u64>) -> Result<(), String>;
}

/// Makes the policy of one list.
pub type PolicyFactory = Arc<dyn Fn(ListId) -> Result<Box<dyn CustomPolicy>, String> + Send + Sync>;

/// Holds the rules of a run: those of the core, and a policy from outside.
#[derive(Clone)]
pub struct Rules {
    /// Holds the rules of the core.
    pub config: Config,
    /// Makes the policies, where they come from outside.
    pub policy: Option<PolicyFactory>,
}

impl Rules {
    /// Lets a policy from outside choose, under the other rules of `config`.
    pub fn custom(config: Config, policy: PolicyFactory) -> Self {
        Self { config: Config { lru: Algorithm::Custom, ..config }, policy: Some(policy) }
    }
}

impl From<Config> for Rules {
    fn from(config: Config) -> Self {
        Self { config, policy: None }
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let custom = self.policy.is_some();
        f.debug_struct("Rules").field("config", &self.config).field("custom", &custom).finish()
    }
}
