//! Accessed bits, from wherever an arena's are known ([`Bits`]).

use std::ops::Range;

use mglru::host::{Around, Harvest, RmapHarvest, Va, Window, YoungPte};
use mglru::{FolioId, Folios, LruvecId};

use super::taken::Taken;
use super::world::{Attached, TABLE, World};
use crate::arena::{Arena, Bits};
use crate::pages::Presence;
use crate::sys::PAGE;
use crate::sys::pagemap::Category;
use crate::sys::uffd::Span;

impl World {
    /// Takes the accessed bits of one page table.
    pub(super) fn harvest_table(
        &mut self,
        id: u32,
        at: Va,
        lruvec: LruvecId,
        folios: &Folios,
        out: &mut Harvest,
    ) {
        let Some(attached) = self.arenas[id as usize].as_ref() else { return };
        let first = (at.0 / PAGE as u64) as u32;
        let run = first..attached.arena.pages().len().min(first + TABLE);
        let resident = |page: &u32| attached.entries.folio(*page).is_some();
        out.entries = run.clone().filter(resident).count() as u32;
        if out.entries == 0 {
            return;
        }
        let young = &mut out.young;
        let Some(category) = category(&attached.arena) else {
            let used = run.filter(|&page| attached.arena.pages().take_young(page));
            used.for_each(|page| _ = push_young(attached, page, lruvec, folios, young));
            return;
        };
        let found = |page| push_young(attached, page, lruvec, folios, young);
        match self.take_used(attached, category, run, found) {
            Some(used) => self.taken.add(&attached.arena, used.runs),
            None => out.contended = true,
        }
    }

    /// Takes the accessed bit of one page; if it is set, those of its neighbours too.
    pub(super) fn harvest_page(
        &mut self,
        folio: FolioId,
        window: Window,
        folios: &Folios,
        out: &mut RmapHarvest,
    ) {
        let [id, page] = folios[folio].owner;
        let attached = self.attached(id);
        let Some(category) = category(&attached.arena) else {
            out.referenced = u32::from(attached.arena.pages().take_young(page));
            return;
        };
        let run = window_around(page, window.entries, attached.arena.pages().len());
        // The thread whose page was rescued may not have run since.
        let rescued = attached.arena.pages().take_young(page);
        if !rescued && !self.is_used(attached, category, page) {
            return;
        }
        let (lruvec, neighbours) = (folios[folio].lruvec, &mut out.neighbours);
        // A young page keeps its entry, and its bit for the next walk.
        let used = self.take_used(attached, category, run.clone(), |near| {
            let there = || {
                let folio = attached.entries.folio(near);
                folio.is_some_and(|folio| window.is_there(&folios[folio]))
            };
            near == page || !there() && push_young(attached, near, lruvec, folios, neighbours)
        });
        out.referenced = 1;
        let used = used.unwrap_or(Used { n: 1, runs: Vec::new() });
        let resident = |page: &u32| attached.entries.folio(*page).is_some();
        let entries = run.filter(resident).count() as u32;
        let at = Va(attached.arena.offset(page - page % TABLE));
        out.around.push(Around { mm: attached.mm, at, entries, young: used.n });
        let arena = attached.arena.clone();
        self.taken.add(&arena, used.runs);
    }

    /// Takes the accessed bit of one page, and of no other.
    pub(super) fn take_accessed(&self, id: u32, page: u32) -> bool {
        let attached = self.attached(id);
        let Some(category) = category(&attached.arena) else { return false };
        let used = self.is_used(attached, category, page);
        if used {
            let mut taken = Taken::default();
            taken.add(&attached.arena, [attached.arena.view().pages(page, 1)]);
            taken.clear();
        }
        used
    }

    fn is_used(&self, attached: &Attached, category: Category, page: u32) -> bool {
        let span = attached.arena.view().pages(page, 1);
        let mut used = false;
        let scan = self.pagemap.find(category, span.start..span.end(), |_| used = true);
        scan.is_ok() && used && self.taken.near(&(span.start..span.end())).is_empty()
    }

    /// Calls `found` for each used page of the run; the bits of those that it takes are to be
    /// cleared, with what is not used between them. `None`: the kernel did not say.
    fn take_used(
        &self,
        attached: &Attached,
        category: Category,
        run: Range<u32>,
        mut found: impl FnMut(u32) -> bool,
    ) -> Option<Used> {
        let view = &attached.arena.view();
        let page_of = |address: u64| ((address - view.address(0)) / PAGE as u64) as u32;
        // Closed parts of a heap lie between; the kernel would clear nothing in such a range.
        let exact = view.is_cut() || category == Category::Accessed;
        let (mut n, mut runs) = (0, Runs { exact, ..Runs::default() });
        let addresses = view.address(run.start)..view.address(run.end);
        let taken = self.taken.near(&addresses);
        let is_new = |page: u32| !taken.iter().any(|taken| holds(taken, view.address(page)));
        let scan = self.pagemap.find(category, addresses, |span| {
            let pages = page_of(span.start)..page_of(span.end);
            let pages =
                pages.filter(|&page| attached.arena.pages().presence(page) != Presence::Gone);
            let pages = pages.filter(|&page| is_new(page)).inspect(|_| n += 1);
            pages.for_each(|page| if found(page) { runs.take(page) } else { runs.spare() });
        });
        scan.ok()?;
        let runs = runs.taken.iter().map(|hit| view.pages(hit.start, hit.len() as u32)).collect();
        Some(Used { n, runs })
    }
}

/// Result of a scan.
struct Used {
    /// Used pages.
    n: u32,
    /// The part of them that was taken.
    runs: Vec<Span>,
}

/// Returns the kind of entries that mark an arena's used pages, if a scan can find them.
fn category(arena: &Arena) -> Option<Category> {
    match arena.bits() {
        Bits::Entries => Some(Category::Present),
        Bits::Kept => Some(Category::Accessed),
        Bits::Rescues => None,
    }
}

fn holds(span: &Span, address: u64) -> bool {
    span.start <= address && address < span.end()
}

/// Pages whose bits are cleared: in one piece, unless a used page between two of them must keep its
/// own, or what is between them may be somebody else's.
#[derive(Debug, Default)]
struct Runs {
    taken: Vec<Range<u32>>,
    spared: bool,
    exact: bool,
}

impl Runs {
    fn take(&mut self, page: u32) {
        match self.taken.last_mut() {
            Some(run) if !self.spared && (!self.exact || run.end == page) => run.end = page + 1,
            _ => self.taken.push(page..page + 1),
        }
        self.spared = false;
    }

    fn spare(&mut self) {
        self.spared = true;
    }
}

/// `window` pages around one, under its page table.
fn window_around(page: u32, window: u32, len: u32) -> Range<u32> {
    let table = page - page % TABLE;
    let start = page.saturating_sub(window / 2).clamp(table, table + TABLE - window.min(TABLE));
    start..(start + window).min(len)
}

/// Reports a used page, if it belongs to the lruvec. False: its bit is not to be taken, because
/// somebody has isolated it and will ask for it himself.
fn push_young(
    attached: &Attached,
    page: u32,
    lruvec: LruvecId,
    folios: &Folios,
    out: &mut Vec<YoungPte>,
) -> bool {
    let Some(folio) = attached.entries.folio(page) else { return true };
    if folios[folio].lruvec == lruvec {
        if !folios.is_harvested(folio, lruvec) {
            return false;
        }
        // Stores are reported by events, not by entries.
        out.push(YoungPte { folio, dirty: false });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_parted_by_what_is_spared_alone() {
        let mut runs = Runs::default();
        [3, 4, 9].into_iter().for_each(|page| runs.take(page));
        runs.spare();
        [11, 12].into_iter().for_each(|page| runs.take(page));
        assert_eq!(runs.taken, [3..10, 11..13]);
        let mut runs = Runs { exact: true, ..Runs::default() };
        [3, 4, 9].into_iter().for_each(|page| runs.take(page));
        assert_eq!(runs.taken, [3..5, 9..10]);
    }

    #[test]
    fn a_window_stays_under_its_table() {
        assert_eq!(window_around(600, 64, 10_000), 568..632);
        assert_eq!(window_around(513, 64, 10_000), 512..576);
        assert_eq!(window_around(1023, 64, 10_000), 960..1024);
        assert_eq!(window_around(1023, 1, 10_000), 1023..1024);
        assert_eq!(window_around(530, 64, 540), 512..540);
    }
}
