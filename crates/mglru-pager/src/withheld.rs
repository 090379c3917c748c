//! Ranges that the program keeps from its children: ranges that read as zeros in them, and ranges
//! that they do not have at all.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::region::Region;

/// Says how a range is kept from children of forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withholding {
    /// Lets a child read zeros (`MADV_WIPEONFORK`).
    Wiped = 0,
    /// Leaves the range unmapped in a child (`MADV_DONTFORK`).
    Absent = 1,
}

/// Lists ranges of addresses by how they are kept from children.
#[derive(Clone, Debug)]
pub struct Ranges([Region; 2]);

impl Ranges {
    /// Does some of the range not reach children?
    pub fn meet(&self, range: &Range<usize>) -> bool {
        self.0.iter().any(|region| region.free_in(range).next().is_some())
    }

    /// Finds the parts of a range that are kept from children, and how.
    pub fn within(&self, range: &Range<usize>) -> Vec<(Range<usize>, Withholding)> {
        let all = [Withholding::Wiped, Withholding::Absent].into_iter();
        let parts = |how: Withholding| self.0[how as usize].free_in(range).map(move |r| (r, how));
        all.flat_map(parts).collect()
    }
}

/// Holds the ranges as of now. A handler looks while the program forks, when the program's threads
/// can allocate nothing: nobody allocates or waits under the lock.
#[derive(Debug)]
pub struct Withheld(Mutex<Arc<Ranges>>);

impl Withheld {
    /// Begins with nothing kept from children.
    pub fn new() -> Self {
        Self(Mutex::new(Arc::new(Ranges([Region::empty(), Region::empty()]))))
    }

    /// Tells the ranges.
    pub fn now(&self) -> Arc<Ranges> {
        self.lock().clone()
    }

    /// Keeps a range from children, or no longer. One caller at a time.
    pub fn set(&self, range: &Range<usize>, how: Withholding, withheld: bool) {
        let mut ranges = Ranges::clone(&self.now());
        let region = &mut ranges.0[how as usize];
        region.claim(range.clone());
        if withheld {
            region.give(range.clone());
        }
        let next = Arc::new(ranges);
        let before = std::mem::replace(&mut *self.lock(), next);
        drop(before);
    }

    /// Forgets what was said of a range: something else is mapped there. One caller at a time.
    pub fn forget(&self, range: &Range<usize>) {
        for how in [Withholding::Wiped, Withholding::Absent] {
            if self.now().0[how as usize].free_in(range).next().is_some() {
                self.set(range, how, false);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Ranges>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_kept_from_children_until_both_reasons_are_gone() {
        let withheld = Withheld::new();
        let range = 0x2000..0x4000;
        withheld.set(&range, Withholding::Wiped, true);
        withheld.set(&range, Withholding::Absent, true);
        withheld.set(&(0x2000..0x3000), Withholding::Absent, false);
        assert!(withheld.now().meet(&(0x2000..0x3000)), "it is still wiped");
        withheld.set(&(0x1000..0x3000), Withholding::Wiped, false);
        assert!(!withheld.now().meet(&(0..0x3000)));
        assert!(withheld.now().meet(&(0x3000..0x4000)));
        let last = [Withholding::Wiped, Withholding::Absent].map(|how| (0x3000..0x4000, how));
        assert_eq!(withheld.now().within(&(0..0x8000)), last);
        withheld.forget(&(0x3000..0x5000));
        assert!(!withheld.now().meet(&(0..0x8000)));
    }
}
