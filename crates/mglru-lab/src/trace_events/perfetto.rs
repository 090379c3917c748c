//! Events as a Perfetto trace: a track a task. Reclaim, kswapd's work and waits are slices, other
//! events are instants with their fields; what the machine holds are counters.

use std::collections::BTreeMap;
use std::io::{self, Write};

use mglru_sim::tracing::Event;
use prost::Message;

use super::proto::{
    CounterDescriptor, DebugAnnotation, FtraceCpuStats, FtraceStats, Kind, Phase,
    ProcessDescriptor, ThreadDescriptor, Trace, TracePacket, TrackDescriptor, TrackEvent,
};

/// All packets are of one writer, whose state begins with the first one.
const SEQUENCE: u32 = 1;
const STATE_CLEARED: u32 = 1;
/// Numbers of tracks: of a task its own and this, of a counter beyond.
const TASKS: u64 = 1 << 32;
const COUNTERS: u64 = 1 << 40;

/// Makes the packets of a trace, as events come.
#[derive(Default)]
pub struct Perfetto {
    /// Open slices of each task met so far.
    open: BTreeMap<u32, u32>,
    /// Names of counters met so far.
    counters: Vec<String>,
    begun: bool,
}

/// Says what an event is drawn as.
enum Shape {
    Begin(String),
    End,
    Instant,
    /// Reports at its end how long it took, ns.
    Past(String, u64),
}

impl Perfetto {
    /// Writes an event.
    ///
    /// # Errors
    /// The file's.
    pub fn event(&mut self, out: &mut impl Write, event: &Event<'_>) -> io::Result<()> {
        let known = self.open.len();
        self.open.entry(event.pid).or_insert(0);
        if self.open.len() > known {
            self.put(out, TracePacket { track_descriptor: Some(task(event)), ..packet(None) })?;
        }
        let open = self.open.get_mut(&event.pid).expect("just put");
        let name = |name: &str| Some(name.to_string());
        let parts = match shape(event) {
            Shape::Begin(what) => {
                *open += 1;
                vec![(event.at, Kind::SliceBegin, Some(what))]
            }
            // It began before the trace did.
            Shape::End if *open == 0 => vec![(event.at, Kind::Instant, name(event.name))],
            Shape::End => {
                *open -= 1;
                vec![(event.at, Kind::SliceEnd, None)]
            }
            Shape::Instant => vec![(event.at, Kind::Instant, name(event.name))],
            Shape::Past(what, took) => vec![
                (event.at.saturating_sub(took), Kind::SliceBegin, Some(what)),
                (event.at, Kind::SliceEnd, None),
            ],
        };
        for (nth, (at, kind, name)) in parts.into_iter().enumerate() {
            let debug_annotations = if nth == 0 { annotations(event.fields) } else { Vec::new() };
            let track_event = TrackEvent {
                debug_annotations,
                kind: Some(kind.into()),
                track_uuid: Some(TASKS + u64::from(event.pid)),
                categories: vec![category(event.name).to_string()],
                name,
                counter_value: None,
            };
            self.put(out, TracePacket { track_event: Some(track_event), ..packet(Some(at)) })?;
        }
        Ok(())
    }

    /// Continues a trace whose first packet was written.
    pub fn begun() -> Self {
        Self { begun: true, ..Self::default() }
    }

    /// Writes the first packet, which says that what follows depends on nothing before.
    ///
    /// # Errors
    /// The file's.
    pub fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.put(out, packet(None))
    }

    /// Writes how many events there are, and how many their buffer had no room for.
    ///
    /// # Errors
    /// The file's.
    pub fn close(&mut self, out: &mut impl Write, written: u64, lost: u64) -> io::Result<()> {
        let of_buffer =
            FtraceCpuStats { cpu: Some(0), entries: Some(written), dropped_events: Some(lost) };
        let phase = Some(Phase::EndOfTrace.into());
        let ftrace_stats = Some(FtraceStats { phase, cpu_stats: vec![of_buffer] });
        self.put(out, TracePacket { ftrace_stats, ..packet(None) })
    }

    /// Writes what the machine holds, by name.
    ///
    /// # Errors
    /// The file's.
    pub fn levels<'a>(
        &mut self,
        out: &mut impl Write,
        at: u64,
        levels: impl Iterator<Item = (&'a str, u64)>,
    ) -> io::Result<()> {
        for (name, pages) in levels {
            let known = self.counters.iter().position(|known| known == name);
            let nth = known.unwrap_or(self.counters.len());
            let uuid = COUNTERS + nth as u64;
            if known.is_none() {
                self.counters.push(name.to_string());
                let descriptor = counter(uuid, name);
                self.put(out, TracePacket { track_descriptor: Some(descriptor), ..packet(None) })?;
            }
            let track_event = TrackEvent {
                kind: Some(Kind::Counter.into()),
                track_uuid: Some(uuid),
                counter_value: Some(i64::try_from(pages).unwrap_or(i64::MAX)),
                ..TrackEvent::default()
            };
            self.put(out, TracePacket { track_event: Some(track_event), ..packet(Some(at)) })?;
        }
        Ok(())
    }

    fn put(&mut self, out: &mut impl Write, mut packet: TracePacket) -> io::Result<()> {
        if !std::mem::replace(&mut self.begun, true) {
            packet.sequence_flags = Some(STATE_CLEARED);
        }
        out.write_all(&Trace { packet: vec![packet] }.encode_to_vec())
    }
}

fn packet(timestamp: Option<u64>) -> TracePacket {
    TracePacket { timestamp, trusted_packet_sequence_id: Some(SEQUENCE), ..TracePacket::default() }
}

fn task(event: &Event<'_>) -> TrackDescriptor {
    let (pid, comm) = (i32::try_from(event.pid).ok(), Some(event.comm.to_string()));
    TrackDescriptor {
        uuid: Some(TASKS + u64::from(event.pid)),
        process: Some(ProcessDescriptor { pid, process_name: comm.clone() }),
        thread: Some(ThreadDescriptor { pid, tid: pid, thread_name: comm }),
        ..TrackDescriptor::default()
    }
}

fn counter(uuid: u64, name: &str) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        name: Some(name.to_string()),
        counter: Some(CounterDescriptor { unit_name: Some("pages".to_string()) }),
        ..TrackDescriptor::default()
    }
}

fn shape(event: &Event<'_>) -> Shape {
    let value = |key: &str| fields(event.fields).find(|(k, _)| *k == key).map(|(_, v)| v);
    match event.name {
        "mm_vmscan_kswapd_wake" => Shape::Begin("mm_vmscan_kswapd".to_string()),
        "mm_vmscan_kswapd_sleep" => Shape::End,
        "mm_vmscan_throttled" => {
            let took = value("usect_delayed").and_then(|us| us.parse::<u64>().ok()).unwrap_or(0);
            Shape::Past(value("reason").unwrap_or(event.name).to_string(), took * 1000)
        }
        name => match name.strip_suffix("_begin") {
            Some(what) => Shape::Begin(what.to_string()),
            None if name.ends_with("_reclaim_end") => Shape::End,
            None => Shape::Instant,
        },
    }
}

/// The kernel's group of an event.
fn category(name: &str) -> &'static str {
    let groups = [
        ("mm_vmscan_", "vmscan"),
        ("mm_shrink_", "vmscan"),
        ("mm_filemap_", "filemap"),
        ("mm_lru_", "pagemap"),
        ("writeback_", "writeback"),
        ("balance_dirty_", "writeback"),
        ("mglru_", "mglru"),
    ];
    groups.iter().find(|(start, _)| name.starts_with(start)).map_or("oom", |(_, group)| group)
}

fn annotations(text: &str) -> Vec<DebugAnnotation> {
    let annotation = |(name, value): (&str, &str)| {
        let int_value = value.parse().ok();
        let string_value = int_value.is_none().then(|| value.to_string());
        DebugAnnotation { int_value, string_value, name: Some(name.to_string()) }
    };
    fields(text).map(annotation).collect()
}

/// Reads the fields of an event: `key=value`, or a word and its value (`dev 8:0`).
pub fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut words = text.split_ascii_whitespace();
    std::iter::from_fn(move || {
        let word = words.next()?;
        match word.split_once('=') {
            Some(pair) => Some(pair),
            None => Some((word, words.next().map_or("", |value| value.trim_end_matches(':')))),
        }
    })
}
