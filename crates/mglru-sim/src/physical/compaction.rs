//! Compaction: pages in use are moved from the bottom of the zone to free pages at its top, until
//! a block is free or the two scanners meet (experiments §17.4).
//!
//! A run is a value that is stepped: one step takes at most [`CLUSTER`] pages off and moves them.
//! Pages on their way belong to the run; after a step each is in its new place or back in its old.
//! The [`Mover`] knows what a page is and whether it may be moved now.

pub mod defer;
mod free_scanner;
mod migrate_scanner;
pub mod suitable;
#[cfg(test)]
mod tests;

use mglru::types::FolioId;

use super::fallback::{donors, takes_pageblock};
use super::{
    Era, MAX_ORDER, MigrateType, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, Request, Use, Zone,
};

pub use self::defer::Defer;
pub use self::suitable::{Fit, fragmentation_index, suitable};

/// Bounds the pages taken off and moved in one step.
pub const CLUSTER: usize = 32;

/// Says how hard a run tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Takes only pageblocks for movable memory; pages that are not ready are left.
    Async,
    /// Takes every pageblock; pages under writeback are taken, but not waited for.
    SyncLight,
}

/// Says how a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Ends because the scanners met: nothing more can be gained.
    Complete,
    /// Ends because the scanners met, but not all of the zone was scanned (modern era).
    PartialSkipped,
    /// Ends because the request may be served now, or no free pages were left to move to.
    Partial,
}

/// Says how one step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Says that more is to do.
    Again,
    /// Says that the run is over.
    Over(End),
}

/// Knows the content of pages, and moves it.
pub trait Mover {
    /// May the folio be taken off its list now?
    fn isolate(&mut self, folio: FolioId, mode: Mode) -> bool;

    /// Moves its content. False: it is busy, and stays where it is.
    fn relocate(&mut self, folio: FolioId, to: Pfn, mode: Mode) -> bool;

    /// The folio goes back to its list, moved or not.
    fn put_back(&mut self, folio: FolioId);
}

/// Counts the work of runs, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Counts pages that the migrate scanner read.
    pub migrate_scanned: u64,
    /// Counts pages that the free scanner read.
    pub free_scanned: u64,
    /// Counts pages taken off their lists.
    pub isolated: u64,
    /// Counts pages moved.
    pub moved: u64,
    /// Counts pages put back where they were.
    pub put_back: u64,
}

/// Records where the modern era's scanners go on from, and which requests may not try.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Runs that are not worth their while.
    pub defer: Defer,
    /// Where the migrate scanner goes on, by mode.
    migrate: [Option<Pfn>; 2],
    /// Where the free scanner goes on.
    free: Option<Pfn>,
    /// Counts the work of all runs.
    pub tally: Tally,
}

/// Holds the state of a run.
#[derive(Clone, Debug)]
pub struct Compaction {
    /// The block that is wanted; `None`: the whole zone, for its own sake.
    wanted: Option<Request>,
    mode: Mode,
    cpu: usize,
    /// Next frame the migrate scanner looks at.
    migrate_pfn: Pfn,
    /// First frame of the pageblock the free scanner looks at next.
    free_pfn: Pfn,
    /// The run covers the zone from one end to the other.
    whole: bool,
    /// Free pages to move to.
    targets: Vec<Pfn>,
}

impl Compaction {
    /// Creates a run for a block, or over the whole zone.
    pub fn new(
        zone: &Zone,
        memory: &Memory,
        wanted: Option<Request>,
        mode: Mode,
        cpu: usize,
    ) -> Self {
        let last = zone.end() - PAGEBLOCK_PAGES;
        let (mut migrate_pfn, mut free_pfn) = (0, last);
        if let (Era::Modern, Some(request)) = (zone.era(), wanted) {
            migrate_pfn = memory.migrate[mode as usize].unwrap_or(0);
            free_pfn = memory.free.unwrap_or(last);
            if migrate_pfn == 0 {
                migrate_pfn = migrate_scanner::light_first_block(zone, request.order).unwrap_or(0);
            }
        }
        let whole = (migrate_pfn, free_pfn) == (0, last);
        Self { wanted, mode, cpu, migrate_pfn, free_pfn, whole, targets: Vec::new() }
    }

    /// Returns the positions of the migrate and the free scanner.
    pub fn scanners(&self) -> (Pfn, Pfn) {
        (self.migrate_pfn, self.free_pfn)
    }

    /// Moves at most [`CLUSTER`] pages.
    pub fn step(&mut self, zone: &mut Zone, memory: &mut Memory, mover: &mut impl Mover) -> Step {
        if let Some(end) = self.finished(zone) {
            return self.end(zone, memory, end);
        }
        let mut taken = self.isolate_pages(zone, &mut memory.tally, mover);
        memory.tally.isolated += taken.len() as u64;
        let mut out_of_targets = false;
        for (pfn, folio) in taken.drain(..) {
            let moved = match self.target(zone, &mut memory.tally) {
                Some(to) => self.relocate(zone, mover, folio, pfn, to),
                None => {
                    out_of_targets = true;
                    false
                }
            };
            memory.tally.moved += u64::from(moved);
            memory.tally.put_back += u64::from(!moved);
            mover.put_back(folio);
        }
        if out_of_targets {
            let met = zone.era() == Era::Modern && self.free_pfn <= self.migrate_pfn;
            return self.end(zone, memory, if met { self.complete() } else { End::Partial });
        }
        Step::Again
    }

    fn relocate(
        &mut self,
        zone: &mut Zone,
        mover: &mut impl Mover,
        folio: FolioId,
        from: Pfn,
        to: Pfn,
    ) -> bool {
        if !mover.relocate(folio, to, self.mode) {
            self.targets.push(to);
            return false;
        }
        zone.assign(to, 0, Use::Folio(folio));
        zone.assign(from, 0, Use::Fresh);
        zone.put(from, 0, self.cpu);
        true
    }

    fn target(&mut self, zone: &mut Zone, tally: &mut Tally) -> Option<Pfn> {
        if self.targets.is_empty() {
            self.gather_targets(zone, tally);
        }
        self.targets.pop()
    }

    fn complete(&self) -> End {
        if self.whole { End::Complete } else { End::PartialSkipped }
    }

    fn finished(&self, zone: &Zone) -> Option<End> {
        if self.free_pfn <= self.migrate_pfn {
            return Some(self.complete());
        }
        let request = self.wanted?;
        let may_look = match zone.era() {
            Era::Lumpy => true,
            Era::Modern => self.migrate_pfn % PAGEBLOCK_PAGES == 0,
        };
        (may_look && may_be_served(zone, request)).then_some(End::Partial)
    }

    /// Gives unused targets back and remembers what the next run should know.
    fn end(&mut self, zone: &mut Zone, memory: &mut Memory, end: End) -> Step {
        for pfn in self.targets.drain(..) {
            zone.put(pfn, 0, self.cpu);
        }
        zone.drain();
        if zone.era() == Era::Modern && self.wanted.is_some() {
            let met = end != End::Partial;
            memory.migrate[self.mode as usize] = (!met).then_some(self.migrate_pfn);
            memory.free = (!met).then_some(self.free_pfn);
            if met {
                zone.forget_skips();
            }
        }
        Step::Over(end)
    }
}

/// Is there a block for the request, and enough free memory besides?
fn may_be_served(zone: &Zone, request: Request) -> bool {
    let Request { order, migrate, .. } = request;
    match zone.era() {
        Era::Lumpy => {
            let mark = zone.marks().low + (1 << order);
            let own = (order..=MAX_ORDER).any(|o| zone.free_on(o, migrate) > 0);
            let large = (PAGEBLOCK_ORDER.max(order)..=MAX_ORDER).any(|o| zone.free_blocks(o) > 0);
            zone.allows(request, mark) && (own || large)
        }
        Era::Modern => (order..=MAX_ORDER).any(|o| {
            let legal = |&donor: &MigrateType| {
                zone.free_on(o, donor) > 0 && takes_pageblock(Era::Modern, o, migrate)
            };
            zone.free_on(o, migrate) > 0 || donors(migrate).iter().any(legal)
        }),
    }
}
