//! Trace events: what reclaim says of itself is what its counters say.

use mglru::host::TraceEvent;
use mglru_pager::events::{self, Event, EventReader, Recorded};
use mglru_pager::{MappingMut, Pager};

use crate::{MIB, PAGE, pager, until};

/// Stores to twice the budget, twice, while somebody reads what reclaim tells, or nobody does.
fn run(pager: &Pager, mut read: impl FnMut()) -> MappingMut {
    let mut map = pager.root().map_anon(16 * MIB).unwrap();
    for round in 0..2 {
        for page in 0..16 * MIB / PAGE {
            map[page * PAGE] = round;
            if page % 256 == 0 {
                read();
            }
        }
    }
    map
}

/// Pages reclaimed so far, once that is the same for a while.
fn stolen(pager: &Pager) -> u64 {
    let now = || {
        let stat = pager.root().stat().unwrap();
        ["pgsteal_kswapd", "pgsteal_direct"].iter().filter_map(|name| stat.get(name)).sum::<u64>()
    };
    let wait = || std::thread::sleep(std::time::Duration::from_millis(20));
    let last = std::cell::Cell::new(0);
    until(wait, || last.replace(now()) == now());
    now()
}

fn reclaimed(recorded: &[Recorded]) -> u64 {
    let pages = |recorded: &Recorded| match recorded.event {
        Event::Reclaim(TraceEvent::ShrunkInactive(event)) => event.reclaimed,
        _ => 0,
    };
    recorded.iter().map(pages).sum()
}

#[test]
fn events_add_up_to_what_the_counters_say() {
    let Some(pager) = pager(8 * MIB) else { return };
    let (sender, mut reader) = events::channel(events::SLOTS).unwrap();
    let (bytes, before) = (sender.bytes(), pager.root().current());
    pager.trace_events(sender).unwrap();
    assert_eq!(pager.root().current(), before + bytes, "the budget pays");
    let mut recorded = Vec::new();
    let _map = run(&pager, || reader.read(&mut recorded));
    let stolen = stolen(&pager);
    reader.read(&mut recorded);
    assert_eq!(reader.lost(), 0);
    assert!(stolen > (16 * MIB / PAGE) as u64, "{stolen}");
    assert_eq!(reclaimed(&recorded), stolen);
    let count = |what: fn(&Event) -> bool| recorded.iter().filter(|r| what(&r.event)).count();
    assert!(count(|event| matches!(event, Event::Reclaim(TraceEvent::Aged { .. }))) > 0);
    assert!(count(|event| matches!(event, Event::Reclaim(TraceEvent::Isolated(_)))) > 0);
    assert!(recorded.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert!(recorded.last().unwrap().at <= events::now());
}

#[test]
fn a_reader_that_sleeps_stops_nobody_and_knows_what_it_missed() {
    let Some(pager) = pager(8 * MIB) else { return };
    let (sender, mut reader): (_, EventReader) = events::channel(4).unwrap();
    pager.trace_events(sender).unwrap();
    let _map = run(&pager, || {});
    let stolen = stolen(&pager);
    let mut recorded = Vec::new();
    reader.read(&mut recorded);
    assert_eq!(recorded.len(), 4);
    assert!(reader.lost() > 100, "{}", reader.lost());
    assert!(reclaimed(&recorded) < stolen);
}
