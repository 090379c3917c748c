//! Swapped pages that are likely to be next: where misses follow each other, the pages of the
//! compressed pool that come after are unpacked with the one that is missed. They are not mapped,
//! so that their first use is seen; they keep their slots, so that one that was brought in vain
//! goes again for nothing.

use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use super::{CLUSTER, Handler};
use crate::arena::Access;
use crate::swap::Loaded;

/// Records where an arena's last misses of swap were, whichever handler served them.
#[derive(Debug, Default)]
pub struct Ahead {
    /// The page that comes after what they brought.
    next: u32,
    window: u32,
}

impl Ahead {
    /// How many pages to bring after this one: twice as many as the last time for as long as
    /// misses follow each other.
    fn window(&mut self, page: u32, access: Access) -> u32 {
        self.window = match access {
            Access::Random => 0,
            Access::Sequential => CLUSTER,
            Access::Normal if page == self.next => (self.window * 2).clamp(1, CLUSTER),
            Access::Normal => 0,
        };
        self.window
    }
}

impl Handler {
    /// A page was swapped in: brings those that are likely to be next.
    pub(super) fn swap_ahead(&mut self, page: u32) {
        if self.arena.is_heap() {
            return;
        }
        let window = self.ahead().window(page, self.arena.access());
        let end = page.saturating_add(1 + window).min(self.arena.pages().len());
        let brought = self.bring_pooled(page + 1..end);
        self.ahead().next = page + 1 + brought;
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.shared.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to the first page that is not in the pool, or finds no room. How many it was.
    fn bring_pooled(&mut self, pages: Range<u32>) -> u32 {
        let arena = self.arena.clone();
        let (first, mut at) = (pages.start, pages.start);
        while at < pages.end {
            if arena.pages().slot(at) == 0 || !self.join(at) {
                break;
            }
            // Another handler may have served it meanwhile.
            let slot = arena.pages().slot(at);
            if slot == 0 {
                self.installer.give_up(at);
                break;
            }
            match arena.swap().load(slot, &mut self.page, &mut self.scratch) {
                Loaded::Content => {
                    // Count first: a thread that finds the page must find it counted.
                    arena.counters().add_read_around(1);
                    self.installer.install_unmapped(at, &self.page);
                }
                Loaded::ToRead(_) => {
                    self.installer.give_up(at);
                    break;
                }
            }
            at += 1;
        }
        at - first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_while_misses_follow_each_other() {
        let mut ahead = Ahead::default();
        let mut miss = |page, access| {
            let window = ahead.window(page, access);
            ahead.next = page + 1 + window;
            window
        };
        let windows = [100, 101, 103, 106, 111, 120, 137].map(|page| miss(page, Access::Normal));
        assert_eq!(windows, [0, 1, 2, 4, 8, 16, 16]);
        assert_eq!(miss(500, Access::Normal), 0);
        assert_eq!(miss(501, Access::Random), 0);
        assert_eq!(miss(900, Access::Sequential), CLUSTER);
    }
}
