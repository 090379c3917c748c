//! Accessed bits that were taken and are not cleared yet. They are cleared together: each call
//! interrupts the processors that run the program. Until then they count as taken, and nothing may
//! happen to the pages' addresses.

use std::ops::Range;
use std::sync::Arc;

use crate::arena::{Arena, Bits};
use crate::sys::memory::zap_all;
use crate::sys::uffd::Span;

/// Runs of addresses.
#[derive(Default)]
pub(super) struct Taken {
    /// Ranges whose entries are to be zapped.
    zaps: Vec<Span>,
    /// Ranges whose bits the kernel keeps, with their arena.
    kept: Vec<(Arc<Arena>, Span)>,
}

impl Taken {
    /// Nothing is to be cleared.
    pub(super) fn is_empty(&self) -> bool {
        self.zaps.is_empty() && self.kept.is_empty()
    }

    /// Takes the bits of an arena's runs.
    pub(super) fn add(&mut self, arena: &Arc<Arena>, runs: impl IntoIterator<Item = Span>) {
        match arena.bits() {
            Bits::Kept => self.kept.extend(runs.into_iter().map(|run| (arena.clone(), run))),
            Bits::Entries => self.zaps.extend(runs),
            // A zap would be the end of a heap's content.
            Bits::Rescues => unreachable!("no bit marks such pages"),
        }
    }

    /// The runs that lie in a range, in part at least.
    pub(super) fn near(&self, range: &Range<u64>) -> Vec<Span> {
        let all = self.zaps.iter().chain(self.kept.iter().map(|(_, run)| run));
        all.filter(|run| run.start < range.end && range.start < run.end()).copied().collect()
    }

    /// Clears the bits that were taken. Heap pages that the program unmapped meanwhile, or while it
    /// forks, keep their bit and count as used once more.
    pub(super) fn clear(&mut self) {
        // SAFETY: the runs are of arenas' views, and are cleared before calls are taken, of which
        // one may cut a view or end an arena.
        #[allow(unsafe_code)]
        let zapped = unsafe { zap_all(&self.zaps) };
        zapped.expect("arenas' pages");
        self.zaps.clear();
        for (arena, run) in self.kept.drain(..) {
            let _ = arena.uffd().clear_accessed(run);
        }
    }
}
