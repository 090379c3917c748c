//! Finds managed files without a lock. A call that starts a thread of the pager's holds
//! the table and waits for it; the thread, starting, allocates, and malloc says things of memory
//! of its own: what is no managed file's must not have to wait for the table.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// With more files than this, those beyond are asked for in the table.
const MOST: usize = 256;

static PLACES: Places = Places::new();

struct Places {
    all: [Place; MOST],
    /// How many of these were ever taken at once.
    used: AtomicUsize,
    /// Files without a place.
    beyond: AtomicUsize,
}

/// Addresses; none while the end is zero.
struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
    /// It is mapped for loads alone.
    read_only: AtomicBool,
}

impl Place {
    const fn new() -> Self {
        let (start, end) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { start, end, read_only: AtomicBool::new(false) }
    }

    fn meets(&self, range: &Range<usize>) -> bool {
        let end = self.end.load(Ordering::Acquire);
        range.start < end && self.start.load(Ordering::Relaxed) < range.end
    }
}

impl Places {
    const fn new() -> Self {
        let all = [const { Place::new() }; MOST];
        Self { all, used: AtomicUsize::new(0), beyond: AtomicUsize::new(0) }
    }

    fn take(&'static self, span: &Range<usize>) -> Taken {
        let free = self.all.iter().position(|place| place.end.load(Ordering::Acquire) == 0);
        let place = free.map(|nth| &self.all[nth]);
        match place {
            Some(place) => {
                place.start.store(span.start, Ordering::Relaxed);
                place.read_only.store(false, Ordering::Relaxed);
                place.end.store(span.end, Ordering::Release);
            }
            None => drop(self.beyond.fetch_add(1, Ordering::AcqRel)),
        }
        self.used.fetch_max(free.map_or(0, |nth| nth + 1), Ordering::AcqRel);
        Taken { of: self, place }
    }

    fn used(&self) -> &[Place] {
        &self.all[..self.used.load(Ordering::Acquire)]
    }

    fn meet(&self, range: &Range<usize>) -> bool {
        let used = self.used();
        self.beyond.load(Ordering::Acquire) > 0 || used.iter().any(|place| place.meets(range))
    }

    fn allow_stores(&self, range: &Range<usize>) {
        let met = self.used().iter().filter(|place| place.meets(range));
        met.for_each(|place| place.read_only.store(false, Ordering::Relaxed));
    }

    fn refuse(&self, range: &Range<usize>) -> bool {
        let refuses = |place: &Place| place.read_only.load(Ordering::Relaxed) && place.meets(range);
        self.used().iter().any(refuses)
    }
}

/// Holds a managed file's place, until this is dropped.
pub struct Taken {
    of: &'static Places,
    place: Option<&'static Place>,
}

impl Taken {
    /// Says whether stores are possible there.
    pub fn allow_stores(&self, stores: bool) {
        if let Some(place) = self.place {
            place.read_only.store(!stores, Ordering::Relaxed);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        match self.place {
            Some(place) => place.end.store(0, Ordering::Release),
            None => drop(self.of.beyond.fetch_sub(1, Ordering::AcqRel)),
        }
    }
}

/// Takes a place for a managed file. The caller holds the table.
pub fn take(span: &Range<usize>) -> Taken {
    PLACES.take(span)
}

/// Tells whether some of a range of addresses may be a managed file's.
pub fn meet(range: &Range<usize>) -> bool {
    PLACES.meet(range)
}

/// Notes that the program made a range of addresses writable.
pub fn allow_stores(range: &Range<usize>) {
    PLACES.allow_stores(range);
}

/// Is some of it a managed file's that is mapped for loads alone?
pub fn refuse(range: &Range<usize>) -> bool {
    PLACES.refuse(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_met_while_it_is_taken_and_files_beyond_are_everywhere() {
        static PLACES: Places = Places::new();
        let span = |n: usize| n * 100..n * 100 + 10;
        let mut taken: Vec<Taken> = (1..=MOST).map(|n| PLACES.take(&span(n))).collect();
        assert!([300..301, 295..301, 309..400].iter().all(|range| PLACES.meet(range)));
        assert!([290..300, 310..400].iter().all(|range| !PLACES.meet(range)));
        let beyond = PLACES.take(&(1..2));
        assert!(PLACES.meet(&(310..400)));
        drop(beyond);
        assert!(!PLACES.meet(&(310..400)));
        taken[3].allow_stores(false);
        assert!(PLACES.refuse(&span(4)) && !PLACES.refuse(&span(5)));
        PLACES.allow_stores(&span(4));
        assert!(!PLACES.refuse(&span(4)));
        taken[3].allow_stores(false);
        drop(taken.swap_remove(3));
        taken.push(PLACES.take(&span(4)));
        assert!(!PLACES.refuse(&span(4)), "whoever was there before");
        drop(taken.swap_remove(2));
        assert!(!PLACES.meet(&span(3)));
        assert!(PLACES.meet(&span(4)));
    }
}
