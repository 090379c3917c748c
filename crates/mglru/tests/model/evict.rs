//! Sort, isolate, scan, evict (spec §5.3 to §5.5).

use super::reclaim::Control;
use super::{ANON, FILE, Key, Naive, aging, controller};

/// One scan's outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    scanned: u64,
    isolated: u64,
    left: u64,
}

impl Naive {
    /// Returns what is charged.
    pub fn evict(&mut self, sc: &mut Control, max_folios: u64, walking: bool) -> u64 {
        let p = self.config.patches;
        let s = sc.swappiness;
        if p.p05 {
            self.flush_empty_oldest(s);
        }
        let mut out = Vec::new();
        let (mut charged, t) = self.scan_types(sc, max_folios, &mut out);
        if p.p05 {
            if charged > 0 {
                self.flush_empty_oldest(s);
            }
        } else {
            charged += u64::from(self.flush_empty_oldest(s));
            if self.need(s) == aging::Need::Must {
                charged = 0;
            }
        }
        let isolated: u64 = out.iter().map(|k| self.pages[k].n).sum();
        if isolated > 0 {
            self.dispatch(sc, out, isolated, t, walking);
        }
        charged
    }

    fn scan_types(&mut self, sc: &mut Control, max: u64, out: &mut Vec<Key>) -> (u64, usize) {
        let p = self.config.patches;
        let s = u64::from(sc.swappiness);
        let (mut t, mut limit) = match (self.k612(), sc.swappiness) {
            (true, _) => self.controller.choose_k612(s, self.min_seq, sc.io),
            (false, 0) => (FILE, self.controller.own_limit(false, FILE)),
            (false, 201..) => (ANON, self.controller.own_limit(false, ANON)),
            (false, _) => self.controller.choose_k614(s),
        };
        let mut charged = 0;
        for round in aging::evictable(sc.swappiness).iter().enumerate().map(|(i, _)| i) {
            if round == 1 {
                limit = self.controller.own_limit(self.k612(), t);
            }
            let scan = self.scan(sc, t, limit, max, out);
            let counts = scan.isolated > 0 || scan.left == 0;
            if !p.p05 {
                charged = if counts { scan.scanned } else { 0 };
                if charged > 0 {
                    break;
                }
                t = 1 - t;
                continue;
            }
            charged += scan.scanned;
            if scan.isolated > 0 {
                break;
            }
            if !p.p06p || scan.scanned == 0 {
                t = 1 - t;
            }
        }
        let last = out.last().map_or(t, |k| Self::type_of(&self.pages[k]));
        (charged, last)
    }

    fn scan(
        &mut self,
        sc: &mut Control,
        t: usize,
        limit: usize,
        max: u64,
        out: &mut Vec<Key>,
    ) -> Scan {
        let mut scan = Scan { left: max, ..Scan::default() };
        if self.max_seq - self.min_seq[t] + 1 == self.kept() {
            return scan;
        }
        // All zones are eligible: from the highest down.
        for zone in (0..=sc.reclaim_idx).rev().chain(sc.reclaim_idx + 1..4) {
            let mut refused = Vec::new();
            let mut run = aging::Run::default();
            let mut skipped = 0;
            while let Some(&key) = self.lists[self.min_seq[t]][t][zone].last() {
                let n = self.pages[&key].n;
                scan.scanned += n;
                if self.sort(sc, &mut run, key, t, limit) {
                    self.counts.refill += n;
                } else if self.isolate(sc, key) {
                    out.push(key);
                    scan.isolated += n;
                } else {
                    self.unlink(key);
                    refused.insert(0, key);
                    skipped += n;
                }
                scan.left -= 1;
                if scan.left == 0 || scan.isolated.max(skipped) >= 64 {
                    break;
                }
            }
            self.end_run(&mut run, t, zone);
            self.counts.skipped += skipped;
            self.lists[self.min_seq[t]][t][zone].splice(0..0, refused);
            if scan.left == 0 || scan.isolated >= 64 {
                break;
            }
        }
        self.counts.scanned += scan.isolated;
        scan
    }

    /// True when it was only moved.
    fn sort(
        &mut self,
        sc: &mut Control,
        run: &mut aging::Run,
        key: Key,
        t: usize,
        limit: usize,
    ) -> bool {
        let k612 = self.k612();
        let min = self.min_seq[t];
        let page = self.pages[&key].clone();
        let (seq, zone) = (page.seq.unwrap(), page.zone);
        if seq != min {
            self.end_run(run, t, zone);
            self.unlink(key);
            self.link(key, seq, t, zone, false);
            return true;
        }
        let tier = controller::tier_of(k612, &page);
        let saturated = controller::saturated(k612, &page);
        if tier > limit || saturated {
            if k612 || !saturated {
                self.controller.protected[t][tier] += page.n;
            }
            self.push_to_next(run, key, t, zone, k612);
            return true;
        }
        if zone > sc.reclaim_idx {
            self.push_to_next(run, key, t, zone, true);
            return true;
        }
        let dirty_file = t == FILE && page.dirty;
        if self.config.patches.p09 || !(page.writeback || dirty_file || k612 && page.locked) {
            self.end_run(run, t, zone);
            return false;
        }
        self.push_to_next(run, key, t, zone, false);
        self.pages.get_mut(&key).unwrap().reclaim = true;
        if dirty_file {
            sc.file_taken += page.n;
            sc.unqueued_dirty += if page.writeback { 0 } else { page.n };
        }
        true
    }

    fn isolate(&mut self, sc: &Control, key: Key) -> bool {
        let (p, k612) = (self.config.patches, self.k612());
        let page = self.pages.get_mut(&key).unwrap();
        if !p.p08 && !sc.io {
            let file = Self::type_of(page) == FILE;
            let dirty = page.dirty && !(self.config.stable_612 && file);
            if dirty || page.kind == mglru::FolioKind::Anon && !page.swapcache {
                return false;
            }
        }
        if !page.referenced {
            page.refs = 0;
        }
        page.reclaim &= p.p09;
        page.referenced &= !k612;
        page.seq = None;
        self.unlink(key);
        true
    }

    fn dispatch(&mut self, sc: &mut Control, out: Vec<Key>, isolated: u64, t: usize, walk: bool) {
        let p = self.config.patches;
        let mut batch = out;
        for pass in 0..2 {
            let done = self.process(sc, batch, walk);
            sc.reclaimed += done.freed;
            self.counts.stolen += done.freed;
            if pass == 0 {
                if p.p10 && done.unqueued_dirty == isolated {
                    self.counts.flusher += 1;
                }
                if !p.p10 {
                    sc.unqueued_dirty += done.unqueued_dirty;
                    sc.file_taken += if t == FILE { isolated } else { 0 };
                }
            }
            batch = Vec::new();
            for key in done.survivors {
                if pass == 0 && self.may_have_missed_rotation(key) {
                    batch.push(key);
                } else {
                    self.reject(key);
                }
            }
            if batch.is_empty() {
                break;
            }
        }
    }

    fn may_have_missed_rotation(&self, key: Key) -> bool {
        let page = &self.pages[&key];
        let kept = self.k612() && (page.referenced || page.locked);
        let busy = page.active || page.pte.is_some() || page.dirty || page.writeback;
        !busy && !page.mlocked && !kept
    }

    fn reject(&mut self, key: Key) {
        let page = &self.pages[&key];
        let k612 = self.k612();
        let wbk = page.reclaim && (page.dirty || page.writeback);
        let again = self.entry_seq(page, false) == self.min_seq[Self::type_of(page)];
        if page.mlocked {
        } else if k612 && wbk {
            let page = self.pages.get_mut(&key).unwrap();
            page.referenced |= page.workingset;
        } else if k612 || again {
            self.forget_accesses(key);
            self.pages.get_mut(&key).unwrap().active = true;
        }
        self.insert(key, false);
    }
}
