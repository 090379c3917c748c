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
    /// Somebody works on it.
    pub locked: bool,
    /// It cannot be evicted.
    pub unevictable: bool,
    /// Page tables map it.
    pub mapped: bool,
    /// It was marked referenced.
    pub referenced: bool,
    /// It was marked workingset.
    pub workingset: bool,
    /// It waits for its writeback to be reclaimed.
    pub reclaim: bool,
    /// Newer than its backing store.
    pub dirty: bool,
    /// Being written.
    pub writeback: bool,
    /// Anon or file.
    pub lru_type: LruType,
    /// The answer of its page tables, once asked.
    pub references: Option<References>,
}

/// Holds the answer of the page tables about a folio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Young entries.
    pub young: u32,
    /// Mapped executable.
    pub exec: bool,
    /// Mapped mlocked.
    pub locked: bool,
    /// Nothing can be concluded.
    pub contended: bool,
}

/// Holds the rules and permissions of this reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bench {
    /// Mapped folios may be unmapped.
    pub may_unmap: bool,
    /// The reclaimer may enter the file system.
    pub may_enter_fs: bool,
    /// It is kswapd.
    pub kswapd: bool,
    /// The node met only writeback.
    pub node_writeback: bool,
    /// Dirtiers are throttled, so reclaim need not wait for them.
    pub sane: bool,
    /// References do not count (nothing else is left).
    pub ignore_references: bool,
    /// References follow the two-touch rule (MGLRU, K614).
    pub two_touch: bool,
    /// Each touch after the first is one rung of the ladder of accesses (7.2).
    pub ladder: bool,
    /// The first touch of a program's page proves its reuse (7.3).
    pub exec_first_touch: bool,
    /// Promotion may race with isolation (MGLRU, K612).
    pub racing_promotion: bool,
    /// There is slower memory for what this reclaim takes away.
    pub may_demote: bool,
}

/// Names the fate of the folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Ask its page tables, then judge again.
    Look,
    /// Put it back where it belongs.
    Keep,
    /// First touch seen: marked referenced and put back.
    KeepReferenced,
    /// Make it active or young.
    Activate,
    /// Second touch seen: it belongs to the workingset, make it young.
    ActivateWorkingset,
    /// Touched again: it climbs the ladder of accesses (7.2), make it young.
    ActivateClimbed,
    /// Referenced again (K612, classic): marked referenced and made active.
    ActivateReferenced,
    /// Still being written although reclaim waits for it: activate, and kswapd should slow down.
    Immediate,
    /// Being written: mark it for reclaim, activate.
    MarkWriteback,
    /// Wait until it is written, then judge again (cgroup v1).
    Wait,
    /// Move it to slower memory.
    Demote,
    /// Evict it. `clean_only`: not if that needs a write.
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
mod tests {
    use super::*;

    const CLEAN: Facts = Facts {
        locked: false,
        unevictable: false,
        mapped: false,
        referenced: false,
        workingset: false,
        reclaim: false,
        dirty: false,
        writeback: false,
        lru_type: LruType::File,
        references: None,
    };
    const K72: Bench = Bench {
        may_unmap: true,
        may_enter_fs: true,
        kswapd: false,
        node_writeback: false,
        sane: true,
        ignore_references: false,
        two_touch: true,
        ladder: false,
        exec_first_touch: false,
        racing_promotion: false,
        may_demote: false,
    };
    const CLASSIC: Bench = Bench { two_touch: false, ..K72 };

    fn young(n: u32) -> Option<References> {
        Some(References { young: n, ..References::default() })
    }

    #[test]
    fn a_clean_idle_folio_is_evicted() {
        assert_eq!(judge(&CLEAN, &K72), Verdict::Evict { clean_only: false });
    }

    #[test]
    fn what_would_be_evicted_is_demoted_where_there_is_slower_memory() {
        let tiered = Bench { may_demote: true, ..K72 };
        assert_eq!(judge(&CLEAN, &tiered), Verdict::Demote);
        let hot = Facts { mapped: true, references: young(1), ..CLEAN };
        assert_eq!(judge(&hot, &tiered), Verdict::KeepReferenced);
        let written = Facts { writeback: true, ..CLEAN };
        assert_eq!(judge(&written, &tiered), Verdict::MarkWriteback);
    }

    #[test]
    fn the_first_reason_wins() {
        let all = Facts { locked: true, unevictable: true, writeback: true, ..CLEAN };
        assert_eq!(judge(&all, &K72), Verdict::Keep);
        let unlocked = Facts { locked: false, ..all };
        assert_eq!(judge(&unlocked, &K72), Verdict::Activate);
        let evictable = Facts { unevictable: false, ..unlocked };
        assert_eq!(judge(&evictable, &K72), Verdict::MarkWriteback);
    }

    #[test]
    fn mapped_folios_need_permission_and_a_look() {
        let mapped = Facts { mapped: true, ..CLEAN };
        assert_eq!(judge(&mapped, &K72), Verdict::Look);
        assert_eq!(judge(&mapped, &Bench { may_unmap: false, ..K72 }), Verdict::Keep);
        let raced = Facts { referenced: true, ..mapped };
        assert_eq!(judge(&raced, &Bench { racing_promotion: true, ..CLASSIC }), Verdict::Keep);
        let ignored = Bench { ignore_references: true, ..K72 };
        assert_eq!(judge(&mapped, &ignored), Verdict::Evict { clean_only: false });
    }

    #[test]
    fn two_touches_make_a_workingset_folio() {
        let touched = Facts { mapped: true, references: young(1), ..CLEAN };
        assert_eq!(judge(&touched, &K72), Verdict::KeepReferenced);
        let again = Facts { referenced: true, ..touched };
        assert_eq!(judge(&again, &K72), Verdict::ActivateWorkingset);
        let idle = Facts { references: young(0), ..again };
        assert_eq!(judge(&idle, &K72), Verdict::Evict { clean_only: false });
    }

    #[test]
    fn a_release_with_the_ladder_counts_touches() {
        let ladder = Bench { ladder: true, ..K72 };
        let touched = Facts { mapped: true, references: young(1), ..CLEAN };
        assert_eq!(judge(&touched, &ladder), Verdict::KeepReferenced);
        for again in [Facts { referenced: true, ..touched }, Facts { workingset: true, ..touched }]
        {
            assert_eq!(judge(&again, &ladder), Verdict::ActivateClimbed);
        }
    }

    #[test]
    fn the_first_touch_of_a_program_proves_its_reuse() {
        let rule = Bench { ladder: true, exec_first_touch: true, ..K72 };
        let exec = Some(References { young: 1, exec: true, ..References::default() });
        let program = Facts { mapped: true, references: exec, ..CLEAN };
        assert_eq!(judge(&program, &rule), Verdict::ActivateWorkingset);
        let anon = Facts { lru_type: LruType::Anon, ..program };
        assert_eq!(judge(&anon, &rule), Verdict::KeepReferenced);
        let again = Facts { referenced: true, ..program };
        assert_eq!(judge(&again, &rule), Verdict::ActivateClimbed);
    }

    #[test]
    fn the_classic_rule() {
        let touched = Facts { mapped: true, references: young(1), ..CLEAN };
        assert_eq!(judge(&touched, &CLASSIC), Verdict::KeepReferenced);
        let twice = Facts { references: young(2), ..touched };
        assert_eq!(judge(&twice, &CLASSIC), Verdict::ActivateReferenced);
        let exec = Some(References { young: 1, exec: true, ..References::default() });
        let program = Facts { references: exec, ..touched };
        assert_eq!(judge(&program, &CLASSIC), Verdict::ActivateReferenced);
        let anon = Facts { lru_type: LruType::Anon, ..program };
        assert_eq!(judge(&anon, &CLASSIC), Verdict::KeepReferenced);
        let was = Facts { referenced: true, ..CLEAN };
        assert_eq!(judge(&was, &CLASSIC), Verdict::Evict { clean_only: true });
    }

    #[test]
    fn writeback_is_waited_for_only_without_sane_throttling() {
        let met = Facts { writeback: true, ..CLEAN };
        let v1 = Bench { sane: false, ..K72 };
        assert_eq!(judge(&met, &v1), Verdict::MarkWriteback);
        let again = Facts { reclaim: true, ..met };
        assert_eq!(judge(&again, &v1), Verdict::Wait);
        assert_eq!(judge(&again, &Bench { may_enter_fs: false, ..v1 }), Verdict::MarkWriteback);
        let kswapd = Bench { kswapd: true, node_writeback: true, ..K72 };
        assert_eq!(judge(&again, &kswapd), Verdict::Immediate);
        assert_eq!(judge(&met, &kswapd), Verdict::MarkWriteback);
    }
}
