//! Would compaction help a request? Not when memory is simply short, nor when a block is free.

use crate::physical::{COSTLY_ORDER, Era, MAX_ORDER, Request, Zone};

/// Stands for a block that is free already.
pub const NOT_FRAGMENTED: i64 = -1000;
/// Up to this index an allocation fails for lack of memory, above it for fragmentation.
const THRESHOLD: i64 = 500;

/// Says what compaction could do for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Finds compaction useless: memory is short.
    Skipped,
    /// Finds that compaction may help.
    Continue,
    /// Finds that compaction is not needed.
    Partial,
}

/// Returns the free pages that a run for this order wants: it holds as many as targets as it moves.
pub fn compact_gap(order: u8) -> u64 {
    2 << order
}

/// Says why a request of this order would fail: near 0 memory is short, near 1000 it is fragmented;
/// [`NOT_FRAGMENTED`] when it would not. Whole numbers, as the kernel has it.
pub fn fragmentation_index(zone: &Zone, order: u8) -> i64 {
    let blocks: u64 = (0..=MAX_ORDER).map(|o| zone.free_blocks(o)).sum();
    if (order..=MAX_ORDER).any(|o| zone.free_blocks(o) > 0) {
        return NOT_FRAGMENTED;
    }
    if blocks == 0 {
        return 0;
    }
    let pages = 1000 + 1000 * zone.nr_free() / (1 << order);
    1000 - (pages / blocks) as i64
}

/// Tells whether a run for this request is worth while. `mark`: the watermark the request itself
/// must leave (modern era).
pub fn suitable(zone: &Zone, request: Request, mark: u64) -> Fit {
    let index = || fragmentation_index(zone, request.order);
    let enough = |mark: u64| zone.nr_free() >= mark + compact_gap(request.order);
    match zone.era() {
        Era::Lumpy if !enough(zone.marks().low) => Fit::Skipped,
        Era::Lumpy => match index() {
            0..=THRESHOLD => Fit::Skipped,
            NOT_FRAGMENTED if zone.allows(request, zone.marks().low) => Fit::Partial,
            _ => Fit::Continue,
        },
        Era::Modern if zone.allows(request, mark) => Fit::Partial,
        Era::Modern => {
            let costly = request.order > COSTLY_ORDER;
            let floor = if costly { zone.marks().low } else { zone.marks().min };
            let short = costly && (0..=THRESHOLD).contains(&index());
            if !enough(floor) || short { Fit::Skipped } else { Fit::Continue }
        }
    }
}
