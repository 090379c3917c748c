//! Notes that threads which serve their own faults leave to the arena's handler. Written in a
//! signal handler: nothing is allocated.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::arena::{Arena, Event};
use crate::engine::Note;
use crate::sys::signal;

/// Notes that an arena has room for; a thread that finds none waits for the handler.
const NOTES: usize = 256;
/// Notes that wake the handler: at most 64 slots, 256 KiB of the pool, are freed later than they
/// could be.
const SOME: usize = 64;

/// A note as one word that is not 0.
fn word(note: Note) -> u64 {
    let (kind, value) = match note {
        Note::Touched(page, write) => (1 + u64::from(write), page),
        Note::Happened(Event::Filled, page) => (3, page),
        Note::Happened(Event::Dirtied, page) => (4, page),
        Note::Happened(Event::Dropped, page) => (5, page),
        Note::Free(slot) => (6, slot),
        Note::Happened(Event::Joined, page) => (7, page),
        Note::Happened(Event::Used, page) => (8, page),
        Note::Happened(Event::FilledForStore, page) => (9, page),
    };
    kind << 32 | u64::from(value)
}

/// The note of a word; `None`: there is none.
fn note_of(word: u64) -> Option<Note> {
    let value = word as u32;
    Some(match word >> 32 {
        1 => Note::Touched(value, false),
        2 => Note::Touched(value, true),
        3 => Note::Happened(Event::Filled, value),
        4 => Note::Happened(Event::Dirtied, value),
        5 => Note::Happened(Event::Dropped, value),
        6 => Note::Free(value),
        7 => Note::Happened(Event::Joined, value),
        8 => Note::Happened(Event::Used, value),
        9 => Note::Happened(Event::FilledForStore, value),
        _ => return None,
    })
}

/// Holds the state of an arena whose faults are signalled.
#[derive(Debug)]
pub struct Notes {
    words: [AtomicU64; NOTES],
    /// Rounds of the handler.
    rounds: AtomicU32,
}

impl Default for Notes {
    fn default() -> Self {
        Self { words: [const { AtomicU64::new(0) }; NOTES], rounds: AtomicU32::new(0) }
    }
}

impl Notes {
    /// Leaves a note. A fault wakes the handler; other notes can wait until there are several.
    pub fn leave(&self, note: Note, arena: &Arena) {
        let nth = loop {
            match self.put(note) {
                Some(nth) => break nth,
                None => arena.ring_handlers(),
            }
            std::thread::yield_now();
        };
        if nth >= SOME || matches!(note, Note::Touched(..)) {
            arena.ring_handlers();
        }
    }

    /// Puts a note and returns its place; `None`: there is no room. One note is enough for a fault
    /// that repeats before the note was read.
    fn put(&self, note: Note) -> Option<usize> {
        let (own, repeats) = (word(note), matches!(note, Note::Touched(..)));
        self.words.iter().position(|word| {
            let free = word.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
            free.is_ok() || repeats && free == Err(own)
        })
    }

    /// Takes what was left.
    pub fn take(&self) -> impl Iterator<Item = Note> + '_ {
        let full = self.words.iter().filter(|word| word.load(Ordering::Relaxed) != 0);
        full.filter_map(|word| note_of(word.swap(0, Ordering::AcqRel)))
    }

    /// Counts the rounds so far.
    pub fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Acquire)
    }

    /// Waits for a round after `seen`, or for so long.
    pub fn wait(&self, seen: u32, at_most: Duration) {
        signal::wait(&self.rounds, seen, at_most);
    }

    /// Records that the handler has been through its work: threads that wait judge their faults
    /// again.
    pub fn round_is_over(&self) {
        self.rounds.fetch_add(1, Ordering::AcqRel);
        signal::wake_all(&self.rounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        for note in [
            Note::Touched(0, false),
            Note::Touched(u32::MAX, true),
            Note::Happened(Event::Filled, 7),
            Note::Happened(Event::FilledForStore, 7),
            Note::Happened(Event::Dirtied, 8),
            Note::Happened(Event::Dropped, 9),
            Note::Happened(Event::Joined, 10),
            Note::Free(1),
        ] {
            assert_eq!(note_of(word(note)), Some(note));
        }
        assert_eq!(note_of(0), None);
    }

    #[test]
    fn a_fault_that_is_repeated_takes_no_more_room() {
        let notes = Notes::default();
        let (fault, other) = (Note::Touched(7, true), Note::Touched(7, false));
        assert!((0..2 * NOTES).all(|_| notes.put(fault).is_some()));
        assert!(notes.put(other).is_some());
        assert_eq!(notes.take().collect::<Vec<_>>(), [fault, other]);
        let happened = Note::Happened(Event::Filled, 7);
        assert!((0..NOTES).all(|_| notes.put(happened).is_some()));
        assert_eq!(notes.put(happened), None, "each of these is one of its own");
        assert_eq!(notes.take().count(), NOTES);
    }
}
