//! The flat policies by name.

use std::fmt;
use std::str::FromStr;

use super::optimal::Bypass;
use super::{Arc, Cache, Clock, Fifo, Lru, Random, S3Fifo, Sieve};

/// Names a flat replacement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Replaces the least recently used page.
    Lru,
    /// Replaces the page that came first.
    Fifo,
    /// Replaces by one reference bit.
    Clock,
    /// Runs SIEVE.
    Sieve,
    /// Runs S3-FIFO of the SOSP 23 paper.
    S3Fifo,
    /// Runs ARC with a fixed-point target.
    Arc,
    /// Runs Belady's optimum: missing pages must be inserted.
    Min,
    /// Runs the optimum that may refuse a missing page.
    MinBypass,
    /// Replaces a random page.
    Random,
}

impl Policy {
    /// Lists all policies, in the order in which users see them.
    pub const ALL: [Policy; 9] = [
        Policy::Lru,
        Policy::Fifo,
        Policy::Clock,
        Policy::Sieve,
        Policy::S3Fifo,
        Policy::Arc,
        Policy::Min,
        Policy::MinBypass,
        Policy::Random,
    ];

    /// Returns the name in arguments and results.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Lru => "lru",
            Policy::Fifo => "fifo",
            Policy::Clock => "clock",
            Policy::Sieve => "sieve",
            Policy::S3Fifo => "s3fifo",
            Policy::Arc => "arc",
            Policy::Min => "min",
            Policy::MinBypass => "min-bypass",
            Policy::Random => "random",
        }
    }

    /// Describes the policy in one line, for lists.
    pub fn about(self) -> &'static str {
        match self {
            Policy::Lru => "least recently used",
            Policy::Fifo => "first in, first out",
            Policy::Clock => "one reference bit",
            Policy::Sieve => "SIEVE",
            Policy::S3Fifo => "S3-FIFO",
            Policy::Arc => "ARC",
            Policy::Min => "Belady's optimum",
            Policy::MinBypass => "the optimum that may refuse a page",
            Policy::Random => "random replacement",
        }
    }

    /// Tells how an optimum treats missing pages; nothing for policies that know only the past.
    pub fn bypass(self) -> Option<Bypass> {
        match self {
            Policy::Min => Some(Bypass::Forbidden),
            Policy::MinBypass => Some(Bypass::Allowed),
            _ => None,
        }
    }

    /// Creates an empty cache of `capacity` pages (at least one); nothing for the optima. `seed`
    /// settles the draws of [`Policy::Random`].
    pub fn cache(self, capacity: u64, seed: u64) -> Option<Box<dyn Cache>> {
        Some(match self {
            Policy::Lru => Box::new(Lru::new(capacity)),
            Policy::Fifo => Box::new(Fifo::new(capacity)),
            Policy::Clock => Box::new(Clock::new(capacity)),
            Policy::Sieve => Box::new(Sieve::new(capacity)),
            Policy::S3Fifo => Box::new(S3Fifo::new(capacity)),
            Policy::Arc => Box::new(Arc::new(capacity)),
            Policy::Random => Box::new(Random::new(capacity, seed)),
            Policy::Min | Policy::MinBypass => return None,
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let mut all = Policy::ALL.into_iter();
        all.find(|policy| policy.name() == name).ok_or_else(|| UnknownPolicy::new(name, &[]))
    }
}

/// Reports that no policy has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown policy \"{name}\" (known: {known})")]
pub struct UnknownPolicy {
    name: String,
    known: String,
}

impl UnknownPolicy {
    /// Reports an unknown name; `others` are names the caller knows besides the flat policies.
    pub fn new(name: &str, others: &[&str]) -> Self {
        let flat = Policy::ALL.iter().map(|policy| policy.name());
        let known: Vec<&str> = flat.chain(others.iter().copied()).collect();
        UnknownPolicy { name: name.to_string(), known: known.join(", ") }
    }
}
