//! Pages that something holds besides folios, given back last first: runs of pages of one zone.

use crate::task::FreshPage;

/// Holds a stack of pages.
#[derive(Clone, Debug, Default)]
pub struct PageStack {
    runs: Vec<(FreshPage, u64)>,
    count: u64,
}

impl PageStack {
    /// Counts the pages held.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Takes a page in.
    pub fn push(&mut self, page: FreshPage) {
        self.count += 1;
        match self.runs.last_mut() {
            Some((last, run)) if *last == page => *run += 1,
            _ => self.runs.push((page, 1)),
        }
    }

    /// Gives the page back that came last.
    pub fn pop(&mut self) -> Option<FreshPage> {
        let (page, run) = self.runs.last_mut()?;
        let page = *page;
        *run -= 1;
        if *run == 0 {
            self.runs.pop();
        }
        self.count -= 1;
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use mglru::types::{NodeId, Zone};

    use super::*;

    #[test]
    fn pages_come_back_last_first() {
        let page = |zone| FreshPage { order: 0, node: NodeId(0), zone: Zone(zone), pfn: 0 };
        let mut stack = PageStack::default();
        [2, 2, 1, 2].into_iter().for_each(|zone| stack.push(page(zone)));
        assert_eq!((stack.len(), stack.runs.len()), (4, 3));
        let order: Vec<_> = std::iter::from_fn(|| stack.pop()).map(|page| page.zone.0).collect();
        assert_eq!(order, [2, 1, 2, 2]);
        assert_eq!((stack.len(), stack.pop()), (0, None));
    }
}
