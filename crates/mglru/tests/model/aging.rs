//! Aging, promotion and the window of generations (spec §3.4, §4).

use super::{ANON, FILE, Key, Naive, controller};

/// Tables of each mapping: anon, shmem, file, 64 tables each of 512 pages.
const MAPPINGS: [(usize, u64); 3] = [(ANON, 0), (ANON, 64), (FILE, 128)];

/// Pages on their way to the next generation, the one met first in front.
#[derive(Debug, Default)]
pub struct Run {
    pub keys: Vec<Key>,
    pub tail: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    No,
    Should,
    Must,
}

pub fn evictable(swappiness: u8) -> Vec<usize> {
    match swappiness {
        0 => vec![FILE],
        201.. => vec![ANON],
        _ => vec![ANON, FILE],
    }
}

impl Naive {
    /// Spec §4.1.
    pub fn need(&self, swappiness: u8) -> Need {
        let types = evictable(swappiness);
        let k612 = self.config.aging_rule == mglru::config::AgingRule::K612;
        let oldest = match k612 {
            true if swappiness == 0 => self.min_seq[FILE],
            true => self.min_seq[ANON],
            false => types.iter().map(|&t| self.min_seq[t]).min().unwrap(),
        };
        let kept = self.kept();
        if oldest + kept > self.max_seq {
            return Need::Must;
        }
        let full = oldest + self.most() == self.max_seq + 1;
        if oldest + kept < self.max_seq || full {
            return Need::No;
        }
        let size = |seq| types.iter().map(|&t| self.size_of(seq, t)).sum::<u64>();
        let total = self.evictable_size(swappiness);
        let (young, old) = (size(self.max_seq), size(self.max_seq - kept));
        let kept = kept as u64;
        let spread = young * kept > total || old * (kept + 2) < total;
        if k612 && !spread { Need::No } else { Need::Should }
    }

    pub fn evictable_size(&self, swappiness: u8) -> u64 {
        let types = evictable(swappiness);
        let max = self.max_seq;
        let all = self.pages.values().filter(|p| p.seq.is_some_and(|seq| seq <= max));
        all.filter(|p| types.contains(&Self::type_of(p))).map(|p| p.n).sum()
    }

    /// Spec §4.2, with nobody else walking.
    pub fn age(&mut self, swappiness: u8) -> bool {
        let seq = self.max_seq;
        if seq <= self.walk_seq {
            return false;
        }
        if self.config.young_source == mglru::config::YoungSource::Rmap {
            self.walk_tail = self.mms.len();
            self.walk_seq += 1;
            self.bump(swappiness);
            return true;
        }
        self.filters[(seq + 1) % 2] = Some(Default::default());
        for mm in 0..self.mms.len() {
            let is_new = mm >= self.walk_tail;
            if std::mem::take(&mut self.mms[mm].ran) || is_new {
                self.walk(mm, is_new, swappiness);
            }
        }
        self.walk_tail = self.mms.len();
        self.walk_seq += 1;
        self.bump(swappiness);
        true
    }

    /// Spec §4.3.
    fn walk(&mut self, mm: usize, force: bool, swappiness: u8) {
        let seq = self.max_seq;
        for (t, first) in MAPPINGS {
            if !evictable(swappiness).contains(&t) {
                continue;
            }
            for table in first..first + 64 {
                let known = self.filters[seq % 2].as_ref();
                let hit = known.is_none_or(|f| f.contains(&(mm, table)));
                let young = self.mms[mm].young_tables.contains(&table);
                if force || young && hit {
                    self.walk_table(mm, table);
                }
            }
        }
    }

    fn walk_table(&mut self, mm: usize, table: u64) {
        self.mms[mm].young_tables.remove(&table);
        let mut keys: Vec<(u64, Key)> = Vec::new();
        for (&key, page) in &self.pages {
            if let Some(pte) = page.pte.filter(|p| p.mm == mm && p.page / 512 == table) {
                keys.push((pte.page, key));
            }
        }
        keys.sort_unstable();
        let mut young = 0;
        for &(_, key) in &keys {
            if let Some(dirty) = self.take_young(key) {
                young += 1;
                self.note_dirty(key, dirty);
                self.promote(key);
            }
        }
        if young > 0 && young * 8 >= keys.len() {
            self.remember(self.max_seq + 1, mm, table);
        }
    }

    /// Clears the accessed bit; was the entry dirty? K614: not of a page that is isolated.
    pub fn take_young(&mut self, key: Key) -> Option<bool> {
        let spared = !self.k612() && self.pages[&key].seq.is_none();
        let pte = self.pages.get_mut(&key).unwrap().pte.as_mut().unwrap();
        let young = !spared && std::mem::take(&mut pte.young);
        young.then_some(pte.dirty)
    }

    pub fn remember(&mut self, seq: usize, mm: usize, table: u64) {
        if let Some(filter) = &mut self.filters[seq % 2] {
            filter.insert((mm, table));
        }
    }

    pub fn note_dirty(&mut self, key: Key, dirty: bool) {
        let page = self.pages.get_mut(&key).unwrap();
        let fresh = page.kind == mglru::FolioKind::Anon && !page.swapcache;
        page.dirty |= dirty && !fresh;
    }

    /// Spec §3.4.
    pub fn promote(&mut self, key: Key) {
        let (max, k612) = (self.max_seq, self.k612());
        let page = self.pages.get_mut(&key).unwrap();
        if k612 {
            if page.seq.is_none() {
                page.referenced = true;
                return;
            }
            page.workingset = false;
        } else {
            if !page.referenced && !page.workingset {
                page.referenced = true;
                page.refs = 0;
                return;
            }
            if page.seq.is_none() {
                return;
            }
            page.workingset = true;
        }
        page.refs = 0;
        page.referenced = false;
        page.seq = Some(max);
    }

    /// Spec §4.5.
    fn bump(&mut self, swappiness: u8) {
        self.lists.resize_with(self.max_seq + self.most() + 1, Default::default);
        let next = self.max_seq + 1;
        for t in [ANON, FILE] {
            if self.max_seq - self.min_seq[t] + 1 < self.most() {
                continue;
            }
            if evictable(swappiness).contains(&t) {
                self.force_out(t);
            } else {
                self.slide(t, next);
            }
            self.controller.carry_over(t);
            self.min_seq[t] += 1;
        }
        self.max_seq = next;
        self.counts.aged += 1;
        self.rename_slots();
    }

    /// The generation field names one of as many slots as there can be generations (spec §2.1).
    /// After a slide an older folio may lie in a younger list; once the window has passed its
    /// generation, its slot stands for the next one of that number.
    fn rename_slots(&mut self) {
        let (min, most) = (self.min_seq, self.most());
        for page in self.pages.values_mut() {
            let t = Self::type_of(page);
            while page.seq.is_some_and(|seq| seq < min[t]) {
                page.seq = page.seq.map(|seq| seq + most);
            }
        }
    }

    fn force_out(&mut self, t: usize) {
        let min = self.min_seq[t];
        let k612 = self.k612();
        for zone in 0..4 {
            let mut run = Run::default();
            while let Some(key) = self.lists[min][t][zone].pop() {
                let page = &self.pages[&key];
                if page.seq != Some(min) {
                    let seq = page.seq.unwrap();
                    self.end_run(&mut run, t, zone);
                    self.link(key, seq, t, zone, false);
                    continue;
                }
                if !k612 && !controller::saturated(k612, page) {
                    let tier = controller::tier_of(k612, page);
                    self.controller.protected[t][tier] += page.n;
                }
                self.push_to_next(&mut run, key, t, zone, true);
            }
            self.end_run(&mut run, t, zone);
        }
    }

    /// To the next generation, at once or along with those before it (spec §11).
    pub fn push_to_next(&mut self, run: &mut Run, key: Key, t: usize, zone: usize, tail: bool) {
        self.unlink(key);
        self.forget_accesses(key);
        self.pages.get_mut(&key).unwrap().seq = Some(self.min_seq[t] + 1);
        if run.tail != tail {
            self.end_run(run, t, zone);
        }
        run.tail = tail;
        run.keys.push(key);
        if !self.config.bulk.moves {
            self.end_run(run, t, zone);
        }
    }

    /// A run keeps its order: the first of it stays nearest to the tail.
    pub fn end_run(&mut self, run: &mut Run, t: usize, zone: usize) {
        let list = &mut self.lists[self.min_seq[t] + 1][t][zone];
        let at = if run.tail { list.len() } else { 0 };
        list.splice(at..at, run.keys.drain(..).rev());
    }

    /// The window moves on without the folios: their slot is the youngest generation's now.
    fn slide(&mut self, t: usize, next: usize) {
        let min = self.min_seq[t];
        for page in self.pages.values_mut() {
            if page.seq == Some(min) && Self::type_of(page) == t {
                page.seq = Some(next);
            }
        }
        self.lists[next][t] = std::mem::take(&mut self.lists[min][t]);
    }

    /// K614 keeps the workingset flag.
    pub fn forget_accesses(&mut self, key: Key) {
        let k612 = self.k612();
        let page = self.pages.get_mut(&key).unwrap();
        page.refs = 0;
        page.referenced = false;
        page.workingset &= !k612;
    }

    /// Spec §4.6.
    pub fn flush_empty_oldest(&mut self, swappiness: u8) -> bool {
        let old = self.min_seq;
        let mut new = old;
        for &t in &evictable(swappiness) {
            while new[t] + self.kept() <= self.max_seq
                && self.lists[new[t]][t].iter().all(Vec::is_empty)
            {
                new[t] += 1;
            }
        }
        if self.k612() {
            if evictable(swappiness).len() == 2 {
                new[ANON] = new[ANON].min(new[FILE]);
                new[FILE] = new[ANON].max(old[FILE]);
            }
        } else {
            let s = self.max_seq - self.kept();
            for (lead, lag) in [(ANON, FILE), (FILE, ANON)] {
                if new[lead] > s && new[lag] < s {
                    new[lead] = s.max(old[lead]);
                }
            }
        }
        for t in [ANON, FILE] {
            if new[t] != old[t] {
                self.controller.carry_over(t);
                self.min_seq[t] = new[t];
            }
        }
        self.rename_slots();
        new != old
    }
}
