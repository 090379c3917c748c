//! memcached filled over and over by memtier (experiments E12): a cyclic scan with many heads.
//!
//! Every connection owns a range of the keys and sets them in order, once a pass. Only sets, so
//! that memcached's own LRU is first in, first out: the item that leaves for set number `n` is
//! that of set `n - capacity`, and its chunk is what the new item gets. With fewer chunks than
//! keys no key is still there when its turn comes again. Connections are served at one rate, which
//! makes the number of a set among all sets a matter of arithmetic.
//!
//! A set writes its chunk, the heads of two hash chains (the new key's and the leaving one's) and
//! the item before it and the item after the leaving one on the LRU list.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{Layout, Op, RegionKind, RegionSpec, TaskId};
use crate::pages::{PAGE_BYTES, add_task};
use crate::rng::splitmix;
use crate::script::Script;
use crate::string_hash::{StringHash, access};

/// Bytes of a chunk, and chunks and pages of a slab.
const CHUNK: u64 = 1_184;
const SLAB_CHUNKS: u64 = 885;
const SLAB_PAGES: u64 = 256;
/// Bytes of a chain's head.
const HEAD_BYTES: u64 = 8;
const CLASSES: [&str; 2] = ["set", "ramp"];
const RAMP: u8 = 1;

/// Describes a memtier run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemcachedParams {
    /// Counts the keys of the store.
    pub keys: u64,
    /// Sets how many times every key is set.
    pub passes: u32,
    /// Counts the connections, each with a range of the keys.
    pub connections: u32,
    /// Counts the threads of the server.
    pub threads: u32,
    /// Sets the memory for items, MiB (`-m`).
    pub memory_mib: u32,
    /// Counts the chains of the hash table.
    pub chains: u64,
    /// Sets the CPU time of a set, ns.
    pub set_ns: u64,
    /// Names the group it runs in by its path; empty: the root.
    pub group: String,
}

impl Default for MemcachedParams {
    fn default() -> Self {
        Self {
            keys: 16_000_000,
            passes: 6,
            connections: 32,
            threads: 16,
            memory_mib: 16_384,
            chains: 1 << 24,
            set_ns: 20_000,
            group: "/memcached".to_owned(),
        }
    }
}

impl MemcachedParams {
    /// Returns the parameters with keys and memory multiplied; the connections stay.
    pub fn scaled(&self, scale: f64) -> Self {
        let times = |n: u64| ((n as f64 * scale).round() as u64).max(1);
        Self {
            keys: times(self.keys).max(u64::from(self.connections)),
            memory_mib: times(u64::from(self.memory_mib)) as u32,
            chains: times(self.chains),
            ..self.clone()
        }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("memcached.connections", self.connections, 1, 65_536)?;
        in_range("memcached.threads", self.threads, 1, self.connections)?;
        in_range("memcached.keys", self.keys, u64::from(self.connections), 1 << 40)?;
        in_range("memcached.passes", self.passes, 2, 1 << 20)?;
        in_range("memcached.memory_mib", self.memory_mib, 1, 1 << 22)?;
        in_range("memcached.chains", self.chains, 1, 1 << 38)?;
        Ok(())
    }

    fn chunks(&self) -> u64 {
        u64::from(self.memory_mib) * SLAB_CHUNKS
    }

    /// Keys of a connection; the last few of an uneven division are set by nobody.
    fn range(&self) -> u64 {
        self.keys / u64::from(self.connections)
    }

    /// First and last page of a chunk.
    fn chunk_pages(&self, chunk: u64) -> std::ops::RangeInclusive<u32> {
        let slab = chunk / SLAB_CHUNKS * SLAB_PAGES;
        let at = chunk % SLAB_CHUNKS * CHUNK;
        let page = |byte: u64| (slab + byte / PAGE_BYTES) as u32;
        page(at)..=page(at + CHUNK - 1)
    }

    /// Page of the chain that a key hangs in.
    fn chain_page(&self, key: u64) -> u32 {
        (splitmix(key) % self.chains * HEAD_BYTES / PAGE_BYTES) as u32
    }

    /// The key of set number `n` among all sets.
    fn key(&self, n: u64) -> u64 {
        let (connections, range) = (u64::from(self.connections), self.range());
        n % connections * range + n / connections % range
    }
}

/// Holds the state of a memtier run.
#[derive(Debug)]
pub struct Memcached {
    params: MemcachedParams,
    /// Sets done, by thread.
    done: Vec<u64>,
    hash: StringHash,
}

impl Memcached {
    /// Creates an empty server and clients that have not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &MemcachedParams) -> Result<Self, WorkloadError> {
        params.check()?;
        Ok(Self {
            done: vec![0; params.threads as usize],
            hash: StringHash::new(params.threads as usize),
            params: params.clone(),
        })
    }

    /// Connections that a thread serves: every so manieth.
    fn served(&self, t: TaskId) -> u64 {
        let (connections, threads) = (self.params.connections, self.params.threads);
        u64::from((connections - t).div_ceil(threads))
    }

    /// Number of the thread's next set among all sets.
    fn number(&self, t: TaskId) -> u64 {
        let (done, served) = (self.done[t as usize], self.served(t));
        let connection = u64::from(t) + done % served * u64::from(self.params.threads);
        done / served * u64::from(self.params.connections) + connection
    }

    fn set(&mut self, t: TaskId, n: u64, class: u8, out: &mut Vec<Op>) {
        let params = &self.params;
        let (key, chunks) = (params.key(n), params.chunks());
        self.hash.add(t, access(0, key, true));
        let write = |region| move |page| Op::Touch { region, page, write: true };
        out.push(Op::Compute { ns: params.set_ns });
        if let Some(leaving) = n.checked_sub(chunks) {
            out.push(write(1)(params.chain_page(params.key(leaving))));
            let after = (leaving + 1) % chunks;
            out.extend(params.chunk_pages(after).take(1).map(write(0)));
        }
        out.extend(params.chunk_pages(n % chunks).map(write(0)));
        if let Some(before) = n.checked_sub(1) {
            out.extend(params.chunk_pages(before % chunks).take(1).map(write(0)));
        }
        out.push(write(1)(params.chain_page(key)));
        out.push(Op::End { class });
    }
}

impl Script for Memcached {
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            classes: CLASSES.map(str::to_owned).to_vec(),
            phases: ["ramp", "run"].map(str::to_owned).to_vec(),
            ..Layout::default()
        };
        (0..self.params.threads).for_each(|_| add_task(&mut layout, 0, &self.params.group));
        let slabs = u64::from(self.params.memory_mib) * SLAB_PAGES;
        let table = (self.params.chains * HEAD_BYTES).div_ceil(PAGE_BYTES);
        let sizes = [slabs as u32, table as u32];
        layout.regions = sizes.map(|pages| RegionSpec::plain(0, RegionKind::Anon, pages)).to_vec();
        layout
    }

    /// The first pass fills the memory and is not measured.
    fn step(&mut self, t: TaskId, out: &mut Vec<Op>) {
        let pass = self.params.range() * self.served(t);
        let done = self.done[t as usize];
        if done == pass * u64::from(self.params.passes) {
            return out.push(Op::Done);
        }
        if done == pass {
            out.push(Op::Barrier { id: 0 });
            out.extend((t == 0).then_some(Op::Mark { phase: 1 }));
            out.extend([Op::Barrier { id: 1 }, Op::End { class: RAMP }]);
        }
        let class = if done < pass { RAMP } else { 0 };
        self.set(t, self.number(t), class, out);
        self.done[t as usize] += 1;
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> u64 {
        // Progress is reported in accesses, six a set.
        self.params.keys * u64::from(self.params.passes) * 6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Workload;
    use crate::script::Scripted;
    use crate::script::tests::{ends, strings};

    fn small() -> MemcachedParams {
        MemcachedParams::default().scaled(1.0 / 4096.0)
    }

    #[test]
    fn every_key_is_set_once_a_pass() {
        let params = small();
        let mut all: Vec<u64> = (0..params.range() * 32).map(|n| params.key(n)).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(params.key(0), params.key(params.range() * 32));
    }

    #[test]
    fn threads_number_all_sets_once() {
        let params = MemcachedParams { connections: 7, threads: 3, ..small() };
        let mut memcached = Memcached::new(&params).unwrap();
        let mut seen = Vec::new();
        for t in 0..3 {
            for _ in 0..memcached.served(t) * 5 {
                seen.push(memcached.number(t));
                memcached.done[t as usize] += 1;
            }
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..35));
    }

    #[test]
    fn chunks_lie_in_their_slab_and_may_span_pages() {
        let params = small();
        assert_eq!(params.chunk_pages(0), 0..=0);
        // Chunk 3 begins at byte 3,552 and ends at 4,735.
        assert_eq!(params.chunk_pages(3), 0..=1);
        assert_eq!(params.chunk_pages(SLAB_CHUNKS - 1), 255..=255);
        assert_eq!(params.chunk_pages(SLAB_CHUNKS), 256..=256);
    }

    #[test]
    fn all_but_the_first_pass_are_measured() {
        let params = small();
        let run = || {
            let mut workload = Scripted::new(Memcached::new(&params).unwrap());
            let tasks = strings(&mut workload);
            (tasks, workload.string_hash())
        };
        let ((tasks, hash), (_, again)) = (run(), run());
        let pass = (params.range() * 32) as usize;
        assert_eq!((ends(&tasks, 0), ends(&tasks, RAMP)), (5 * pass, pass + 16));
        assert_eq!(hash, again);
    }

    #[test]
    fn wrong_numbers_are_named() {
        let params = MemcachedParams { threads: 33, ..small() };
        let error = Memcached::new(&params).unwrap_err().to_string();
        assert_eq!(error, "memcached.threads = 33: must be from 1 to 32");
    }
}
