//! Trace events of a booted kernel, which its ftrace reports while the work goes on, in a file.

use mglru_guest::report::BEGIN;
use mglru_sim::tracing::Sink;

use super::watch::GuestReport;
use crate::trace_events::{Owned, TraceFile, parse};

/// Writes the trace events of a guest; times are from the beginning of the work. Returns how many
/// events the kernel's buffer could not hold.
pub(super) fn write(report: &GuestReport, file: &mut TraceFile) -> Result<u64, String> {
    let mut events: Vec<Owned> = report.events.lines().filter_map(parse).collect();
    // Processors' buffers are read one after the other.
    events.sort_by_key(|event| event.at);
    let begin = events.iter().position(|event| event.fields.contains(BEGIN));
    let begin = begin.ok_or("the guest reported no trace events")?;
    let start = events[begin].at;
    for event in &mut events[begin + 1..] {
        event.at -= start;
        file.event(&event.event())?;
    }
    file.finish()?;
    Ok(report.events.lines().filter_map(lost).sum())
}

/// `CPU:1 [LOST 63 EVENTS]`: the buffer was full.
fn lost(line: &str) -> Option<u64> {
    line.split_once("[LOST ")?.1.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
            init-148     [001] .....     5.501835: mm_vmscan_kswapd_sleep: nid=0
            init-1       [000] .....     5.500000: tracing_mark_write: mglru: the work begins
CPU:1 [LOST 63 EVENTS]
            init-149     [000] d..1.     5.516376: mm_vmscan_lru_isolate: classzone=4 nr_taken=0
        kswapd0-40      [001] .....     5.499999: mm_vmscan_kswapd_wake: nid=0 order=0
";

    #[test]
    fn events_of_the_work_are_put_in_order_and_times_begin_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.txt");
        let report = GuestReport { events: TOLD.to_string(), ..GuestReport::default() };
        let mut file = TraceFile::create(&path).unwrap();
        assert_eq!(write(&report, &mut file).unwrap(), 63);
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "            init-148     [001] .....     0.001835: mm_vmscan_kswapd_sleep: nid=0",
                "            init-149     [000] d..1.     0.016376: mm_vmscan_lru_isolate: \
                 classzone=4 nr_taken=0",
            ]
        );
    }

    #[test]
    fn a_guest_that_reports_no_event_is_an_error() {
        let mut file = TraceFile::create("/dev/null".as_ref()).unwrap();
        assert!(write(&GuestReport::default(), &mut file).unwrap_err().contains("no trace events"));
    }
}
