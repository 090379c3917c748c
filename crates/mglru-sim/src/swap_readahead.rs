//! Swap readahead: a fault on a page that is on a swap device brings in neighbours by address. How
//! many depends on how many of those brought in before were used (spec §K71.8).

use std::ops::Range;

use mglru_workload::RegionId;

use crate::charge::Page;
use crate::machine::Machine;
use crate::page_table::{Maps, TABLE_ENTRIES};
use crate::task::{Fault, Flow};

/// Uses counted at most.
const MOST_HITS: u32 = 63;

/// Records a mapping's last faults on swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapReadahead {
    last: u32,
    window: u32,
    hits: u32,
}

impl Default for SwapReadahead {
    fn default() -> Self {
        Self { last: 0, window: 0, hits: 4 }
    }
}

impl SwapReadahead {
    /// Records that a page was found in the swap cache, where readahead had brought it or not.
    pub fn used(&mut self, page: u32, ahead: bool) {
        self.last = page;
        self.hits = (self.hits + u32::from(ahead)).min(MOST_HITS);
    }

    /// Returns the pages to bring in for a fault, `most` at most, of a mapping of so many: onwards
    /// where faults go up, backwards where they go down, else around the page. Never beyond its
    /// table.
    pub fn window(&mut self, page: u32, most: u32, pages: u32) -> Range<u32> {
        let size = self.size(page, most);
        let first = if page == self.last.wrapping_add(1) {
            page
        } else if page.wrapping_add(1) == self.last {
            (page + 1).saturating_sub(size)
        } else {
            page.saturating_sub((size - 1) / 2)
        };
        *self = Self { last: page, window: size, hits: 0 };
        let table = page / TABLE_ENTRIES * TABLE_ENTRIES;
        first.max(table)..(first + size).min(table + TABLE_ENTRIES).min(pages)
    }

    fn size(&self, page: u32, most: u32) -> u32 {
        let near = page.abs_diff(self.last) == 1;
        let wanted = match self.hits + 2 {
            2 if !near => 1,
            2 => 2,
            more => more.next_power_of_two().max(4),
        };
        wanted.min(most).max(self.window / 2)
    }
}

/// Describes a window under way: the fault it is for, and the pages still to look at.
pub type Window = (RegionId, u32, Range<u32>);

impl Machine {
    /// Brings in the neighbours of a faulting page. `Some`: the task must wait meanwhile.
    pub(crate) fn read_swap_ahead(&mut self, t: usize, fault: Fault) -> Option<Flow> {
        if self.swap_cluster <= 1 {
            return None;
        }
        let held = self.tasks[t].swap_window.take();
        let window =
            held.filter(|(region, page, _)| (*region, *page) == (fault.region, fault.page));
        let mut left = window.map_or_else(|| self.swap_window(fault), |(_, _, left)| left);
        while let Some(page) = left.clone().next() {
            if page != fault.page && self.is_only_on_swap(fault.region, page) {
                match self.take_page(t, true) {
                    Page::Held(flow) => {
                        self.tasks[t].swap_window = Some((fault.region, fault.page, left));
                        return Some(flow);
                    }
                    Page::Refused => break,
                    Page::Ready(fresh) => self.swap_in_ahead(t, Fault { page, ..fault }, fresh),
                }
            }
            left.start += 1;
        }
        // What is left of it is done: nothing more is brought in until the fault is over.
        self.tasks[t].swap_window = Some((fault.region, fault.page, 0..0));
        None
    }

    fn swap_window(&mut self, fault: Fault) -> Range<u32> {
        let most = self.swap_cluster;
        let vma = self.world.spaces.vma_mut(fault.region);
        let pages = vma.pages();
        vma.swap_readahead.window(fault.page, most, pages)
    }

    fn is_only_on_swap(&self, region: RegionId, page: u32) -> bool {
        let Maps::Swap(slot) = self.world.maps(region, page) else { return false };
        self.world.swap_cache(slot).is_none() && self.world.swap.is_on_device(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_with_use_and_shrink_by_half() {
        let mut ahead = SwapReadahead::default();
        assert_eq!(ahead.window(1, 8, 1000), 1..9, "upwards, with four hits to begin with");
        (2..9).for_each(|page| ahead.used(page, true));
        assert_eq!(ahead.window(9, 8, 1000), 9..17);
        assert_eq!(ahead.window(500, 8, 1000), 499..503, "none was used: half, around the page");
        assert_eq!(ahead.window(300, 8, 1000), 300..302);
        assert_eq!(ahead.window(200, 8, 1000), 200..201);
        assert_eq!(ahead.window(199, 8, 1000), 198..200, "a neighbour: two, downwards");
    }

    #[test]
    fn windows_end_with_the_mapping_and_the_table() {
        let window = |page, pages| SwapReadahead::default().window(page, 8, pages);
        assert_eq!((window(515, 1000), window(512, 1000)), (512..520, 512..517));
        assert_eq!((window(511, 1000), window(98, 100)), (508..512, 95..100));
    }
}
