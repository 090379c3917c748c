//! The life of one page in a run: what its state says after each event of the machine. What comes
//! and goes within one event (a turn of a task, some microseconds) does not show. A run is the same
//! with a page looked at and without.

use mglru::folio::{Flags, Folios};
use mglru::types::{FolioId, MemcgId, Nanos};
use mglru::{Bit, Counter};
use mglru_workload::{FileId, RegionId};

use crate::address_space::Owner;
use crate::cache_slot::Slot;
use crate::machine::Machine;
use crate::tracing::{Event, Sink, Who};
use crate::world::World;

/// Bounds the moments that are kept.
pub const MOST: usize = 100_000;

/// Names a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageId {
    /// Names a page of a file, whatever process reads or maps it.
    File {
        /// Names the file of the layout.
        file: FileId,
        /// Holds the page of it.
        page: u64,
    },
    /// Names a page of a region of anonymous or shared memory.
    Memory {
        /// Names the region of the layout.
        region: RegionId,
        /// Holds the page of it.
        page: u32,
    },
}

/// Describes an event that happened to the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Holds the time when it showed, ns.
    pub at: Nanos,
    /// Names the process that caused it.
    pub comm: String,
    /// Numbers that process; 0: a device.
    pub pid: u32,
    /// Names the event.
    pub what: What,
}

/// Says what happened to the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Brings the page into memory, charged to a group (its number) and put on a list.
    Came {
        /// Numbers the group; 0: the root.
        memcg: u32,
        /// Names the list that it is put on.
        list: List,
        /// It was evicted before, and so many pages of the machine were reclaimed since.
        refault: Option<u64>,
    },
    /// Ends the read of its data.
    Read,
    /// Moves the page to another list.
    Moved {
        /// Names the list before.
        from: List,
        /// Names the list now.
        to: List,
    },
    /// Opens a younger generation; the page's list is as it was.
    Aged {
        /// Holds its generation.
        list: List,
    },
    /// Shows an access: in a page table, or in the folio's flags.
    Accessed {
        /// Holds its tier now.
        tier: u8,
    },
    /// Clears the marks of accesses, which reclaim or aging took note of.
    Forgotten {
        /// Holds its tier now.
        tier: u8,
    },
    /// Makes the page newer than the device.
    Dirtied,
    /// Begins its write.
    WriteBegan,
    /// Ends its write.
    Written,
    /// Evicts the page by reclaim.
    Evicted {
        /// It lies in swap.
        swapped: bool,
    },
    /// Drops the page for another reason: its file was cut, its memory unmapped, its owner killed.
    Dropped,
}

/// Names the list that a page is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Lies in a generation: its number, and those of the oldest of its type and the youngest.
    Generation {
        /// Numbers its own generation.
        seq: u64,
        /// Numbers the oldest.
        oldest: u64,
        /// Numbers the youngest.
        youngest: u64,
    },
    /// Lies on the active list.
    Active,
    /// Lies on the inactive list.
    Inactive,
    /// Lies where nothing is evicted.
    Unevictable,
    /// Waits in a processor's batch, on its way to a list.
    Parked,
    /// Lies on no list: isolated by reclaim, or not put on one yet.
    Off,
}

/// Holds what is known of a page in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Present {
    folio: FolioId,
    flags: Flags,
    memcg: MemcgId,
    list: List,
    tier: u8,
    /// Some page table has its accessed bit set.
    young: bool,
}

/// Looks at one page.
#[derive(Debug)]
pub(crate) struct Watched {
    page: PageId,
    before: Option<Present>,
    /// Pages reclaimed when it was evicted last.
    evicted_at: Option<u64>,
    moments: Vec<Moment>,
}

impl Watched {
    pub(crate) fn new(page: PageId) -> Self {
        Self { page, before: None, evicted_at: None, moments: Vec::new() }
    }

    /// The moments, in order.
    pub(crate) fn into_moments(self) -> Vec<Moment> {
        self.moments
    }
}

/// Nobody listens to events; only whose doing they are is wanted.
pub(crate) struct Silence;

impl Sink for Silence {
    fn event(&mut self, _: &Event<'_>) -> Result<(), String> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

impl World {
    /// Has some entry that maps the folio its accessed bit set?
    fn is_young(&self, id: FolioId, folios: &Folios) -> bool {
        let (owner, n) = (Owner::unpack(folios[id].owner), folios[id].pages() as u32);
        let mut mappings =
            (0..self.spaces.nr_mappings(owner)).filter_map(|nth| self.spaces.mapped(owner, n, nth));
        folios[id].is_mapped()
            && mappings.any(|(region, mut pages)| {
                let table = &self.spaces.vma(region).table;
                pages.any(|page| table.get(page).has_folio() && table.get(page).is_young())
            })
    }
}

impl Machine {
    /// Looks at the page, after something that `who` did.
    pub(crate) fn look_at_page(&mut self, who: Who) {
        let Some(mut watched) = self.watched.take() else { return };
        let now = self.present(watched.page);
        if now != watched.before && watched.moments.len() < MOST {
            let reclaimed = self.reclaimed();
            for what in self.changes(&mut watched, now, reclaimed) {
                let (comm, pid) = self.actor(who);
                watched.moments.push(Moment { at: self.world.now, comm, pid, what });
            }
        }
        watched.before = now;
        self.watched = Some(watched);
    }

    fn changes(&self, watched: &mut Watched, now: Option<Present>, reclaimed: u64) -> Vec<What> {
        match (watched.before, now) {
            (None, None) => Vec::new(),
            (Some(_), None) => vec![self.left(watched, reclaimed)],
            (None, Some(now)) => came(watched, &now, reclaimed),
            (Some(before), Some(now)) if before.folio != now.folio => {
                let left = self.left(watched, reclaimed);
                std::iter::once(left).chain(came(watched, &now, reclaimed)).collect()
            }
            (Some(before), Some(now)) => differences(&before, &now),
        }
    }

    /// It is gone: a shadow or a swap slot in its place says that reclaim took it.
    fn left(&self, watched: &mut Watched, reclaimed: u64) -> What {
        let (evicted, swapped) = match watched.page {
            PageId::File { file, page } => {
                let slot = self.world.files[file as usize].cache.get(page);
                (matches!(slot, Slot::Shadow(_)), false)
            }
            PageId::Memory { region, page } => {
                let vma = self.world.spaces.vma(region);
                let swapped = vma.mapped && vma.table.swapped_to(page).is_some();
                (swapped, swapped)
            }
        };
        watched.evicted_at = evicted.then_some(reclaimed);
        if evicted { What::Evicted { swapped } } else { What::Dropped }
    }

    fn present(&self, page: PageId) -> Option<Present> {
        let (folio, young) = match page {
            PageId::File { file, page } => {
                let folio = self.world.files[file as usize].cache.folio(page)?;
                (folio, self.world.is_young(folio, self.lru.folios()))
            }
            PageId::Memory { region, page } => {
                let vma = self.world.spaces.vma(region);
                vma.mapped.then_some(())?;
                let folio = self.world.folio_at(vma, page)?;
                (folio, vma.table.get(page).is_young())
            }
        };
        let entry = &self.lru.folios()[folio];
        let memcg = self.world.memcg_of(entry.lruvec);
        let flags = entry.flags;
        let tier = self.lru.tier_of(folio).0;
        Some(Present { folio, flags, memcg, list: self.list_of(folio), tier, young })
    }

    fn list_of(&self, folio: FolioId) -> List {
        let entry = &self.lru.folios()[folio];
        let flags = entry.flags;
        if flags.has(Bit::UNEVICTABLE) {
            return List::Unevictable;
        }
        if flags.has(Bit::PARKED) {
            return List::Parked;
        }
        if !flags.has(Bit::LRU) {
            return List::Off;
        }
        let (memcg, node) = (self.world.memcg_of(entry.lruvec), self.world.node_of(entry.lruvec));
        let generations = self.lru.generations(memcg, node);
        let own = flags.generation();
        let lru_type = entry.lru_type().index();
        let own = generations.iter().find(|g| own.is_some() && own == g.slots[lru_type]);
        match (own, generations.last()) {
            (Some(own), Some(youngest)) => {
                let oldest = self.lru.oldest(memcg, node, entry.lru_type()).0;
                List::Generation { seq: own.seq, oldest, youngest: youngest.seq }
            }
            _ if flags.has(Bit::ACTIVE) => List::Active,
            _ => List::Inactive,
        }
    }

    fn reclaimed(&self) -> u64 {
        let counters = self.lru.counters();
        counters[Counter::PgstealAnon] + counters[Counter::PgstealFile]
    }
}

fn came(watched: &mut Watched, now: &Present, reclaimed: u64) -> Vec<What> {
    let refault = watched.evicted_at.take().map(|at| reclaimed - at);
    let mut whats = vec![What::Came { memcg: now.memcg.0, list: now.list, refault }];
    if now.flags.has(Bit::DIRTY) {
        whats.push(What::Dirtied);
    }
    whats
}

fn differences(before: &Present, now: &Present) -> Vec<What> {
    let set = |bit| !before.flags.has(bit) && now.flags.has(bit);
    let cleared = |bit| before.flags.has(bit) && !now.flags.has(bit);
    let mark = |x: &Present| (x.tier, x.flags.refs(), x.flags.has(Bit::REFERENCED));
    let accessed = now.young && !before.young || mark(now) > mark(before);
    let forgotten = before.young && !now.young || mark(now) < mark(before);
    let facts = [
        (cleared(Bit::LOCKED), What::Read),
        (accessed, What::Accessed { tier: now.tier }),
        (set(Bit::DIRTY), What::Dirtied),
        (set(Bit::WRITEBACK), What::WriteBegan),
        (cleared(Bit::WRITEBACK), What::Written),
        (forgotten && !accessed, What::Forgotten { tier: now.tier }),
    ];
    let moved = moved(before.list, now.list);
    facts.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).chain(moved).collect()
}

fn moved(from: List, to: List) -> Option<What> {
    match (from, to) {
        (
            List::Generation { seq, youngest, .. },
            List::Generation { seq: now, youngest: new, .. },
        ) if seq == now => (new > youngest).then_some(What::Aged { list: to }),
        _ => (from != to).then_some(What::Moved { from, to }),
    }
}
