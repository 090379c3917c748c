//! The agenda of the machine: events ordered by time, and by insertion where times are equal, so
//! that no tie is ever left to chance.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use mglru::types::Nanos;

/// Holds the events to come, earliest first.
#[derive(Clone, Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Entry<E>>,
    pushed: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Nanos,
    order: u64,
    event: E,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), pushed: 0 }
    }
}

impl<E> Queue<E> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `event` on the agenda for the time `at`, after those already there for that time.
    pub fn push(&mut self, at: Nanos, event: E) {
        let order = self.pushed;
        self.pushed += 1;
        self.heap.push(Entry { at, order, event });
    }

    /// Takes the earliest event, with its time.
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }

    /// Returns the time of the earliest event.
    pub fn peek_time(&self) -> Option<Nanos> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Counts the events that wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Tells whether nothing is on the agenda.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

// Reversed, because the heap yields its greatest entry.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_first_then_insertion_order() {
        let mut queue = Queue::new();
        for (at, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b'), (5, 'e')] {
            queue.push(at, name);
        }
        assert_eq!(queue.peek_time(), Some(1));
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, name)| name).collect();
        assert_eq!(order, "abcde");
        assert!(queue.is_empty());
    }

    #[test]
    fn ties_hold_across_pops() {
        let mut queue = Queue::new();
        queue.push(1, 'a');
        queue.push(2, 'b');
        assert_eq!(queue.pop(), Some((1, 'a')));
        queue.push(2, 'c');
        queue.push(1, 'd');
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(1, 'd'), (2, 'b'), (2, 'c')]);
        assert_eq!((queue.len(), queue.peek_time()), (0, None));
    }
}
