//! What the policy tells, in the words of the kernel's tracepoints (their layout in 6.12).

use mglru::host::{Isolated, ListName, ShrunkActive, ShrunkInactive, TraceEvent};
use mglru::types::LruType;

use super::nid;

/// What a task that charges or allocates a page asks with.
const GFP: &str = "GFP_HIGHUSER_MOVABLE";

/// The tracepoint and its fields. One has no counterpart in the kernel, where nothing tells of a
/// new generation: its name begins otherwise.
pub(super) fn words(event: &TraceEvent) -> (&'static str, String) {
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
        TraceEvent::Isolated(told) => ("mm_vmscan_lru_isolate", isolated(told)),
        TraceEvent::ShrunkInactive(told) => ("mm_vmscan_lru_shrink_inactive", inactive(told)),
        TraceEvent::ShrunkActive(told) => ("mm_vmscan_lru_shrink_active", active(told)),
        TraceEvent::Aged { memcg, node, max_seq, min_seq: [anon, file] } => {
            let (memcg, node) = (memcg.0, nid(*node));
            let seqs = format!("max_seq={} min_anon={} min_file={}", max_seq.0, anon.0, file.0);
            ("mglru_new_generation", format!("nid={node} memcg={memcg} {seqs}"))
        }
    }
}

fn isolated(told: &Isolated) -> String {
    format!(
        "classzone={} order={} nr_requested={} nr_scanned={} nr_skipped={} nr_taken={} lru={}",
        told.highest_zone.0,
        told.order,
        told.requested,
        told.scanned,
        told.skipped,
        told.taken,
        list(told.list)
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

fn inactive(told: &ShrunkInactive) -> String {
    let [anon, file] = match told.lru_type {
        LruType::Anon => [told.activated, 0],
        LruType::File => [0, told.activated],
    };
    format!(
        "nid={} nr_scanned={} nr_reclaimed={} nr_dirty={} nr_writeback={} nr_congested={} \
         nr_immediate={} nr_activate_anon={anon} nr_activate_file={file} nr_ref_keep={} \
         nr_unmap_fail={} priority={} flags={}",
        nid(told.node),
        told.scanned,
        told.reclaimed,
        told.dirty,
        told.writeback,
        told.congested,
        told.immediate,
        told.kept_referenced,
        told.unmap_failed,
        told.priority,
        flags(told.lru_type)
    )
}

fn active(told: &ShrunkActive) -> String {
    format!(
        "nid={} nr_taken={} nr_active={} nr_deactivated={} nr_referenced={} priority={} flags={}",
        nid(told.node),
        told.taken,
        told.kept,
        told.deactivated,
        told.kept,
        told.priority,
        flags(told.lru_type)
    )
}

/// What kind of pages, and that nobody waits for their writes.
pub(super) fn flags(lru_type: LruType) -> &'static str {
    match lru_type {
        LruType::Anon => "RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
        LruType::File => "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC",
    }
}
