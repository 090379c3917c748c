use prost::Message;

use super::proto::{Kind, Trace, TracePacket, TrackEvent};
use super::*;

fn event<'a>(at: u64, name: &'a str, fields: &'a str) -> Event<'a> {
    Event { at, flags: ".....", cpu: 1, comm: "touch-x", pid: 1001, name, fields }
}

fn packets(events: &[Event<'_>]) -> Vec<TracePacket> {
    let (mut perfetto, mut out) = (Perfetto::default(), Vec::new());
    events.iter().for_each(|event| perfetto.event(&mut out, event).unwrap());
    Trace::decode(&out[..]).unwrap().packet
}

fn track_events(events: &[Event<'_>]) -> Vec<(u64, Kind, Option<String>)> {
    let event_of = |packet: TracePacket| {
        let TrackEvent { kind, name, .. } = packet.track_event?;
        Some((packet.timestamp?, Kind::try_from(kind?).ok()?, name))
    };
    packets(events).into_iter().filter_map(event_of).collect()
}

#[test]
fn a_line_is_read_as_it_was_written() {
    let event = event(12_000_345_678_000, "mm_vmscan_kswapd_wake", "nid=0 order=2");
    let mut line = Vec::new();
    text::write(&mut line, &event).unwrap();
    let line = String::from_utf8(line).unwrap();
    assert_eq!(
        line,
        "         touch-x-1001    [001] ..... 12000.345678: mm_vmscan_kswapd_wake: nid=0 order=2\n"
    );
    assert_eq!(parse(line.trim_end()).unwrap().event(), event);
}

/// Lines of a booted 6.12.117, and what is none.
#[test]
fn lines_of_a_kernel_are_read() {
    let line = "            init-149     [000] d..1.     5.516463: mm_vmscan_lru_isolate: \
                classzone=4 order=0 nr_requested=4096 nr_scanned=88 nr_skipped=0 nr_taken=64 \
                lru=inactive_file";
    let read = parse(line).unwrap();
    assert_eq!((read.at, read.pid, read.cpu, read.comm.as_str()), (5_516_463_000, 149, 0, "init"));
    assert_eq!(fields(&read.fields).nth(3), Some(("nr_scanned", "88")));
    let cached = "mm_filemap_add_to_page_cache: dev 254:0 ino c pfn=0x7d69 ofs=5431296 order=0";
    let read = parse(&format!("kworker/u4:1-12 (-----) [001] 5.501746: {cached}")).unwrap();
    assert_eq!(read.comm, "kworker/u4:1");
    let found: Vec<_> = fields(&read.fields).take(3).collect();
    assert_eq!(found, [("dev", "254:0"), ("ino", "c"), ("pfn", "0x7d69")]);
    assert_eq!(fields("bdi 8:0: limit=5").collect::<Vec<_>>(), [("bdi", "8:0"), ("limit", "5")]);
    let none = ["", "# tracer: nop", "CPU:0 [LOST 5 EVENTS]", "a-1 [000] ..... 1.5: x: y"];
    assert!(none.iter().all(|line| parse(line).is_none()));
}

#[test]
fn calls_and_waits_are_slices_and_others_instants() {
    let seen = track_events(&[
        event(500, "mm_vmscan_memcg_reclaim_end", "nr_reclaimed=3"),
        event(1_000, "mm_vmscan_memcg_reclaim_begin", "order=0 gfp_flags=GFP_KERNEL"),
        event(
            9_000_000,
            "mm_vmscan_throttled",
            "nid=0 usec_timeout=100 usect_delayed=4000 reason=R",
        ),
        event(9_000_500, "mm_vmscan_memcg_reclaim_end", "nr_reclaimed=59"),
        event(9_000_600, "mark_victim", "pid=1 comm=x"),
    ]);
    let named = |at, kind, name: &str| (at, kind, Some(name.to_string()));
    assert_eq!(
        seen,
        [
            named(500, Kind::Instant, "mm_vmscan_memcg_reclaim_end"),
            named(1_000, Kind::SliceBegin, "mm_vmscan_memcg_reclaim"),
            named(5_000_000, Kind::SliceBegin, "R"),
            (9_000_000, Kind::SliceEnd, None),
            (9_000_500, Kind::SliceEnd, None),
            named(9_000_600, Kind::Instant, "mark_victim"),
        ]
    );
}

#[test]
fn a_task_is_described_once_and_levels_are_counters() {
    let (mut perfetto, mut out) = (Perfetto::default(), Vec::new());
    for at in [7, 8] {
        perfetto.event(&mut out, &event(at, "mark_victim", "pid=5 comm=x")).unwrap();
        perfetto.levels(&mut out, at, [("free", at * 10), ("anon", 3)].into_iter()).unwrap();
    }
    let packets = Trace::decode(&out[..]).unwrap().packet;
    let tracks: Vec<_> = packets.iter().filter_map(|p| p.track_descriptor.as_ref()).collect();
    assert_eq!(tracks.len(), 3);
    assert_eq!(tracks[0].thread.as_ref().unwrap().thread_name.as_deref(), Some("touch-x"));
    assert_eq!(tracks[1].name.as_deref(), Some("free"));
    let counts = packets.iter().filter_map(|p| p.track_event.as_ref()?.counter_value);
    assert_eq!(counts.collect::<Vec<_>>(), [70, 3, 80, 3]);
    let annotations = &packets[1].track_event.as_ref().unwrap().debug_annotations;
    assert_eq!(annotations[0].int_value, Some(5));
    assert_eq!(annotations[1].string_value.as_deref(), Some("x"));
}

/// The bytes of one packet, taken apart by hand: numbers of fields are Perfetto's, whatever our
/// messages say. Its own Python package reads the same from them.
#[test]
fn field_numbers_are_those_of_perfetto() {
    let (mut perfetto, mut out) = (Perfetto::default(), Vec::new());
    perfetto.event(&mut out, &event(3, "e_begin", "")).unwrap();
    let first = usize::from(out[1]) + 2;
    let key = |field: u8, wire: u8| field << 3 | wire;
    // A packet: its time (8), its sequence (10), an event (11) in which type (9) is 1, the track
    // (11) 1 << 32 and 1001, the category (22, two bytes) and the name (23).
    let packet = [
        &[key(1, 2), 30, key(8, 0), 3, key(10, 0), 1, key(11, 2), 24, key(9, 0), 1][..],
        &[key(11, 0), 0xe9, 0x87, 0x80, 0x80, 0x10, 0xb2, 1, 3],
        b"oom",
        &[0xba, 1, 1, b'e'],
    ];
    let mut packet = packet.concat();
    (packet[1], packet[7]) = (packet.len() as u8 - 2, packet.len() as u8 - 8);
    assert_eq!(out[first..], packet);
    // Statistics of ftrace (34, two bytes): the phase (1) is the end (2), and of the processors'
    // (2) one (1) has 7 entries (2) and dropped 5 events (8).
    out.clear();
    perfetto.close(&mut out, 7, 5).unwrap();
    let counts = [key(1, 0), 0, key(2, 0), 7, key(8, 0), 5];
    let head = [key(1, 2), 15, key(10, 0), 1, 0x92, 2, 10, key(1, 0), 2, key(2, 2), 6];
    assert_eq!(out, [&head[..], &counts].concat());
}

/// The process that goes on with a file adds to what is in it.
#[test]
fn a_file_that_one_process_begins_another_ends() {
    let folder = tempfile::tempdir().unwrap();
    let ended = |name: &str| {
        let path = folder.path().join(name);
        let mut file = TraceFile::resume(TraceFile::begin(&path).unwrap(), &path);
        file.event(&event(1_000, "mark_victim", "pid=5")).unwrap();
        file.close(1, 3).unwrap();
        fs::read(path).unwrap()
    };
    let text = String::from_utf8(ended("t.txt")).unwrap();
    let rest = text.strip_prefix(HEADER).unwrap();
    assert_eq!(parse(rest.lines().next().unwrap()).unwrap().fields, "pid=5");
    let lost =
        "# entries-in-buffer/entries-written: 1/4\n# 3 events were lost: their buffer was full\n";
    assert!(rest.ends_with(lost), "{rest}");
    let packets = Trace::decode(&ended("t.pftrace")[..]).unwrap().packet;
    let cleared: Vec<_> = packets.iter().map(|packet| packet.sequence_flags).collect();
    assert_eq!(cleared, [Some(1), None, None, None], "the first one alone");
    let stats = packets[3].ftrace_stats.as_ref().unwrap();
    assert_eq!(stats.cpu_stats[0].dropped_events, Some(3));
}

#[test]
fn a_disk_without_room_shows_at_the_beginning() {
    let message = TraceFile::begin(Path::new("/dev/full")).unwrap_err().to_string();
    assert!(message.contains("/dev/full") && message.contains("No space left"), "{message}");
}

#[test]
fn each_of_several_runs_has_a_file_of_its_own() {
    let of = |file, run| file_of(Path::new(file), run).display().to_string();
    assert_eq!(of("a/t.txt", "sim-after-1"), "a/t-sim-after-1.txt");
    assert_eq!(of("t.perfetto-trace", "x y/z=0.5"), "t-x-y-z=0.5.perfetto-trace");
    assert_eq!(of("t", "before+p10"), "t-before+p10");
}

#[test]
fn a_full_disk_is_reported_once_with_the_file() {
    let mut file = TraceFile::create(Path::new("/dev/full")).unwrap();
    let message = (0..10_000).find_map(|at| file.event(&event(at, "mark_victim", "pid=1")).err());
    let message = message.unwrap();
    assert!(message.starts_with("--trace-events: /dev/full: No space left"), "{message}");
    assert!(Path::new("/dev/full").exists());
}
