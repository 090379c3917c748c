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
    for again in [Facts { referenced: true, ..touched }, Facts { workingset: true, ..touched }] {
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
