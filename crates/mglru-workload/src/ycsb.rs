//! YCSB's core workloads A to F: which record each thread asks for, and what it does with it.
//!
//! Every thread draws from a stream of its own and numbers its inserts for itself (thread `t` of
//! `T` inserts records `N + t`, `N + t + T`, …), so that its requests do not depend on how far the
//! other threads are; "the last record" of a thread is estimated from its own inserts.

pub mod store;

use serde::Deserialize;

use crate::rng::Rng;
use crate::scrambled::{Latest, Scrambled};

/// Records a scan of workload E reads at most.
const MAX_SCAN: u64 = 100;
/// YCSB reserves room for twice the inserts it expects.
const INSERT_ROOM: u64 = 2;

/// Names a core workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// Mixes half reads, half updates.
    A,
    /// Mixes 95 % reads, 5 % updates.
    B,
    /// Does reads only.
    C,
    /// Mixes 95 % reads of the latest records, 5 % inserts.
    D,
    /// Mixes 95 % scans, 5 % inserts.
    E,
    /// Mixes half reads, half read-modify-writes.
    F,
}

/// Names an action on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads the record.
    Read,
    /// Overwrites a field of the record.
    Update,
    /// Adds the record.
    Insert,
    /// Reads the record and those after it.
    Scan,
    /// Reads the record, then overwrites a field.
    ReadModifyWrite,
}

/// Describes one request of a client thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names the action.
    pub action: Action,
    /// Numbers the record, in the order of loading.
    pub record: u64,
    /// Counts the records concerned: more than 1 for scans only.
    pub records: u64,
}

impl Action {
    /// Lists all actions, in the order of [`Action::class`].
    pub const ALL: [Self; 5] =
        [Self::Read, Self::Update, Self::Insert, Self::Scan, Self::ReadModifyWrite];

    /// Returns the number of the action among the classes of operations.
    pub fn class(self) -> u8 {
        self as u8
    }

    /// Returns the name of the action.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }
}

impl Mix {
    /// The more frequent action, its share in percent, and the other action.
    fn shares(self) -> (Action, u64, Action) {
        match self {
            Self::A => (Action::Read, 50, Action::Update),
            Self::B => (Action::Read, 95, Action::Update),
            Self::C => (Action::Read, 100, Action::Update),
            Self::D => (Action::Read, 95, Action::Insert),
            Self::E => (Action::Scan, 95, Action::Insert),
            Self::F => (Action::Read, 50, Action::ReadModifyWrite),
        }
    }

    /// Tells whether records are added.
    pub fn inserts(self) -> bool {
        matches!(self, Self::D | Self::E)
    }
}

/// Holds the state that all threads of a run share.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    /// Names the workload.
    pub mix: Mix,
    /// Counts the records loaded.
    pub records: u64,
    /// Counts the operations of all threads together.
    pub operations: u64,
    /// Counts the client threads.
    pub threads: u32,
}

impl Population {
    /// Counts the operations of thread `thread`: as equal shares as whole numbers allow.
    pub fn share(&self, thread: u32) -> u64 {
        share(self.operations, self.threads, thread)
    }

    /// Counts the records that can exist at the end, if every single operation inserts one.
    pub fn capacity(&self) -> u64 {
        if !self.mix.inserts() {
            return self.records;
        }
        let threads = u64::from(self.threads);
        self.records + self.operations.div_ceil(threads) * threads
    }
}

/// Returns the part of `total` for number `index` of `parts`; the first ones get the remainder.
pub fn share(total: u64, parts: u32, index: u32) -> u64 {
    let parts = u64::from(parts);
    total / parts + u64::from(u64::from(index) < total % parts)
}

#[derive(Clone, Debug)]
enum Choice {
    Scrambled(Scrambled),
    Latest(Latest),
}

/// Draws the requests of one client thread.
#[derive(Clone, Debug)]
pub struct Client {
    mix: Mix,
    rng: Rng,
    choice: Choice,
    threads: u64,
    /// The last record this thread believes in, and the next it inserts.
    last: u64,
    insert: u64,
}

impl Client {
    /// Creates thread `thread` of a population; `seed` gives every thread a stream of its own.
    pub fn new(population: &Population, seed: u64, thread: u32) -> Self {
        let Population { mix, records, operations, threads } = *population;
        let inserts = if mix.inserts() { operations / 20 } else { 0 };
        let choice = match mix {
            Mix::D => Choice::Latest(Latest::new(records)),
            _ => Choice::Scrambled(Scrambled::new(records, inserts * INSERT_ROOM)),
        };
        Self {
            mix,
            rng: Rng::new(seed, u64::from(thread)),
            choice,
            threads: u64::from(threads),
            last: records - 1,
            insert: records + u64::from(thread),
        }
    }

    /// Draws the thread's next request.
    pub fn request(&mut self) -> Request {
        let (frequent, percent, other) = self.mix.shares();
        let action = match percent {
            100 => frequent,
            _ if self.rng.below(100) < percent => frequent,
            _ => other,
        };
        let record = match action {
            Action::Insert => self.insert_record(),
            _ => self.choose(),
        };
        let records = match action {
            Action::Scan => 1 + self.rng.below(MAX_SCAN),
            _ => 1,
        };
        Request { action, record, records }
    }

    fn choose(&mut self) -> u64 {
        match &mut self.choice {
            Choice::Scrambled(scrambled) => scrambled.draw(&mut self.rng, self.last),
            Choice::Latest(latest) => latest.draw(&mut self.rng, self.last),
        }
    }

    /// The others are believed to have inserted as many as this thread.
    fn insert_record(&mut self) -> u64 {
        let record = self.insert;
        self.insert += self.threads;
        self.last = record;
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn population(mix: Mix) -> Population {
        Population { mix, records: 10_000, operations: 40_000, threads: 4 }
    }

    fn requests(mix: Mix, thread: u32) -> Vec<Request> {
        let mut client = Client::new(&population(mix), 1, thread);
        (0..population(mix).share(thread)).map(|_| client.request()).collect()
    }

    #[test]
    fn shares_are_the_published_ones() {
        let count = |mix, action| {
            requests(mix, 0).iter().filter(|request| request.action == action).count()
        };
        for (mix, action, expected) in [
            (Mix::A, Action::Update, 5000),
            (Mix::B, Action::Update, 500),
            (Mix::C, Action::Read, 10_000),
            (Mix::D, Action::Insert, 500),
            (Mix::E, Action::Scan, 9500),
            (Mix::F, Action::ReadModifyWrite, 5000),
        ] {
            assert!(count(mix, action).abs_diff(expected) <= 200, "{mix:?}");
        }
    }

    #[test]
    fn threads_insert_different_records_in_range() {
        let inserted =
            |thread| requests(Mix::D, thread).into_iter().filter(|r| r.action == Action::Insert);
        let mut all: Vec<u64> = (0..4).flat_map(inserted).map(|r| r.record).collect();
        let capacity = population(Mix::D).capacity();
        assert!(all.iter().all(|record| (10_000..capacity).contains(record)));
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn scans_are_of_1_to_100_records() {
        let lengths: Vec<u64> = requests(Mix::E, 1).iter().map(|r| r.records).collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&1), Some(&100)));
    }

    #[test]
    fn operations_are_shared_out_whole() {
        assert_eq!((0..32).map(|t| share(93_750, 32, t)).sum::<u64>(), 93_750);
        assert_eq!((share(7, 3, 0), share(7, 3, 2)), (3, 2));
    }
}
