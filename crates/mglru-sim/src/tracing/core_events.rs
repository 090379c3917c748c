//! Formats the policy's events as the kernel's tracepoints print them (their layout in 6.12).

use mglru::host::{Isolated, ListName, ShrunkActive, ShrunkInactive, TraceEvent};
use mglru::types::LruType;

use super::nid;

/// What a task that charges or allocates a page asks with.
const GFP: &str = "GFP_HIGHUSER_MOVABLE";

/// Returns the tracepoint's name and its fields. One has no counterpart in the kernel, which has no
/// tracepoint for a new generation: its name begins otherwise.
pub fn tracepoint(event: &TraceEvent) -> (&'static str, String) {
    match event {
        TraceEvent::CallBegins { target, order } => {
            let name = match target {
                None => "mm_vmscan_direct_reclaim_begin",
                Some(_) => "mm_vmscan_memcg_reclaim_begin",
            };
            (name, format!("order={order} gfp_flags={GFP}"))
        }
        TraceEvent::CallEnds { target, reclaimed } => {
            let name = match target {
                None => "mm_vmscan_direct_reclaim_end",
                Some(_) => "mm_vmscan_memcg_reclaim_end",
            };
            (name, format!("nr_reclaimed={reclaimed}"))
        }
        TraceEvent::Isolated(event) => ("mm_vmscan_lru_isolate", isolated(event)),
        TraceEvent::ShrunkInactive(event) => ("mm_vmscan_lru_shrink_inactive", inactive(event)),
        TraceEvent::ShrunkActive(event) => ("mm_vmscan_lru_shrink_active", active(event)),
        TraceEvent::Aged { memcg, node, max_seq, min_seq: [anon, file] } => {
            let (memcg, node) = (memcg.0, nid(*node));
            let seqs = format!("max_seq={} min_anon={} min_file={}", max_seq.0, anon.0, file.0);
            ("mglru_new_generation", format!("nid={node} memcg={memcg} {seqs}"))
        }
    }
}

fn isolated(event: &Isolated) -> String {
    format!(
        "classzone={} order={} nr_requested={} nr_scanned={} nr_skipped={} nr_taken={} lru={}",
        event.highest_zone.0,
        event.order,
        event.requested,
        event.scanned,
        event.skipped,
        event.taken,
        list(event.list)
    )
}

fn list(list: ListName) -> &'static str {
    match (list.active, list.lru_type) {
        (false, LruType::Anon) => "inactive_anon",
        (true, LruType::Anon) => "active_anon",
        (false, LruType::File) => "inactive_file",
        (true, LruType::File) => "active_file",
    }
}

fn inactive(event: &ShrunkInactive) -> String {
    let [anon, file] = match event.lru_type {
        LruType::Anon => [event.activated, 0],
        LruType::File => [0, event.activated],
    };
    format!(
        "nid={} nr_scanned={} nr_reclaimed={} nr_dirty={} nr_writeback={} nr_congested={} \
         nr_immediate={} nr_activate_anon={anon} nr_activate_file={file} nr_ref_keep={} \
         nr_unmap_fail={} priority={} flags={}",
        nid(event.node),
        event.scanned,
        event.reclaimed,
        event.dirty,
        event.writeback,
        event.congested,
        event.immediate,
        event.kept_referenced,
        event.unmap_failed,
        event.priority,
        flags(event.lru_type)
    )
}

fn active(event: &ShrunkActive) -> String {
    format!(
        "nid={} nr_taken={} nr_active={} nr_deactivated={} nr_referenced={} priority={} flags={}",
        nid(event.node),
        event.taken,
        event.kept,
        event.deactivated,
        event.kept,
        event.priority,
        flags(event.lru_type)
    )
}

/// What kind of pages, and that nobody waits for their writes.
pub(super) fn flags(lru_type: LruType) -> &'static str {
    match lru_type {
        LruType::Anon => "RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
        LruType::File => "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC",
    }
}
