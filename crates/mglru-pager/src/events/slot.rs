//! An event in a slot of the ring: eight words, whatever it is. Counts of pages take half a word
//! and saturate there.

use mglru::host::{Isolated, ListName, ShrunkActive, ShrunkInactive, TraceEvent};
use mglru::{LruType, MemcgId, NodeId, Seq, Zone};

use super::Event;

/// Counts the words of a slot.
pub const WORDS: usize = 8;
/// Small numbers beside the kind, a byte each.
const SMALL: usize = 4;
/// Half words behind the first two words.
const COUNTS: usize = 2 * (WORDS - 2);

/// Marks which event a slot holds.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    CallBegins = 1,
    CallEnds,
    Isolated,
    ShrunkInactive,
    ShrunkActive,
    Aged,
    Fault,
}

/// A slot's content but for the time and the processor.
struct Parts {
    kind: u8,
    small: [u8; SMALL],
    counts: [u32; COUNTS],
}

/// The group that a call is for; its number moves up to leave one for "the machine".
fn target_number(target: Option<MemcgId>) -> u64 {
    target.map_or(0, |memcg| u64::from(memcg.0) + 1)
}

fn target(number: u32) -> Option<MemcgId> {
    number.checked_sub(1).map(MemcgId)
}

fn lru_type(number: u8) -> LruType {
    LruType::ALL[usize::from(number & 1)]
}

fn halves(number: u64) -> [u64; 2] {
    [number >> 32, number & u64::from(u32::MAX)]
}

fn whole([high, low]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl Parts {
    fn new<const N: usize>(kind: Kind, small: [u8; SMALL], wide: [u64; N]) -> Self {
        let mut counts = [0; COUNTS];
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        counts.iter_mut().zip(wide).for_each(|(count, n)| *count = narrow(n));
        Self { kind: kind as u8, small, counts }
    }

    fn of(event: &Event) -> Self {
        match event {
            Event::Reclaim(event) => Self::of_reclaim(event),
            Event::Fault { address, write } => {
                Self::new(Kind::Fault, [u8::from(*write), 0, 0, 0], halves(*address))
            }
        }
    }

    fn of_reclaim(event: &TraceEvent) -> Self {
        match event {
            TraceEvent::CallBegins { target, order } => {
                Self::new(Kind::CallBegins, [*order, 0, 0, 0], [target_number(*target)])
            }
            TraceEvent::CallEnds { target, reclaimed } => {
                let counts = [target_number(*target), *reclaimed];
                Self::new(Kind::CallEnds, [0; SMALL], counts)
            }
            TraceEvent::Isolated(event) => Self::of_isolated(event),
            TraceEvent::ShrunkInactive(event) => Self::of_inactive(event),
            TraceEvent::ShrunkActive(event) => Self::of_active(event),
            TraceEvent::Aged { memcg, node, max_seq, min_seq } => {
                let [[a, b], [c, d], [e, f]] =
                    [*max_seq, min_seq[0], min_seq[1]].map(|s| halves(s.0));
                let counts = [u64::from(memcg.0), a, b, c, d, e, f];
                Self::new(Kind::Aged, [node.0, 0, 0, 0], counts)
            }
        }
    }

    fn of_isolated(event: &Isolated) -> Self {
        let ListName { lru_type, active } = event.list;
        let small = [event.highest_zone.0, event.order, lru_type as u8, u8::from(active)];
        let counts = [event.requested, event.scanned, event.skipped, event.taken];
        Self::new(Kind::Isolated, small, counts)
    }

    fn of_inactive(event: &ShrunkInactive) -> Self {
        let small = [event.node.0, event.priority, event.lru_type as u8, 0];
        let counts = [
            u64::from(event.memcg.0),
            event.scanned,
            event.reclaimed,
            event.dirty,
            event.writeback,
            event.congested,
            event.immediate,
            event.activated,
            event.kept_referenced,
            event.unmap_failed,
        ];
        Self::new(Kind::ShrunkInactive, small, counts)
    }

    fn of_active(event: &ShrunkActive) -> Self {
        let small = [event.node.0, event.priority, event.lru_type as u8, 0];
        Self::new(Kind::ShrunkActive, small, [event.taken, event.kept, event.deactivated])
    }

    /// Returns the event; `None`: no slot is made so.
    fn event(&self) -> Option<Event> {
        let [high, low, ..] = self.counts;
        match self.kind {
            7 => Some(Event::Fault { address: whole([high, low]), write: self.small[0] != 0 }),
            _ => self.reclaim().map(Event::Reclaim),
        }
    }

    fn reclaim(&self) -> Option<TraceEvent> {
        let [first, second, ..] = self.counts;
        let event = match self.kind {
            1 => TraceEvent::CallBegins { target: target(first), order: self.small[0] },
            2 => TraceEvent::CallEnds { target: target(first), reclaimed: second.into() },
            3 => TraceEvent::Isolated(self.isolated()),
            4 => TraceEvent::ShrunkInactive(self.inactive()),
            5 => TraceEvent::ShrunkActive(self.active()),
            6 => self.aged(),
            _ => return None,
        };
        Some(event)
    }

    fn isolated(&self) -> Isolated {
        let ([zone, order, of, active], counts) = (self.small, self.counts.map(u64::from));
        Isolated {
            highest_zone: Zone(zone),
            order,
            requested: counts[0],
            scanned: counts[1],
            skipped: counts[2],
            taken: counts[3],
            list: ListName { lru_type: lru_type(of), active: active != 0 },
        }
    }

    fn inactive(&self) -> ShrunkInactive {
        let ([node, priority, of, _], counts) = (self.small, self.counts.map(u64::from));
        ShrunkInactive {
            memcg: MemcgId(self.counts[0]),
            node: NodeId(node),
            scanned: counts[1],
            reclaimed: counts[2],
            dirty: counts[3],
            writeback: counts[4],
            congested: counts[5],
            immediate: counts[6],
            activated: counts[7],
            kept_referenced: counts[8],
            unmap_failed: counts[9],
            priority,
            lru_type: lru_type(of),
        }
    }

    fn active(&self) -> ShrunkActive {
        let ([node, priority, of, _], counts) = (self.small, self.counts.map(u64::from));
        ShrunkActive {
            node: NodeId(node),
            taken: counts[0],
            kept: counts[1],
            deactivated: counts[2],
            priority,
            lru_type: lru_type(of),
        }
    }

    fn aged(&self) -> TraceEvent {
        let [memcg, a, b, c, d, e, f, ..] = self.counts;
        TraceEvent::Aged {
            memcg: MemcgId(memcg),
            node: NodeId(self.small[0]),
            max_seq: Seq(whole([a, b])),
            min_seq: [Seq(whole([c, d])), Seq(whole([e, f]))],
        }
    }
}

/// Returns the words of an event: the time, what it is and on which processor, its counts.
pub fn encode(at: u64, cpu: u32, event: &Event) -> [u64; WORDS] {
    let Parts { kind, small, counts } = Parts::of(event);
    let mut words = [at, 0, 0, 0, 0, 0, 0, 0];
    words[1] = u64::from(cpu) << 32 | whole([0, u32::from_le_bytes(small)]);
    // Processors are far fewer than the rest of the half word can number.
    words[1] |= u64::from(kind) << 56;
    for (word, pair) in words[2..].iter_mut().zip(counts.chunks_exact(2)) {
        *word = whole([pair[0], pair[1]]);
    }
    words
}

/// Returns the time, the processor and the event; `None`: they are no event's.
pub fn decode(words: &[u64; WORDS]) -> Option<(u64, u32, Event)> {
    let mut counts = [0; COUNTS];
    for (pair, word) in counts.chunks_exact_mut(2).zip(&words[2..]) {
        (pair[0], pair[1]) = ((word >> 32) as u32, *word as u32);
    }
    let small = (words[1] as u32).to_le_bytes();
    let (kind, cpu) = ((words[1] >> 56) as u8, (words[1] >> 32) as u32 & 0xff_ffff);
    Some((words[0], cpu, Parts { kind, small, counts }.event()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INACTIVE: ShrunkInactive = ShrunkInactive {
        memcg: MemcgId(3),
        node: NodeId(1),
        scanned: 64,
        reclaimed: 60,
        dirty: 2,
        writeback: 3,
        congested: 4,
        immediate: 5,
        activated: 6,
        kept_referenced: 7,
        unmap_failed: 8,
        priority: 12,
        lru_type: LruType::File,
    };

    #[test]
    fn every_event_comes_back_as_it_was() {
        let list = ListName { lru_type: LruType::File, active: true };
        let isolated = Isolated {
            highest_zone: Zone(2),
            order: 9,
            requested: 5,
            scanned: 4,
            skipped: 1,
            taken: 3,
            list,
        };
        let (node, lru_type) = (NodeId(2), LruType::Anon);
        let (taken, kept, deactivated) = (7, 1, 6);
        let active = ShrunkActive { node, taken, kept, deactivated, priority: 3, lru_type };
        let (memcg, max_seq, min_seq) = (MemcgId(9), Seq(1 << 40), [Seq(5), Seq(u64::MAX)]);
        for event in [
            TraceEvent::CallBegins { target: None, order: 4 },
            TraceEvent::CallBegins { target: Some(MemcgId::ROOT), order: 0 },
            TraceEvent::CallEnds { target: Some(MemcgId(7)), reclaimed: 64 },
            TraceEvent::Isolated(isolated),
            TraceEvent::ShrunkInactive(INACTIVE),
            TraceEvent::ShrunkActive(active),
            TraceEvent::Aged { memcg, node, max_seq, min_seq },
        ]
        .map(Event::Reclaim)
        .into_iter()
        .chain([true, false].map(|write| Event::Fault { address: 0x7fff_1234_5000, write }))
        {
            assert_eq!(decode(&encode(u64::MAX, 511, &event)), Some((u64::MAX, 511, event)));
        }
    }

    #[test]
    fn a_count_that_is_too_large_saturates_and_zeros_are_no_event() {
        let huge = TraceEvent::ShrunkInactive(ShrunkInactive { scanned: 1 << 33, ..INACTIVE });
        let words = encode(0, 0, &Event::Reclaim(huge));
        let (.., Event::Reclaim(TraceEvent::ShrunkInactive(got))) = decode(&words).unwrap() else {
            panic!("another event")
        };
        let scanned = u32::MAX.into();
        assert_eq!(got, ShrunkInactive { scanned, ..INACTIVE });
        assert_eq!(decode(&[0; WORDS]), None);
    }
}
