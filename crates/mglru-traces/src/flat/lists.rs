//! Several queues over the same pages, linked by page number. A page is in one queue at most;
//! which one is a byte beside the links.

/// No page.
const NONE: u32 = u32::MAX;
/// The page is in no queue.
const NOWHERE: u8 = u8::MAX;

#[derive(Clone, Copy)]
struct Links {
    newer: u32,
    older: u32,
}

#[derive(Clone, Copy)]
struct Ends {
    newest: u32,
    oldest: u32,
    len: usize,
}

/// `N` queues, numbered from 0.
pub(super) struct Lists<const N: usize> {
    links: Vec<Links>,
    queue_of: Vec<u8>,
    ends: [Ends; N],
}

impl<const N: usize> Lists<N> {
    /// Empty queues over no pages.
    pub(super) fn new() -> Self {
        let empty = Ends { newest: NONE, oldest: NONE, len: 0 };
        Lists { links: Vec::new(), queue_of: Vec::new(), ends: [empty; N] }
    }

    /// Pages numbered below `unique` may be queued from now on.
    pub(super) fn grow(&mut self, unique: u32) {
        self.links.resize(unique as usize, Links { newer: NONE, older: NONE });
        self.queue_of.resize(unique as usize, NOWHERE);
    }

    /// The queue a page is in.
    pub(super) fn queue_of(&self, page: u32) -> Option<usize> {
        let queue = self.queue_of[page as usize];
        (queue != NOWHERE).then_some(queue.into())
    }

    /// Pages in a queue.
    pub(super) fn len(&self, queue: usize) -> usize {
        self.ends[queue].len
    }

    /// Makes a page that is in no queue the newest of one.
    pub(super) fn push(&mut self, queue: usize, page: u32) {
        let ends = &mut self.ends[queue];
        let older = std::mem::replace(&mut ends.newest, page);
        ends.len += 1;
        match older {
            NONE => ends.oldest = page,
            _ => self.links[older as usize].newer = page,
        }
        self.links[page as usize] = Links { newer: NONE, older };
        self.queue_of[page as usize] = queue as u8;
    }

    /// Takes a page out of the queue it is in.
    pub(super) fn remove(&mut self, page: u32) {
        let queue = std::mem::replace(&mut self.queue_of[page as usize], NOWHERE);
        let ends = &mut self.ends[queue as usize];
        let Links { newer, older } = self.links[page as usize];
        ends.len -= 1;
        match newer {
            NONE => ends.newest = older,
            _ => self.links[newer as usize].older = older,
        }
        match older {
            NONE => ends.oldest = newer,
            _ => self.links[older as usize].newer = newer,
        }
    }

    /// Takes the oldest page out of a queue that is not empty.
    pub(super) fn pop(&mut self, queue: usize) -> u32 {
        let page = self.ends[queue].oldest;
        assert!(page != NONE, "queue {queue} is empty");
        self.remove(page);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn queues_equal_plain_vectors(
            steps in proptest::collection::vec((0u32..6, 0usize..3), 0..200),
        ) {
            let mut lists = Lists::<2>::new();
            lists.grow(6);
            let mut model = [Vec::new(), Vec::new()];
            for (page, queue) in steps {
                let now = model.iter().position(|q: &Vec<u32>| q.contains(&page));
                prop_assert_eq!(lists.queue_of(page), now);
                if let Some(now) = now {
                    lists.remove(page);
                    model[now].retain(|&p| p != page);
                }
                match queue {
                    2 if !model[0].is_empty() => {
                        prop_assert_eq!(lists.pop(0), model[0].remove(0));
                    }
                    2 => {}
                    _ => {
                        lists.push(queue, page);
                        model[queue].push(page);
                    }
                }
                prop_assert_eq!([lists.len(0), lists.len(1)], [model[0].len(), model[1].len()]);
            }
        }
    }
}
