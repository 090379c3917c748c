//! The ring: its policy thread writes, another thread or process reads, and neither waits for the
//! other. An event that finds no room is dropped and counted.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use mglru::host::TraceEvent;

use super::Event;
use super::slot::{self, WORDS};
use crate::sys::clock;
use crate::sys::words::Words;
use crate::sys::{self, PAGE};

/// Words of the header: a page, so that slots begin on one.
const HEADER: usize = PAGE / size_of::<u64>();
/// Where the header has what, each on a cache line of its own.
const WRITTEN: usize = 0;
const LOST: usize = 1;
const THREAD: usize = 2;
const SIZE: usize = 3;
const FAULTS: usize = 4;
const READ: usize = 16;

/// Sets the slots of a ring unless a caller says otherwise: half a second of a program that does
/// nothing but fault (7000 events a second).
pub const SLOTS: usize = 4096;

/// Describes an event that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Says when it happened: nanoseconds of CLOCK_MONOTONIC.
    pub at: u64,
    /// Numbers the processor.
    pub cpu: u32,
    /// Says what happened.
    pub event: Event,
}

/// Makes a ring for at least so many events of reclaim, for threads of one process.
///
/// # Errors
/// There is no memory for it.
pub fn channel(slots: usize) -> io::Result<(EventSender, EventReader)> {
    let (reader, file) = EventReader::create(slots, false)?;
    Ok((EventSender::map(&file)?, reader))
}

/// How many slots a ring has, a power of two; `None`: these words are no ring.
fn capacity(words: &Words) -> Option<u64> {
    let slots = words.len().checked_sub(HEADER)? / WORDS;
    let said = words[SIZE].load(Acquire);
    (said.is_power_of_two() && said <= slots as u64).then_some(said)
}

/// Returns the words of a slot.
fn at(capacity: u64, nth: u64) -> std::ops::Range<usize> {
    let start = HEADER + (nth & (capacity - 1)) as usize * WORDS;
    start..start + WORDS
}

/// Writes events to a ring. It never waits and never allocates.
#[derive(Debug)]
pub struct EventSender {
    words: Words,
    capacity: u64,
    written: u64,
}

impl EventSender {
    /// Maps a ring that a reader made.
    pub(super) fn map(file: &File) -> io::Result<Self> {
        let words = Words::map(file)?;
        let capacity = capacity(&words).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { written: words[WRITTEN].load(Relaxed), words, capacity })
    }

    /// Returns how much memory the ring takes, bytes.
    pub fn bytes(&self) -> u64 {
        size_of_val::<[_]>(&self.words) as u64
    }

    /// Writes that a use brought a page, if the reader wants such events.
    pub(crate) fn send_fault(&mut self, address: u64, write: bool) {
        if self.words[FAULTS].load(Relaxed) != 0 {
            self.send_event(&Event::Fault { address, write });
        }
    }

    /// Writes what reclaim has just done, or counts it as lost.
    pub(crate) fn send(&mut self, event: &TraceEvent) {
        self.send_event(&Event::Reclaim(*event));
    }

    fn send_event(&mut self, event: &Event) {
        let read = self.words[READ].load(Acquire);
        if self.written.wrapping_sub(read) >= self.capacity {
            let lost = self.words[LOST].load(Relaxed);
            return self.words[LOST].store(lost + 1, Release);
        }
        let (thread, cpu) = sys::here();
        self.words[THREAD].store(thread.into(), Relaxed);
        let slot = &self.words[at(self.capacity, self.written)];
        let words = slot::encode(clock::monotonic(), cpu, event);
        slot.iter().zip(words).for_each(|(word, value)| word.store(value, Relaxed));
        self.written += 1;
        self.words[WRITTEN].store(self.written, Release);
    }
}

/// Reads events from a ring, in the order in which they were written.
#[derive(Debug)]
pub struct EventReader {
    words: Words,
    capacity: u64,
    read: u64,
}

impl EventReader {
    /// Makes a ring for at least so many events, faults among them if they are wanted, and the
    /// file by which its writer maps it.
    pub(super) fn create(slots: usize, faults: bool) -> io::Result<(Self, File)> {
        let slots = slots.max(1).next_power_of_two();
        let (words, file) = Words::create(HEADER + slots * WORDS)?;
        words[FAULTS].store(faults.into(), Relaxed);
        words[SIZE].store(slots as u64, Release);
        Ok((Self { words, capacity: slots as u64, read: 0 }, file))
    }

    /// Appends what was written since the last call.
    pub fn read(&mut self, out: &mut Vec<Recorded>) {
        let written = self.words[WRITTEN].load(Acquire);
        // A writer cannot be further ahead; one that says so is not read beyond the ring.
        let until = written.min(self.read.saturating_add(self.capacity));
        while self.read < until {
            let slot = &self.words[at(self.capacity, self.read)];
            let words = std::array::from_fn(|nth| slot[nth].load(Relaxed));
            out.extend(slot::decode(&words).map(|(at, cpu, event)| Recorded { at, cpu, event }));
            self.read += 1;
        }
        self.words[READ].store(self.read, Release);
    }

    /// Counts events that found no room.
    pub fn lost(&self) -> u64 {
        self.words[LOST].load(Acquire)
    }

    /// Returns the number of the thread that wrote.
    pub fn thread(&self) -> u32 {
        self.words[THREAD].load(Acquire) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn event(reclaimed: u64) -> TraceEvent {
        TraceEvent::CallEnds { target: None, reclaimed }
    }

    fn numbers(events: &[Recorded]) -> Vec<u64> {
        let number = |recorded: &Recorded| match recorded.event {
            Event::Reclaim(TraceEvent::CallEnds { reclaimed, .. }) => reclaimed,
            other => panic!("{other:?} was not sent"),
        };
        events.iter().map(number).collect()
    }

    #[test]
    fn what_finds_no_room_is_counted_and_the_rest_comes_in_order() {
        let (mut sender, mut reader) = channel(8).unwrap();
        let mut got = Vec::new();
        (0..11).for_each(|n| sender.send(&event(n)));
        reader.read(&mut got);
        assert_eq!((numbers(&got), reader.lost()), ((0..8).collect(), 3));
        (11..14).for_each(|n| sender.send(&event(n)));
        got.clear();
        reader.read(&mut got);
        assert_eq!((numbers(&got), reader.lost()), ((11..14).collect(), 3));
        assert!(got.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert_ne!(reader.thread(), 0);
    }

    /// Nothing is lost in between that is not counted.
    #[test]
    fn a_reader_beside_the_writer_gets_all_that_is_not_lost() {
        const ALL: u64 = 200_000;
        let (mut sender, mut reader) = channel(64).unwrap();
        let writer = std::thread::spawn(move || (0..ALL).for_each(|n| sender.send(&event(n))));
        let (mut got, late) = (Vec::new(), Instant::now() + Duration::from_secs(60));
        while got.len() as u64 + reader.lost() < ALL {
            assert!(Instant::now() < late, "{} and {} lost", got.len(), reader.lost());
            reader.read(&mut got);
        }
        writer.join().unwrap();
        let got = numbers(&got);
        assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(got[0], 0);
    }

    #[test]
    fn a_writer_that_claims_too_much_is_not_believed() {
        let (_sender, mut reader) = channel(8).unwrap();
        reader.words[WRITTEN].store(u64::MAX, Release);
        let mut got = Vec::new();
        reader.read(&mut got);
        assert!(got.is_empty(), "the slots are empty");
    }

    #[test]
    fn faults_are_sent_to_a_reader_that_wants_them() {
        for wanted in [false, true] {
            let (mut reader, file) = EventReader::create(8, wanted).unwrap();
            EventSender::map(&file).unwrap().send_fault(0x5000, true);
            let mut got = Vec::new();
            reader.read(&mut got);
            let events: Vec<Event> = got.iter().map(|recorded| recorded.event).collect();
            let all = [Event::Fault { address: 0x5000, write: true }];
            assert_eq!(events, &all[..usize::from(wanted)]);
        }
    }

    #[test]
    fn a_ring_takes_what_is_said() {
        let (sender, _reader) = channel(SLOTS).unwrap();
        assert_eq!(sender.bytes(), (256 + 4) << 10);
    }
}
