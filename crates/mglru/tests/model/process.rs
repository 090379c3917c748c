//! What becomes of isolated pages (spec §5.6), and the machine's answers, as the toy gives them.

use mglru::FolioKind;

use super::reclaim::Control;
use super::{Key, Naive, Shadow, controller};

/// Holds the result of a list of isolated pages.
#[derive(Clone, Debug, Default)]
pub struct Processed {
    pub freed: u64,
    pub unqueued_dirty: u64,
    pub survivors: Vec<Key>,
}

/// Says what the references mean.
enum References {
    Reclaim,
    Keep,
    Activate,
}

impl Naive {
    /// All are judged, then all that are to go are handed to the machine.
    pub fn process(&mut self, sc: &mut Control, list: Vec<Key>, walking: bool) -> Processed {
        let mut done = Processed::default();
        let mut going = Vec::new();
        for key in list {
            if self.judge(sc, key, walking, &mut done) {
                going.push(key);
            } else {
                done.survivors.push(key);
            }
        }
        for key in going {
            self.let_go(sc, key, &mut done);
        }
        done
    }

    /// True: it is to be evicted.
    fn judge(&mut self, sc: &mut Control, key: Key, walking: bool, done: &mut Processed) -> bool {
        let page = self.pages[&key].clone();
        sc.scanned += page.n;
        let file = !page.swapbacked && page.kind == FolioKind::File;
        if file && page.dirty && !page.writeback {
            done.unqueued_dirty += page.n;
        }
        if page.locked {
            return false;
        }
        if self.k612() && page.pte.is_some() && page.referenced {
            return false;
        }
        if page.writeback {
            let page = self.pages.get_mut(&key).unwrap();
            page.reclaim = true;
            page.active = true;
            return false;
        }
        match self.references(key, walking) {
            References::Reclaim => {}
            References::Keep => return false,
            References::Activate => {
                self.pages.get_mut(&key).unwrap().active = true;
                return false;
            }
        }
        !(page.swapbacked && !page.swapcache && !sc.io)
    }

    fn references(&mut self, key: Key, walking: bool) -> References {
        let Some(pte) = self.pages[&key].pte else { return References::Reclaim };
        self.pages.get_mut(&key).unwrap().pte.as_mut().unwrap().young = false;
        if pte.young {
            self.look_around(key, walking);
        }
        let k612 = self.k612();
        let page = self.pages.get_mut(&key).unwrap();
        if !pte.young {
            return References::Reclaim;
        }
        if k612 {
            let was = std::mem::replace(&mut page.referenced, true);
            return if was { References::Activate } else { References::Keep };
        }
        let proven = page.referenced || page.workingset;
        page.refs = if proven { 0 } else { page.refs };
        page.referenced = !proven;
        page.workingset |= proven;
        if proven { References::Activate } else { References::Keep }
    }

    /// Spec §4.4: 64 entries around, inside the table. In 6.12 file memory (lazily freed too)
    /// leaves anonymous neighbours alone.
    fn look_around(&mut self, key: Key, walking: bool) {
        let centre = self.pages[&key].pte.unwrap();
        let table = centre.page / 512;
        let start = centre.page.saturating_sub(32).max(table * 512);
        let end = (start + 64).min(table * 512 + 512);
        let window: Vec<(u64, Key)> = self.window(centre.mm, start, end);
        let (mut young, mut found) = (1, Vec::new());
        let file_only = self.k612() && !self.pages[&key].swapbacked;
        for &(_, near) in &window {
            if file_only && self.pages[&near].swapbacked {
                continue;
            }
            if let Some(dirty) = self.take_young(near) {
                young += 1;
                found.push((near, dirty));
            }
        }
        for (near, dirty) in found {
            self.note_dirty(near, dirty);
            if walking { self.promote(near) } else { self.activate_neighbour(near) }
        }
        if young * 8 >= window.len() {
            self.remember(self.max_seq, centre.mm, table);
        }
    }

    fn window(&self, mm: usize, start: u64, end: u64) -> Vec<(u64, Key)> {
        let mapped = self.pages.iter().filter_map(|(&key, page)| Some((page.pte?, key)));
        let inside = mapped.filter(|(p, _)| p.mm == mm && start <= p.page && p.page < end);
        let mut keys: Vec<(u64, Key)> = inside.map(|(p, key)| (p.page, key)).collect();
        keys.sort_unstable();
        keys
    }

    fn activate_neighbour(&mut self, key: Key) {
        let (k612, stable) = (self.k612(), self.config.stable_612);
        let page = self.pages.get_mut(&key).unwrap();
        if !k612 {
            let proven = page.referenced || page.workingset;
            page.refs = 0;
            page.referenced = !proven;
            page.workingset |= proven;
            if !proven {
                return;
            }
        } else if page.seq.is_none() {
            page.referenced = true;
            return;
        } else if stable && page.seq != Some(self.max_seq) {
            self.forget_accesses(key);
        }
        let page = &self.pages[&key];
        if page.seq.is_some_and(|seq| seq != self.max_seq) {
            self.remove(key);
            self.pages.get_mut(&key).unwrap().active = true;
            self.insert(key, false);
        }
    }

    /// Swap slot, unmapping, write, free.
    fn let_go(&mut self, sc: &Control, key: Key, done: &mut Processed) {
        let page = self.pages.get_mut(&key).unwrap();
        if page.swapbacked && !page.swapcache {
            if self.swap_left < page.n {
                page.active = true;
                done.survivors.push(key);
                return;
            }
            self.swap_left -= page.n;
            page.swapcache = true;
        }
        let unmapped = page.pte.take();
        page.dirty |= unmapped.is_some_and(|p| p.dirty) && page.kind != FolioKind::File;
        let must_write = page.swapbacked && (page.dirty || !page.stored);
        if page.pinned {
            page.active = true;
        } else if !page.swapbacked && page.dirty {
            page.active = true;
            if page.kind == FolioKind::Anon {
                page.swapbacked = true;
            } else {
                page.reclaim = true;
                self.counts.immediate += page.n;
            }
        } else if must_write && !sc.io {
            // Kept: it may not be written now.
        } else if must_write && !sc.swap_is_fast {
            page.dirty = false;
            page.reclaim = true;
            page.writeback = true;
        } else {
            done.freed += page.n;
            self.retire(key);
            return;
        }
        done.survivors.push(key);
    }

    fn retire(&mut self, key: Key) {
        let k612 = self.k612();
        let page = self.pages.remove(&key).unwrap();
        let t = Self::type_of(&page);
        let r = controller::count(k612, &page);
        self.controller.evicted[t][controller::tier_of(k612, &page)] += page.n;
        let bit = if k612 { r != 0 } else { page.workingset };
        self.freed.push((key, Shadow { seq: self.min_seq[t], low: r.saturating_sub(1), bit }));
    }
}
