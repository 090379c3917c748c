use super::*;
use mglru_qemu::format::{BORN, EXEC, EXIT, FORK, LOAD, MAGIC, MAP, NAME, OUTSIDE, READ, STORE};

/// Sends messages of processes.
#[derive(Default)]
struct Sender {
    timeline: Timeline,
}

impl Sender {
    fn send(&mut self, process: u64, parent: u64, number: u64, entries: &[&[u64]]) -> Vec<Event> {
        let words = [&[MAGIC, process, parent, number], entries.concat().as_slice()].concat();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.timeline.take(&Message::read(&bytes).unwrap()).unwrap()
    }
}

fn access(time: u64, page: u64, kind: u8) -> [u64; 2] {
    [time, page << 8 | u64::from(kind)]
}

fn payload(kind: u8, words: u64) -> u64 {
    (8 * words) << 8 | u64::from(kind)
}

fn bare(events: &[Event]) -> Vec<(Operation, u32, u64, u64)> {
    events.iter().map(|event| (event.operation, event.space, event.page, event.nr)).collect()
}

#[test]
fn a_mapped_file_has_its_own_space_and_a_store_copies_its_page() {
    let mut sender = Sender::default();
    let map = [1, payload(MAP, 6), 0x10000, 0x3000, 8, 9, 0x2000, 1];
    let loads = [access(2, 0x11, LOAD), access(3, 0x11, STORE), access(4, 0x11, LOAD)];
    let events =
        sender.send(70, 1, 0, &[&map, &loads[0], &loads[1], &loads[2], &access(5, 0x20, STORE)]);
    let wanted = [
        (Operation::Map, 0, 0x10, 3),
        (Operation::Load, 1, 3, 1),
        (Operation::Load, 1, 3, 1),
        (Operation::Store, 0, 0x11, 1),
        (Operation::Load, 0, 0x11, 1),
        (Operation::Store, 0, 0x20, 1),
    ];
    assert_eq!(bare(&events), wanted);
    let names = sender.timeline.names();
    assert_eq!(names, [(0, "process 1".into()), (1, "file 8:9".into())]);
}

#[test]
fn a_transfer_touches_every_page_of_a_named_file() {
    let mut sender = Sender::default();
    let name = [1, 17 << 8 | u64::from(NAME), 8, 9, u64::from(b'f')];
    let read = [2, payload(READ, 4), 8, 9, 4000, 200];
    let events = sender.send(70, 1, 0, &[&name, &read]);
    assert_eq!(bare(&events), [(Operation::Read, 1, 0, 2)]);
    assert_eq!(sender.timeline.names()[1], (1, "f".into()));
}

#[test]
fn a_child_has_the_mappings_of_its_parent_at_the_fork() {
    let mut sender = Sender::default();
    let map = |at, inode| [1, payload(MAP, 6), at, 0x1000, 8, inode, 0, 0];
    sender.send(70, 1, 0, &[&map(0x1000, 9), &[2, payload(FORK, 0)]]);
    sender.send(70, 1, 1, &[&map(0x1000, 10)]);
    let events = sender.send(71, 70, 0, &[&[2, payload(BORN, 0)], &access(3, 1, LOAD)]);
    let wanted = [(Operation::Fork, 0, 2, 1), (Operation::Load, 1, 0, 1)];
    assert_eq!(bare(&events), wanted, "the file that was mapped first");
}

#[test]
fn a_new_program_has_no_mappings_and_keeps_its_process() {
    let mut sender = Sender::default();
    let map = [1, payload(MAP, 6), 0x1000, 0x1000, 8, 9, 0, 0];
    sender.send(70, 1, 0, &[&map]);
    sender.send(70, 1, 1, &[&[5, 8 << 8 | u64::from(EXEC), u64::from_ne_bytes(*b"/bin/cat")]]);
    let events = sender.send(70, 1, 0, &[&access(6, 1, LOAD), &[9, payload(EXIT, 0)]]);
    assert_eq!(bare(&events), [(Operation::Load, 0, 1, 1)]);
    assert!(sender.timeline.names().contains(&(0, "process 1: /bin/cat".into())));
    let counts = sender.timeline.counts();
    let wanted = Counts { processes: 1, instructions: 8, ..Counts::default() };
    assert_eq!(counts, wanted);
}

#[test]
fn damaged_messages_are_refused_or_read_as_something_else() {
    let map = [1, payload(MAP, 6), 0x1000, 0x3000, 8, 9, 0x2000, 1];
    let name = [1, 17 << 8 | u64::from(NAME), 8, 9, u64::from(b'f')];
    let read = [2, payload(READ, 4), 8, 9, 4000, 200];
    let entries: [&[u64]; 6] =
        [&map, &name, &read, &access(3, 2, STORE), &[4, payload(FORK, 0)], &[5, payload(EXIT, 0)]];
    let words = [&[MAGIC, 70, 1, 0], entries.concat().as_slice()].concat();
    let whole: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let (mut random, mut refused) = (1_u64, 0);
    for _ in 0..5000 {
        let mut bytes = whole.clone();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (random >> 33) as usize % bytes.len();
        bytes[at] ^= (random >> 25) as u8 | 1;
        let mut timeline = Timeline::new(16);
        let read = Message::read(&bytes).map(|message| timeline.take(&message));
        refused += u32::from(!matches!(read, Some(Ok(_))));
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn times_are_those_of_windows() {
    let mut sender = Sender { timeline: Timeline::new(16) };
    let events = sender.send(70, 1, 0, &[&access(65_535, 1, LOAD), &access(200_000, 2, LOAD)]);
    assert_eq!(events.iter().map(|event| event.time).collect::<Vec<_>>(), [0, 196_608]);
    assert_eq!(sender.timeline.counts().instructions, 200_000 - 65_535);
}

#[test]
fn what_is_missing_is_counted() {
    let mut sender = Sender::default();
    sender.send(70, 1, 0, &[&access(1, 1, LOAD)]);
    sender.send(70, 1, 3, &[&access(2, 1, LOAD)]);
    let outside = [3, 1 << 8 | u64::from(OUTSIDE), u64::from(b's')];
    sender.send(71, 1, 0, &[&outside]);
    sender.send(71, 1, 1, &[&outside]);
    let counts = sender.timeline.counts();
    assert_eq!((counts.lost, counts.open, counts.processes), (2, 1, 2));
    assert_eq!(counts.outside, ["s"]);
}
