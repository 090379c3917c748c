//! Decides the fate of an isolated folio: one pure table for both LRUs (spec §5.6).
//!
//! Facts go in, a verdict comes out; nothing is touched here. A verdict of [`Verdict::Look`] asks
//! for the references, which cost a reverse-map walk, and is judged again with them.

use crate::folio::{Bit, Folio};
use crate::host::RmapHarvest;
use crate::types::LruType;

/// Holds the facts by which a folio is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Says that another caller works on the folio.
    pub locked: bool,
    /// Says that the folio cannot be evicted.
    pub unevictable: bool,
    /// Says that page tables map the folio.
    pub mapped: bool,
    /// Says that the folio was marked referenced.
    pub referenced: bool,
    /// Says that the folio was marked workingset.
    pub workingset: bool,
    /// Says that the folio waits for its writeback to be reclaimed.
    pub reclaim: bool,
    /// Says that the folio is newer than its backing store.
    pub dirty: bool,
    /// Says that the folio is being written.
    pub writeback: bool,
    /// Names the type: anon or file.
    pub lru_type: LruType,
    /// Holds the answer of the folio's page tables, once asked.
    pub references: Option<References>,
}

/// Holds the answer of the page tables about a folio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Counts young entries.
    pub young: u32,
    /// Says that the folio is mapped executable.
    pub exec: bool,
    /// Says that the folio is mapped mlocked.
    pub locked: bool,
    /// Says that nothing can be concluded.
    pub contended: bool,
}

/// Holds the rules and permissions of this reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bench {
    /// Allows mapped folios to be unmapped.
    pub may_unmap: bool,
    /// Allows the reclaimer to enter the file system.
    pub may_enter_fs: bool,
    /// Says that the reclaimer is kswapd.
    pub kswapd: bool,
    /// Says that the node met only writeback.
    pub node_writeback: bool,
    /// Dirtiers are throttled, so reclaim need not wait for them.
    pub sane: bool,
    /// References do not count (nothing else is left).
    pub ignore_references: bool,
    /// References follow the two-touch rule (MGLRU, K614).
    pub two_touch: bool,
    /// Makes each touch after the first one rung of the ladder of accesses (7.2).
    pub ladder: bool,
    /// Lets the first touch of a program's page prove its reuse (7.3).
    pub exec_first_touch: bool,
    /// Lets promotion race with isolation (MGLRU, K612).
    pub racing_promotion: bool,
    /// Says that slower memory exists for what this reclaim takes away.
    pub may_demote: bool,
}

/// Names the fate of the folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Asks the folio's page tables, then judges again.
    Look,
    /// Puts the folio back where it belongs.
    Keep,
    /// Marks the folio referenced after its first touch and puts it back.
    KeepReferenced,
    /// Makes the folio active or young.
    Activate,
    /// Makes the folio young after its second touch: it belongs to the workingset.
    ActivateWorkingset,
    /// Makes the folio young after another touch: it climbs the ladder of accesses (7.2).
    ActivateClimbed,
    /// Marks the folio referenced and makes it active: it was referenced again (K612, classic).
    ActivateReferenced,
    /// Activates a folio still being written although reclaim waits for it; kswapd should slow
    /// down.
    Immediate,
    /// Marks a folio being written for reclaim and activates it.
    MarkWriteback,
    /// Waits until the folio is written, then judges it again (cgroup v1).
    Wait,
    /// Moves the folio to slower memory.
    Demote,
    /// Evicts the folio. `clean_only`: not if that needs a write.
    Evict {
        /// Was referenced: evict only if clean.
        clean_only: bool,
    },
}

impl Verdict {
    /// The folio stays for a reason that will not pass by itself.
    pub(crate) fn keeps_for_good(self) -> bool {
        !matches!(self, Self::Evict { .. } | Self::MarkWriteback | Self::Immediate | Self::Wait)
    }
}

impl Facts {
    /// Reads the facts in the folio's flags.
    pub fn of(folio: &Folio) -> Self {
        let has = |bit| folio.flags.has(bit);
        Self {
            locked: has(Bit::LOCKED),
            unevictable: folio.flags.has_any([Bit::UNEVICTABLE, Bit::MLOCKED]),
            mapped: folio.is_mapped(),
            referenced: has(Bit::REFERENCED),
            workingset: has(Bit::WORKINGSET),
            reclaim: has(Bit::RECLAIM),
            dirty: has(Bit::DIRTY),
            writeback: has(Bit::WRITEBACK),
            lru_type: folio.lru_type(),
            references: None,
        }
    }
}

impl From<&RmapHarvest> for References {
    fn from(harvest: &RmapHarvest) -> Self {
        Self {
            young: harvest.referenced,
            exec: harvest.exec,
            locked: harvest.locked,
            contended: harvest.contended,
        }
    }
}

/// Judges one folio.
pub fn judge(facts: &Facts, bench: &Bench) -> Verdict {
    match judge_here(facts, bench) {
        Verdict::Evict { .. } if bench.may_demote => Verdict::Demote,
        verdict => verdict,
    }
}

/// The rows of the table, but for memory elsewhere.
fn judge_here(facts: &Facts, bench: &Bench) -> Verdict {
    if facts.locked {
        Verdict::Keep
    } else if facts.unevictable {
        Verdict::Activate
    } else if facts.mapped && !bench.may_unmap
        || bench.racing_promotion && facts.mapped && facts.referenced
    {
        Verdict::Keep
    } else if facts.writeback {
        judge_writeback(facts, bench)
    } else if bench.ignore_references {
        Verdict::Evict { clean_only: false }
    } else {
        match &facts.references {
            None if facts.mapped => Verdict::Look,
            None => judge_references(facts, bench, &References::default()),
            Some(references) => judge_references(facts, bench, references),
        }
    }
}

fn judge_writeback(facts: &Facts, bench: &Bench) -> Verdict {
    if bench.kswapd && facts.reclaim && bench.node_writeback {
        Verdict::Immediate
    } else if bench.sane || !facts.reclaim || !bench.may_enter_fs {
        Verdict::MarkWriteback
    } else {
        Verdict::Wait
    }
}

fn judge_references(facts: &Facts, bench: &Bench, references: &References) -> Verdict {
    if references.locked {
        Verdict::Activate
    } else if references.contended {
        Verdict::Keep
    } else if bench.two_touch {
        judge_two_touch(facts, bench, references)
    } else {
        judge_classic(facts, references)
    }
}

fn judge_two_touch(facts: &Facts, bench: &Bench, references: &References) -> Verdict {
    let first = !facts.referenced && !facts.workingset;
    let program = references.exec && facts.lru_type == LruType::File;
    if references.young == 0 {
        Verdict::Evict { clean_only: false }
    } else if first && !(bench.exec_first_touch && program) {
        Verdict::KeepReferenced
    } else if bench.ladder && !first {
        Verdict::ActivateClimbed
    } else {
        Verdict::ActivateWorkingset
    }
}

fn judge_classic(facts: &Facts, references: &References) -> Verdict {
    let file = facts.lru_type == LruType::File;
    if references.young == 0 {
        Verdict::Evict { clean_only: facts.referenced && file }
    } else if facts.referenced || references.young > 1 || references.exec && file {
        Verdict::ActivateReferenced
    } else {
        Verdict::KeepReferenced
    }
}

#[cfg(test)]
mod tests;
