//! A naive multi-gen LRU: every generation is a `Vec` per type and zone, found by its sequence
//! number; sizes are counted by looking at every page; nothing is cached. Written from the
//! specification's text, rule by rule, to be compared with the core.

mod aging;
mod bins;
mod controller;
mod evict;
mod process;
mod reclaim;

use std::collections::{BTreeMap, BTreeSet};

use mglru::{Config, FolioKind};

pub use bins::Bins;
pub use controller::Controller;
pub use reclaim::Control;

/// Returns the state that a call for so many pages starts from.
pub fn control(pages: u64) -> Control {
    Control::new(pages)
}

/// Names a page.
pub type Key = u32;

pub const ANON: usize = 0;
pub const FILE: usize = 1;

/// A page-table entry.
#[derive(Clone, Copy, Debug)]
pub struct Pte {
    pub mm: usize,
    pub page: u64,
    pub young: bool,
    pub dirty: bool,
}

/// A page (or a folio of `n` pages).
#[derive(Clone, Debug)]
pub struct Page {
    pub kind: FolioKind,
    pub swapbacked: bool,
    pub n: u64,
    pub zone: usize,
    pub refs: u32,
    pub referenced: bool,
    pub workingset: bool,
    pub active: bool,
    pub dirty: bool,
    pub writeback: bool,
    pub reclaim: bool,
    pub swapcache: bool,
    pub locked: bool,
    pub pinned: bool,
    pub mlocked: bool,
    pub stored: bool,
    /// The sequence number its generation field stands for.
    pub seq: Option<usize>,
    pub pte: Option<Pte>,
}

/// Holds what an evicted page left (spec §6).
#[derive(Clone, Copy, Debug)]
pub struct Shadow {
    pub seq: usize,
    pub low: u32,
    pub bit: bool,
}

/// Counted like the core counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub scanned: u64,
    pub stolen: u64,
    pub refill: u64,
    pub skipped: u64,
    pub rotated: u64,
    pub immediate: u64,
    pub flusher: u64,
    pub aged: u64,
    pub refaults: [u64; 2],
    pub activations: [u64; 2],
    pub restores: [u64; 2],
    pub zero_progress: u64,
}

/// An address space as the walker sees it.
#[derive(Clone, Debug)]
pub struct Mm {
    pub ran: bool,
    pub young_tables: BTreeSet<u64>,
}

/// One group and its pages.
#[derive(Clone, Debug)]
pub struct Naive {
    pub config: Config,
    pub pages: BTreeMap<Key, Page>,
    /// By sequence number, type, zone; the last of a list is its tail.
    pub lists: Vec<[[Vec<Key>; 4]; 2]>,
    pub max_seq: usize,
    pub min_seq: [usize; 2],
    pub controller: Controller,
    pub walk_seq: usize,
    pub walk_tail: usize,
    pub filters: [Option<BTreeSet<(usize, u64)>>; 2],
    pub mms: Vec<Mm>,
    pub freed: Vec<(Key, Shadow)>,
    pub counts: Counts,
    pub swappiness: u8,
    pub swap_left: u64,
    pub low: u64,
    pub bins: Bins,
}

impl Naive {
    pub fn new(config: Config) -> Self {
        let most = usize::from(config.generations);
        let max_seq = (most / 2 + 2).min(most) - 1;
        Self {
            config,
            pages: BTreeMap::new(),
            lists: vec![Default::default(); 2 * most.max(4)],
            max_seq,
            min_seq: [0, 0],
            controller: Controller::default(),
            walk_seq: max_seq - 1,
            walk_tail: 0,
            filters: [None, None],
            mms: Vec::new(),
            freed: Vec::new(),
            counts: Counts::default(),
            swappiness: 60,
            swap_left: 1 << 30,
            low: 0,
            bins: Bins::default(),
        }
    }

    /// The most generations there can be.
    pub fn most(&self) -> usize {
        usize::from(self.config.generations)
    }

    /// Those that cannot be evicted.
    pub fn kept(&self) -> usize {
        self.most() / 2
    }

    pub fn k612(&self) -> bool {
        self.config.is_k612()
    }

    pub fn type_of(page: &Page) -> usize {
        if page.swapbacked { ANON } else { FILE }
    }

    /// Pages of a type in a generation.
    pub fn size_of(&self, seq: usize, t: usize) -> u64 {
        let here = |p: &&Page| p.seq == Some(seq) && Self::type_of(p) == t;
        self.pages.values().filter(here).map(|p| p.n).sum()
    }

    /// The group's generations: sequence number, anon and file pages.
    pub fn generations(&self) -> Vec<(u64, u64, u64)> {
        let oldest = self.min_seq[ANON].min(self.min_seq[FILE]);
        let lines = oldest..=self.max_seq;
        lines.map(|s| (s as u64, self.size_of(s, ANON), self.size_of(s, FILE))).collect()
    }

    pub fn usage(&self) -> u64 {
        self.pages.values().map(|p| p.n).sum()
    }

    /// Spec §3.1: where a page enters.
    pub fn entry_seq(&self, page: &Page, tail: bool) -> usize {
        let t = Self::type_of(page);
        let wbk = page.reclaim && (page.dirty || page.writeback);
        let fresh = t == ANON && !page.swapcache;
        let (max, min) = (self.max_seq, self.min_seq[t]);
        if self.k612() {
            return match () {
                _ if page.active => max,
                _ if fresh || wbk => max + 1 - self.kept(),
                _ if tail || min + self.kept() >= max => min,
                _ => min + 1,
            };
        }
        let ws = usize::from(page.workingset);
        let proven = usize::from(page.workingset || page.referenced);
        let d = match () {
            _ if page.active => self.kept() - ws,
            _ if tail => self.most(),
            _ if fresh || wbk => self.kept(),
            _ if self.config.patches.prefault => self.most() - proven,
            _ => self.most() - ws,
        };
        (max + 1).saturating_sub(d.max(1)).max(min)
    }

    /// Insertion: head, or tail of the oldest.
    pub fn insert(&mut self, key: Key, tail: bool) {
        let page = &self.pages[&key];
        if page.mlocked {
            let page = self.pages.get_mut(&key).unwrap();
            page.active = false;
            return;
        }
        let (seq, t, zone) = (self.entry_seq(page, tail), Self::type_of(page), page.zone);
        let k612 = self.k612();
        let page = self.pages.get_mut(&key).unwrap();
        if k612 && page.active {
            page.refs = 0;
            page.referenced = false;
        }
        page.active = false;
        page.seq = Some(seq);
        self.link(key, seq, t, zone, tail);
    }

    pub fn link(&mut self, key: Key, seq: usize, t: usize, zone: usize, tail: bool) {
        let list = &mut self.lists[seq][t][zone];
        if tail { list.push(key) } else { list.insert(0, key) }
    }

    /// Off whatever list it is on.
    pub fn unlink(&mut self, key: Key) {
        for list in
            self.lists[self.min_seq[0].min(self.min_seq[1])..].iter_mut().flatten().flatten()
        {
            list.retain(|&k| k != key);
        }
    }

    /// Off its generation; not for reclaim: stays young when it is put back.
    pub fn remove(&mut self, key: Key) {
        let oldest_young = self.max_seq + 1 - self.kept();
        self.unlink(key);
        let page = self.pages.get_mut(&key).unwrap();
        if let Some(seq) = page.seq.take() {
            page.active |= seq >= oldest_young;
        }
    }

    /// Spec §3.2 and §6, then §3.1.
    pub fn add(&mut self, key: Key, page: Page, fault: bool, shadow: Option<Shadow>) {
        self.pages.insert(key, page);
        if let Some(shadow) = shadow {
            self.refault(key, shadow, fault);
        }
        if fault {
            let prefault = self.config.patches.prefault;
            let page = self.pages.get_mut(&key).unwrap();
            if !prefault || page.workingset {
                page.active = true;
            } else if !page.referenced {
                self.accessed(key);
            }
        }
        self.insert(key, false);
    }

    fn refault(&mut self, key: Key, shadow: Shadow, fault: bool) {
        let k612 = self.k612();
        let t = Self::type_of(&self.pages[&key]);
        let n = self.pages[&key].n;
        self.counts.refaults[t] += n;
        let window = self.max_seq - shadow.seq < self.most();
        let recent = if k612 { shadow.seq == self.min_seq[t] } else { window };
        if !recent {
            return;
        }
        let r = shadow.low + if k612 { u32::from(shadow.bit) } else { 1 };
        let tier = controller::tier(k612, r, !k612 && shadow.bit);
        self.controller.refaulted[t][tier] += n;
        let prefault = self.config.patches.prefault;
        if k612 || fault && (shadow.bit || !prefault) {
            self.counts.activations[t] += n;
        }
        let restores = if k612 { fault || r >= 3 } else { shadow.bit };
        let page = self.pages.get_mut(&key).unwrap();
        if restores {
            self.counts.restores[t] += n;
            page.workingset = true;
            page.refs = if k612 { 3 } else { page.refs };
        } else if !k612 {
            page.refs = r - 1;
        }
    }

    /// Spec §3.3: one access through a descriptor.
    pub fn accessed(&mut self, key: Key) {
        let k612 = self.k612();
        let page = self.pages.get_mut(&key).unwrap();
        if page.mlocked {
            return;
        }
        if !page.referenced {
            page.referenced = true;
            page.refs = if k612 { page.refs } else { 0 };
        } else if k612 && !page.workingset {
            page.workingset = true;
        } else if page.refs < 3 {
            page.refs += 1;
        } else {
            page.workingset = true;
        }
    }

    pub fn end_writeback(&mut self, key: Key) {
        let page = self.pages.get_mut(&key).unwrap();
        page.writeback = false;
        page.stored = true;
        let rotates = std::mem::take(&mut page.reclaim);
        if rotates && !page.locked && !page.dirty && page.seq.is_some() {
            self.counts.rotated += page.n;
            self.remove(key);
            self.pages.get_mut(&key).unwrap().active = false;
            self.insert(key, true);
        }
    }

    pub fn set_mlocked(&mut self, key: Key, locked: bool) {
        self.remove(key);
        self.pages.get_mut(&key).unwrap().mlocked = locked;
        self.insert(key, false);
    }

    /// `madvise(MADV_COLD)`.
    pub fn deactivate(&mut self, key: Key) {
        let (oldest, k612) = (self.min_seq, self.k612());
        let page = self.pages.get_mut(&key).unwrap();
        let Some(seq) = page.seq else { return };
        page.refs = 0;
        page.referenced = false;
        page.workingset = false;
        let t = Self::type_of(page);
        if !k612 && seq == oldest[t] {
            return;
        }
        self.remove(key);
        self.pages.get_mut(&key).unwrap().active = false;
        self.insert(key, false);
    }

    /// `madvise(MADV_FREE)`.
    pub fn lazyfree(&mut self, key: Key) {
        self.remove(key);
        let page = self.pages.get_mut(&key).unwrap();
        page.swapbacked = false;
        page.dirty = false;
        page.refs = 0;
        page.active = false;
        page.referenced = false;
        page.workingset = false;
        self.insert(key, false);
    }

    /// Spec §LF.13: the upper half is evicted next after the lower one.
    pub fn split(&mut self, key: Key, upper: Key) {
        let page = self.pages.get_mut(&key).unwrap();
        page.n /= 2;
        page.reclaim = false;
        let half = Page { pte: None, ..page.clone() };
        self.pages.insert(upper, half);
        for list in self.lists.iter_mut().flatten().flatten() {
            if let Some(at) = list.iter().position(|&k| k == key) {
                list.insert(at, upper);
            }
        }
    }

    pub fn forget(&mut self, key: Key) {
        self.unlink(key);
        self.pages.remove(&key);
    }
}
