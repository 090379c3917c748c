//! Browsers and servers in many equal groups (experiments E2): how much of one machine does each
//! get?
//!
//! A worker is a server and the browser that asks it, both on one node; a group has a worker on
//! each node. A request picks one of the server's buffers and writes through all of it, touches
//! most of the browser's own memory, and fills an array that is given back some requests later, as
//! a garbage collector would. Everything is anonymous memory; the buffers' pages stay all zero.
//!
//! Workers take requests from one budget and stop when it is used up, so that a worker's share of
//! the budget is its share of the machine. A fast worker draws a longer string than a slow one: the
//! string's hash covers the requests that every worker gets to.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{Content, GroupSpec, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec};
use crate::rng::Rng;
use crate::script::Script;
use crate::string_hash::{StringHash, access};

/// Arrays that wait for the garbage collector.
const ARRAYS: u64 = 4;
/// Share of the browser's memory that a request touches, percent.
const HOT_PERCENT: u64 = 60;
/// Regions of a worker: buffers, browser, arrays.
const REGIONS: u32 = 3;
/// The hash covers this part of a worker's even share of the requests.
const HASHED: u64 = 4;
const CLASSES: [&str; 2] = ["request", "setup"];
const SETUP: u8 = 1;

/// Describes equal workers on one machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChromeNodeParams {
    /// Counts the groups, named `group` and a number.
    pub groups: u32,
    /// Counts the workers of a group, each on a node of its own.
    pub nodes: u32,
    /// Counts the buffers of a server.
    pub buffers: u32,
    /// Counts the pages of a buffer.
    pub buffer_pages: u32,
    /// Counts the pages of a browser's own.
    pub browser_pages: u32,
    /// Counts the pages of the array a request fills.
    pub array_pages: u32,
    /// Counts the requests of all workers together.
    pub requests: u64,
    /// Sets the CPU time of a request, ns.
    pub request_ns: u64,
    /// Sets the upper end of the first latency class, ns; the others double it.
    pub first_edge_ns: u64,
    /// Sets the path of the groups, which their number follows.
    pub group: String,
}

impl Default for ChromeNodeParams {
    /// The published machine with 10 buffers a server, which is what fits its memory and swap.
    fn default() -> Self {
        Self {
            groups: 32,
            nodes: 2,
            buffers: 10,
            buffer_pages: 131_072,
            browser_pages: 12_000,
            array_pages: 1_280,
            requests: 80_000,
            request_ns: 350_000_000,
            first_edge_ns: 1_000_000_000,
            group: "/worker".to_owned(),
        }
    }
}

impl ChromeNodeParams {
    /// Returns the parameters with memory, and the times that go with it, multiplied by `scale`.
    pub fn scaled(&self, scale: f64) -> Self {
        let pages = |n: u32| ((f64::from(n) * scale).round() as u32).max(1);
        let time = |ns: u64| (ns as f64 * scale).round() as u64;
        Self {
            buffer_pages: pages(self.buffer_pages),
            browser_pages: pages(self.browser_pages),
            array_pages: pages(self.array_pages),
            request_ns: time(self.request_ns),
            first_edge_ns: time(self.first_edge_ns).max(1),
            ..self.clone()
        }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("chrome-node.groups", self.groups, 1, 4096)?;
        in_range("chrome-node.nodes", self.nodes, 1, 64)?;
        in_range("chrome-node.buffers", self.buffers, 1, 4096)?;
        in_range("chrome-node.buffer_pages", self.buffer_pages, 1, 1 << 24)?;
        let pages = u64::from(self.buffers) * u64::from(self.buffer_pages);
        in_range("chrome-node.buffers × buffer_pages", pages, 1, 1 << 31)?;
        in_range("chrome-node.browser_pages", self.browser_pages, 1, 1 << 24)?;
        in_range("chrome-node.array_pages", self.array_pages, 1, 1 << 24)?;
        in_range("chrome-node.requests", self.requests, 1, 1 << 40)?;
        in_range("chrome-node.first_edge_ns", self.first_edge_ns, 1, 1 << 50)?;
        Ok(())
    }

    fn workers(&self) -> u32 {
        self.groups * self.nodes
    }
}

/// Holds the state of the workers.
#[derive(Debug)]
pub struct ChromeNode {
    params: ChromeNodeParams,
    workers: Vec<Worker>,
    /// Requests not yet taken.
    left: u64,
    hash: StringHash,
}

#[derive(Debug)]
struct Worker {
    rng: Rng,
    stage: Stage,
    requests: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Gate,
    Serving,
}

impl ChromeNode {
    /// Creates workers that have not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &ChromeNodeParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        let workers = (0..params.workers()).map(|w| Worker {
            rng: Rng::new(seed, u64::from(w)),
            stage: Stage::Start,
            requests: 0,
        });
        Ok(Self {
            workers: workers.collect(),
            left: params.requests,
            hash: StringHash::new(params.workers() as usize),
            params: params.clone(),
        })
    }

    /// Buffers are filled when a server starts.
    fn set_up(&self, w: TaskId, out: &mut Vec<Op>) {
        out.extend((w == 0).then_some(Op::Mark { phase: 0 }));
        let region = w * REGIONS;
        let pages = self.params.buffers * self.params.buffer_pages;
        out.extend((0..pages).map(|page| Op::Touch { region, page, write: true }));
        let browser = self.params.browser_pages;
        let touch = |page| Op::Touch { region: region + 1, page, write: true };
        out.extend((0..browser).map(touch));
        out.extend([Op::End { class: SETUP }, Op::Barrier { id: 0 }]);
    }

    fn request(&mut self, w: TaskId, out: &mut Vec<Op>) {
        let Some(left) = self.left.checked_sub(1) else { return out.push(Op::Done) };
        self.left = left;
        let params = &self.params;
        let worker = &mut self.workers[w as usize];
        let region = w * REGIONS;
        let buffer = worker.rng.below(u64::from(params.buffers)) as u32;
        let hashed = params.requests / u64::from(params.workers()) / HASHED;
        if worker.requests < hashed {
            self.hash.add(w, access(region, u64::from(buffer), true));
        }
        out.push(Op::Compute { ns: params.request_ns });
        let first = buffer * params.buffer_pages;
        let write = |region, page| Op::Touch { region, page, write: true };
        out.extend((first..first + params.buffer_pages).map(|page| write(region, page)));
        let hot = (0..params.browser_pages).filter(|_| worker.rng.below(100) < HOT_PERCENT);
        out.extend(hot.map(|page| write(region + 1, page)));
        let array = (worker.requests % ARRAYS) as u32 * params.array_pages;
        out.push(Op::Free { region: region + 2, page: array, nr: params.array_pages });
        out.extend((array..array + params.array_pages).map(|page| write(region + 2, page)));
        out.push(Op::End { class: 0 });
        worker.requests += 1;
    }

    fn add_worker(&self, layout: &mut Layout, group: u32, node: u32) {
        let params = &self.params;
        let mm = layout.tasks.len() as u32;
        let sizes = [
            (params.buffers * params.buffer_pages, Content::Zero),
            (params.browser_pages, Content::Compressible),
            (params.array_pages * ARRAYS as u32, Content::Compressible),
        ];
        for (pages, content) in sizes {
            let plain = RegionSpec::plain(mm, RegionKind::Anon, pages);
            layout.regions.push(RegionSpec { content, ..plain });
        }
        let (group, node) = (Some(group), Some(node));
        layout.tasks.push(TaskSpec { mm, group, node, background: false });
    }
}

impl Script for ChromeNode {
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            classes: CLASSES.map(str::to_owned).to_vec(),
            phases: ["setup", "run"].map(str::to_owned).to_vec(),
            ..Layout::default()
        };
        for group in 0..self.params.groups {
            let name = format!("{}{group}", self.params.group);
            layout.groups.push(GroupSpec { name, parent: None });
            (0..self.params.nodes).for_each(|node| self.add_worker(&mut layout, group, node));
        }
        layout
    }

    fn step(&mut self, w: TaskId, out: &mut Vec<Op>) {
        let stage = &mut self.workers[w as usize].stage;
        match *stage {
            Stage::Start => {
                *stage = Stage::Gate;
                self.set_up(w, out);
            }
            Stage::Gate => {
                *stage = Stage::Serving;
                out.extend((w == 0).then_some(Op::Mark { phase: 1 }));
                out.extend([Op::Barrier { id: 1 }, Op::End { class: SETUP }]);
            }
            Stage::Serving => self.request(w, out),
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    /// Fairness, by the formulas of the published reports: the sample's standard deviation, Jain's
    /// index, and the slowest worker's part of the mean.
    fn figures(&self) -> Vec<(String, f64)> {
        let served: Vec<f64> = self.workers.iter().map(|w| w.requests as f64).collect();
        let n = served.len() as f64;
        let mean = served.iter().sum::<f64>() / n;
        let squares: f64 = served.iter().map(|x| x * x).sum();
        let variance = (squares - n * mean * mean).max(0.0) / (n - 1.0).max(1.0);
        let least = served.iter().fold(f64::INFINITY, |least, &x| least.min(x));
        [
            ("worker_stdev", libm::sqrt(variance)),
            ("jain", n * mean * mean / squares.max(1.0)),
            ("worst_share", least / mean.max(1.0)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    fn total_ops(&self) -> u64 {
        // Touches dominate: progress is reported in accesses.
        let setup = u64::from(self.params.buffers * self.params.buffer_pages);
        let request = u64::from(self.params.buffer_pages + self.params.browser_pages / 2);
        setup * u64::from(self.params.workers()) + request * self.params.requests
    }

    fn latency_edges_ns(&self) -> Vec<u64> {
        (0..4).map(|doubling| self.params.first_edge_ns << doubling).collect()
    }
}

#[cfg(test)]
mod tests;
