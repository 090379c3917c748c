//! Small kernel objects, several to a page. A page is given back when its last object is freed:
//! objects of different ages in one page keep it.

use super::Pfn;

/// Names one page of objects, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabPage(u32);

#[derive(Clone, Copy, Debug)]
struct Page {
    pfn: Pfn,
    used: u16,
}

/// Holds a cache of objects of one size.
#[derive(Clone, Debug)]
pub struct SlabCache {
    per_page: u16,
    pages: Vec<Page>,
    /// Pages with room, the one to fill last.
    partial: Vec<u32>,
    free: Vec<u32>,
    objects: u64,
}

impl SlabCache {
    /// Creates an empty cache with so many objects to a page.
    pub fn new(per_page: u16) -> Self {
        let (pages, partial, free) = (Vec::new(), Vec::new(), Vec::new());
        Self { per_page, pages, partial, free, objects: 0 }
    }

    /// Objects in use.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Counts pages in use.
    pub fn nr_pages(&self) -> u64 {
        (self.pages.len() - self.free.len()) as u64
    }

    /// Allocates a new object; `new_page` is asked for a page when none has room.
    pub fn alloc(&mut self, new_page: impl FnOnce() -> Option<Pfn>) -> Option<SlabPage> {
        let at = match self.partial.last() {
            Some(&at) => at,
            None => self.add_page(new_page()?),
        };
        let page = &mut self.pages[at as usize];
        page.used += 1;
        if page.used == self.per_page {
            self.partial.pop();
        }
        self.objects += 1;
        Some(SlabPage(at))
    }

    fn add_page(&mut self, pfn: Pfn) -> u32 {
        let page = Page { pfn, used: 0 };
        let at = match self.free.pop() {
            Some(at) => {
                self.pages[at as usize] = page;
                at
            }
            None => {
                self.pages.push(page);
                self.pages.len() as u32 - 1
            }
        };
        self.partial.push(at);
        at
    }

    /// Frees an object. The page it was the last one of is to be given back.
    pub fn free(&mut self, SlabPage(at): SlabPage) -> Option<Pfn> {
        let page = &mut self.pages[at as usize];
        debug_assert!(page.used > 0, "slab page {at} is empty");
        let was_full = page.used == self.per_page;
        page.used -= 1;
        self.objects -= 1;
        if page.used == 0 {
            let pfn = page.pfn;
            self.partial.retain(|&p| p != at);
            self.free.push(at);
            return Some(pfn);
        }
        if was_full {
            // Not the next to be filled: the page in use goes on being filled first.
            self.partial.insert(0, at);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_given_back_with_its_last_object() {
        let mut cache = SlabCache::new(2);
        let mut next = 100;
        let mut alloc = |cache: &mut SlabCache| {
            cache.alloc(|| {
                next += 1;
                Some(next)
            })
        };
        let objects: Vec<SlabPage> = (0..4).map(|_| alloc(&mut cache).unwrap()).collect();
        assert_eq!((cache.objects(), cache.nr_pages()), (4, 2));
        assert_eq!(cache.free(objects[0]), None);
        assert_eq!(alloc(&mut cache), Some(objects[0]), "a freed place is used again");
        assert_eq!((cache.free(objects[2]), cache.free(objects[3])), (None, Some(102)));
        assert_eq!((cache.objects(), cache.nr_pages()), (2, 1));
        assert!(cache.alloc(|| None).is_none(), "one page has no room, and there is no other");
    }
}
