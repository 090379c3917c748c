//! Compact traces whole and damaged.

use super::layout::{BLOCK_EVENTS, BLOCK_HEAD_BYTES, HEAD_BYTES, checksum};
use super::*;
use crate::rng::{Rng, splitmix};
use crate::trace::event::{Event, Head, Operation, TimeUnit};
use crate::trace::tests::File;
use crate::trace::{TraceError, TraceReader, View};

const HEAD: Head = Head { page_shift: 12, time: TimeUnit::Nanosecond, spaces: true };

fn written(head: Head, events: &[Event]) -> Vec<u8> {
    let mut writer = EventWriter::new(Vec::new(), head).unwrap();
    writer.name(1, "größe").unwrap();
    events.iter().for_each(|event| writer.event(event).unwrap());
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<Event>, TraceError> {
    let file = File::new("t", bytes);
    let mut reader = EventReader::open(&file.0)?;
    let mut all = Vec::new();
    while let Some(event) = reader.event()? {
        all.push(event);
    }
    Ok(all)
}

fn requests(bytes: &[u8]) -> Result<Vec<(u64, bool)>, TraceError> {
    crate::trace::tests::read(&File::new("t.any.name.lis", bytes), View::Requests)
}

/// Scans, loops, hot pages, far pages, times that run backwards, of several spaces.
fn mixed(nr: usize) -> Vec<Event> {
    let mut rng = Rng::new(7, 0);
    let operations = Operation::ALL;
    let event = |at: usize| {
        let page = match at / 1000 % 4 {
            0 => at as u64,
            1 => rng.below(50),
            2 => splitmix(rng.below(300)) >> (at % 60),
            _ => rng.below(1 << 22),
        };
        let nr = [1, 1, 1, 2, 254, 255, 70_000][rng.below(7) as usize];
        Event {
            time: splitmix(at as u64) >> (at % 64),
            operation: operations[rng.below(8) as usize],
            space: rng.below(3) as u32 * u32::from(u16::MAX),
            page: page.min(u64::MAX - nr + 1),
            nr,
        }
    };
    (0..nr).map(event).collect()
}

#[test]
fn events_come_back() {
    let mut events = mixed(2 * BLOCK_EVENTS + 5);
    events.push(Event { page: u64::MAX, nr: 1, time: u64::MAX, ..events[0] });
    assert!(read(&written(HEAD, &events)).unwrap() == events);
    for nr in [0, 1, BLOCK_EVENTS - 1, BLOCK_EVENTS] {
        assert!(read(&written(HEAD, &events[..nr])).unwrap() == events[..nr], "{nr}");
    }
}

#[test]
fn names_of_spaces_come_back_cut_to_their_bound() {
    let mut writer = EventWriter::new(Vec::new(), HEAD).unwrap();
    writer.name(5, "a file").unwrap();
    writer.name(6, &"ä".repeat(5000)).unwrap();
    writer.event(&Event { space: 5, nr: 1, ..Event::default() }).unwrap();
    let file = File::new("t", writer.finish().unwrap());
    let mut reader = EventReader::open(&file.0).unwrap();
    reader.event().unwrap();
    let expected = [(5, "a file".to_string()), (6, "ä".repeat(2048))];
    assert_eq!(reader.names().unwrap(), expected);
    assert_eq!(reader.head(), HEAD);
}

#[test]
fn pages_that_no_longer_fit_are_forgotten_by_both_sides() {
    // Every page is new, and after all of them the first ones come again.
    let page = |at: u64| splitmix(at % 4_500_000);
    let all: Vec<Event> =
        (0..4_700_000).map(|at| Event { page: page(at), nr: 1, ..Event::default() }).collect();
    let bytes = written(Head { spaces: false, ..HEAD }, &all);
    let found = requests(&bytes).unwrap();
    assert!(found.iter().map(|&(page, _)| page).eq(all.iter().map(|event| event.page)));
}

#[test]
fn requests_are_the_accesses_page_by_page_and_spaces_stay_apart() {
    let event = |operation, space, page, nr| Event { time: 0, operation, space, page, nr };
    let events = [
        event(Operation::Read, 0, 5, 2),
        event(Operation::Map, 0, 0, 1 << 40),
        event(Operation::Store, 7, 5, 1),
        event(Operation::Write, 0, (1 << 20) - 1, 2),
        event(Operation::Load, 0, 5, 1),
    ];
    let chunk = 1 << 20;
    let expected = [
        (5, false),
        (6, false),
        (chunk + 5, true),
        (chunk - 1, true),
        (2 * chunk, true),
        (5, false),
    ];
    assert_eq!(requests(&written(HEAD, &events)).unwrap(), expected);
    let one = written(Head { spaces: false, ..HEAD }, &[event(Operation::Write, 0, u64::MAX, 1)]);
    assert_eq!(requests(&one).unwrap(), [(u64::MAX, true)]);
}

#[test]
fn damage_is_reported_with_its_place() {
    let bytes = written(HEAD, &mixed(3000));
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let cases: [(usize, &str); 4] = [
        (8, "version 0"),
        (10, "checksum of the head"),
        (HEAD_BYTES + BLOCK_HEAD_BYTES + 100, "byte 16 of the trace: damaged: the checksum of a"),
        (bytes.len() - 1, "damaged: the end mark"),
    ];
    for (at, expected) in cases {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(message(&damaged).contains(expected), "{at}: {}", message(&damaged));
    }
    assert!(message(&[&bytes[..], b"x"].concat()).contains("trailing junk"));
    for cut in (9..bytes.len()).step_by(97) {
        assert!(message(&bytes[..cut]).contains("the compact stream ends early"), "{cut}");
    }
}

#[test]
fn a_block_with_a_right_checksum_and_wrong_content_is_refused_or_read() {
    let small: Vec<Event> = mixed(500).into_iter().map(|e| Event { nr: 1, ..e }).collect();
    let whole = written(HEAD, &small);
    let block = HEAD_BYTES..whole.len() - 20;
    let mut refused = 0;
    for seed in 0..300u64 {
        let mut bytes = whole.clone();
        let at = block.start + splitmix(seed) as usize % block.len();
        bytes[at] ^= 1 << (seed % 8);
        let sum = checksum(&[&bytes[block.clone()]]);
        bytes[block.end..block.end + 4].copy_from_slice(&sum.to_le_bytes());
        refused += u32::from(read(&bytes).is_err());
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn the_name_of_the_file_does_not_matter() {
    let bytes = written(HEAD, &mixed(10));
    let file = File::new("t.trc.gz", crate::trace::packed_tests::gzip(&bytes));
    let reader = TraceReader::open(&file.0, None, View::Requests).unwrap();
    assert_eq!(reader.format(), crate::trace::Format::Compact);
    let text = File::new("t", "1\n2\n3\n");
    let error = TraceReader::open(&text.0, Some("compact".parse().unwrap()), View::Requests);
    assert!(error.err().unwrap().to_string().contains("text, where compact has binary"));
}

#[test]
fn mutants_are_read_as_the_whole_or_refused_in_one_line() {
    let events = mixed(2000);
    let whole = written(HEAD, &events);
    let mut refused = 0;
    for seed in 0..200 {
        match read(&crate::trace::mutation_tests::mutant(&whole, seed)) {
            Ok(found) => assert!(found == events, "{seed}"),
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
    assert!(refused > 150, "{refused} refused");
}
