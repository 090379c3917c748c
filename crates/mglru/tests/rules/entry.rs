//! Where folios enter and what accesses do to them (spec §3.1 to §3.5).

use mglru::folio::Bit;
use mglru::{Entry, FolioId, FolioKind, MemcgId};

use crate::toy::{NORMAL, World};

const FAULT: Entry = Entry::Fault { recency: true };
const COLD_FAULT: Entry = Entry::Fault { recency: false };

/// A folio of `kind` with `bits` set enters; generations below the youngest.
fn lands(variant: &str, kind: FolioKind, bits: &[Bit], entry: Entry) -> u64 {
    let mut world = World::variant(variant);
    let g = world.group(MemcgId::ROOT);
    let folio = world.unlisted(kind, g, NORMAL, 0);
    for &bit in bits {
        world.lru.folios_mut()[folio].flags.set(bit);
    }
    world.lru.add(folio, entry);
    world.lru.check();
    assert!(!world.has(folio, Bit::ACTIVE), "I1: never active in a generation");
    world.age_of(g, folio)
}

#[test]
fn k72_enters_by_distance_from_the_youngest() {
    use Bit as B;
    use FolioKind::{Anon, File, Shmem};
    let table: &[(FolioKind, &[Bit], Entry, u64)] = &[
        (File, &[], Entry::Plain, 3),
        (File, &[B::REFERENCED], Entry::Plain, 2),
        (File, &[B::WORKINGSET], Entry::Plain, 2),
        (File, &[B::ACTIVE], Entry::Plain, 1),
        (File, &[B::ACTIVE, B::WORKINGSET], Entry::Plain, 0),
        (File, &[B::RECLAIM, B::DIRTY], Entry::Plain, 1),
        (File, &[B::RECLAIM, B::WRITEBACK], Entry::Plain, 1),
        (File, &[B::RECLAIM], Entry::Plain, 3),
        (File, &[B::DIRTY], Entry::Plain, 3),
        (Anon, &[], Entry::Plain, 1),
        (Anon, &[B::SWAPCACHE], Entry::Plain, 3),
        (Shmem, &[], Entry::Plain, 1),
        (File, &[], FAULT, 2),
        (File, &[B::WORKINGSET], FAULT, 0),
        (Anon, &[], FAULT, 1),
        (File, &[], COLD_FAULT, 3),
        (File, &[], Entry::Referenced, 2),
    ];
    for &(kind, bits, entry, expected) in table {
        assert_eq!(lands("after", kind, bits, entry), expected, "{kind:?} {bits:?} {entry:?}");
    }
}

#[test]
fn k614_ignores_the_referenced_flag_and_trusts_faults() {
    use Bit as B;
    use FolioKind::{Anon, File};
    let table: &[(FolioKind, &[Bit], Entry, u64)] = &[
        (File, &[], Entry::Plain, 3),
        (File, &[B::REFERENCED], Entry::Plain, 3),
        (File, &[B::WORKINGSET], Entry::Plain, 2),
        (File, &[], FAULT, 1),
        (File, &[B::WORKINGSET], FAULT, 0),
        (Anon, &[], FAULT, 1),
        (File, &[], COLD_FAULT, 3),
    ];
    for &(kind, bits, entry, expected) in table {
        assert_eq!(lands("before", kind, bits, entry), expected, "{kind:?} {bits:?} {entry:?}");
    }
}

#[test]
fn k612_enters_second_oldest_while_four_generations_exist() {
    use Bit as B;
    use FolioKind::{Anon, File};
    let table: &[(FolioKind, &[Bit], Entry, u64)] = &[
        (File, &[], Entry::Plain, 2),
        (File, &[B::WORKINGSET], Entry::Plain, 2),
        (File, &[B::ACTIVE], Entry::Plain, 0),
        (File, &[], FAULT, 0),
        (File, &[B::RECLAIM, B::WRITEBACK], Entry::Plain, 1),
        (Anon, &[], Entry::Plain, 1),
        (Anon, &[B::SWAPCACHE], Entry::Plain, 2),
    ];
    for &(kind, bits, entry, expected) in table {
        assert_eq!(lands("k6.12", kind, bits, entry), expected, "{kind:?} {bits:?} {entry:?}");
    }
}

#[test]
fn k612_clears_the_counts_of_an_active_folio_that_enters() {
    for (variant, stays) in [("k6.12", false), ("before", true)] {
        let mut world = World::variant(variant);
        let folio = world.unlisted(FolioKind::File, MemcgId::ROOT, NORMAL, 0);
        let flags = &mut world.lru.folios_mut()[folio].flags;
        flags.set(Bit::ACTIVE);
        flags.set(Bit::REFERENCED);
        flags.set_refs(2);
        world.lru.add(folio, Entry::Plain);
        assert_eq!(world.has(folio, Bit::REFERENCED), stays, "{variant}");
        assert_eq!(world.lru.folios()[folio].flags.refs() == 2, stays, "{variant}");
    }
}

/// (referenced, refs, workingset) after each access.
fn ladder(variant: &str) -> Vec<(bool, u32, bool)> {
    let mut world = World::variant(variant);
    let folio = world.file(MemcgId::ROOT);
    let mut rungs = Vec::new();
    for _ in 0..6 {
        world.lru.accessed(folio);
        let flags = world.lru.folios()[folio].flags;
        rungs.push((flags.has(Bit::REFERENCED), flags.refs(), flags.has(Bit::WORKINGSET)));
    }
    rungs
}

#[test]
fn the_ladder_of_k614_ends_with_workingset() {
    let (t, f) = (true, false);
    let rungs = [(t, 0, f), (t, 1, f), (t, 2, f), (t, 3, f), (t, 3, t), (t, 3, t)];
    assert_eq!(ladder("after"), rungs);
}

#[test]
fn the_ladder_of_k612_begins_with_workingset() {
    let (t, f) = (true, false);
    let rungs = [(t, 0, f), (t, 0, t), (t, 1, t), (t, 2, t), (t, 3, t), (t, 3, t)];
    assert_eq!(ladder("k6.12"), rungs);
}

#[test]
fn the_classic_ladder_activates_on_the_second_access() {
    let mut world = World::variant("classic");
    let folio = world.file(MemcgId::ROOT);
    world.lru.accessed(folio);
    assert!(world.has(folio, Bit::REFERENCED) && !world.has(folio, Bit::ACTIVE));
    world.lru.accessed(folio);
    assert!(!world.has(folio, Bit::REFERENCED) && world.has(folio, Bit::ACTIVE));
    world.lru.accessed(folio);
    assert!(world.has(folio, Bit::REFERENCED) && world.has(folio, Bit::ACTIVE));
}

#[test]
fn drop_behind_accesses_leave_no_trace() {
    let mut world = World::variant("after");
    let folio = world.file(MemcgId::ROOT);
    world.lru.folios_mut()[folio].flags.set(Bit::DROPBEHIND);
    world.lru.accessed(folio);
    assert!(!world.has(folio, Bit::REFERENCED));
}

/// A group with one mapped folio, faulted without recency, and its accessed bit long cleared.
fn mapped(variant: &str) -> (World, MemcgId, FolioId) {
    let mut world = World::variant(variant);
    let g = world.group(MemcgId::ROOT);
    let mm = world.mm(g);
    let folio = world.add(FolioKind::Anon, g, COLD_FAULT);
    let page = world.start_of(mm, mglru::host::Backing::Anon);
    world.map(folio, mm, page);
    world.rest(folio);
    (world, g, folio)
}

#[test]
fn k614_promotes_on_the_second_touch_only() {
    let (mut world, g, folio) = mapped("after");
    world.touch(folio);
    world.age(g);
    assert!(world.has(folio, Bit::REFERENCED) && !world.has(folio, Bit::WORKINGSET));
    assert_ne!(world.age_of(g, folio), 1, "not promoted to what was the youngest");
    world.touch(folio);
    world.age(g);
    assert!(!world.has(folio, Bit::REFERENCED) && world.has(folio, Bit::WORKINGSET));
    assert_eq!(world.age_of(g, folio), 1, "youngest when it was walked");
}

#[test]
fn k612_promotes_on_the_first_touch() {
    let (mut world, g, folio) = mapped("k6.12");
    world.touch(folio);
    world.age(g);
    assert_eq!(world.age_of(g, folio), 1);
    assert!(!world.has(folio, Bit::REFERENCED) && !world.has(folio, Bit::WORKINGSET));
}

#[test]
fn an_untouched_folio_is_not_promoted() {
    let (mut world, g, folio) = mapped("after");
    world.age(g);
    world.age(g);
    assert!(!world.has(folio, Bit::REFERENCED));
    assert_eq!(world.age_of(g, folio), 3);
}

#[test]
fn a_folio_removed_while_young_is_put_back_young() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    let young = world.add(FolioKind::Anon, g, FAULT);
    let old = world.file(g);
    for folio in [young, old] {
        world.lru.remove(folio);
    }
    assert!(world.has(young, Bit::ACTIVE) && !world.has(old, Bit::ACTIVE));
}

#[test]
fn cold_advice_forgets_accesses_and_moves_to_the_oldest() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    let folio = world.add(FolioKind::File, g, Entry::Referenced);
    assert_eq!(world.age_of(g, folio), 2);
    world.lru.deactivate(folio);
    assert_eq!(world.age_of(g, folio), 3);
    assert!(!world.has(folio, Bit::REFERENCED));
}

#[test]
fn cold_advice_leaves_a_folio_of_the_oldest_generation_where_it_is() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    let files = world.files(g, 3);
    world.lru.deactivate(files[0]);
    world.toy.groups[g.index()].swap_left = 0;
    world.reclaim(g, 32);
    assert_eq!(world.freed_keys()[0], 0, "it is still the first to go");
}

#[test]
fn lazily_freed_memory_turns_into_old_clean_file_memory() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    let folio = world.add(FolioKind::Anon, g, FAULT);
    world.lru.lazyfree(folio);
    world.lru.check();
    assert_eq!(world.age_of(g, folio), 3);
    assert_eq!(world.lru.folios()[folio].lru_type(), mglru::LruType::File);
    world.reclaim(g, 32);
    assert_eq!(world.counter(mglru::Counter::Pglazyfreed), 1);
}

#[test]
fn mlocked_folios_are_in_no_generation_and_come_back() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    let folio = world.file(g);
    world.lru.set_mlocked(folio, true);
    world.lru.check();
    assert_eq!(world.lru.folios()[folio].flags.generation(), None);
    assert_eq!(world.lru.sizes(g, crate::toy::NODE).unevictable, 1);
    assert_eq!(world.reclaim(g, 32), 0);
    world.lru.set_mlocked(folio, false);
    world.lru.check();
    assert_eq!(world.reclaim(g, 32), 1);
}

#[test]
fn the_end_of_writeback_rotates_a_folio_reclaim_waits_for() {
    for variant in ["after", "before", "k6.12"] {
        let mut world = World::variant(variant);
        let g = world.group(MemcgId::ROOT);
        let waiting = world.file(g);
        world.files(g, 10);
        world.lru.start_writeback(waiting);
        world.lru.folios_mut()[waiting].flags.set(Bit::RECLAIM);
        world.lru.remove(waiting);
        world.lru.folios_mut()[waiting].flags.clear(Bit::ACTIVE);
        world.lru.add(waiting, Entry::Plain);
        assert_eq!(world.age_of(g, waiting), 1, "{variant}: waits as a young folio");
        world.lru.end_writeback(waiting);
        world.lru.check();
        assert_eq!(world.age_of(g, waiting), 3, "{variant}: oldest now");
        assert!(!world.has(waiting, Bit::RECLAIM));
        assert_eq!(world.counter(mglru::Counter::Pgrotated), 1);
        world.reclaim(g, 1);
        assert_eq!(world.freed_keys()[0], 0, "{variant}: first to go");
    }
}

#[test]
fn the_rotation_of_a_locked_or_redirtied_folio_is_lost() {
    for bit in [Bit::LOCKED, Bit::DIRTY] {
        let mut world = World::variant("after");
        let g = world.group(MemcgId::ROOT);
        let folio = world.add(FolioKind::File, g, Entry::Referenced);
        world.lru.start_writeback(folio);
        let flags = &mut world.lru.folios_mut()[folio].flags;
        flags.set(Bit::RECLAIM);
        match bit {
            Bit::DIRTY => world.lru.set_dirty(folio),
            _ => flags.set(bit),
        }
        world.lru.end_writeback(folio);
        assert_eq!(world.age_of(g, folio), 2, "not moved");
        assert!(!world.has(folio, Bit::RECLAIM), "the mark is spent all the same");
        assert_eq!(world.counter(mglru::Counter::Pgrotated), 0);
    }
}

#[test]
fn writeback_nobody_waits_for_moves_nothing() {
    let mut world = World::variant("after");
    let g = world.group(MemcgId::ROOT);
    let folio = world.add(FolioKind::File, g, Entry::Referenced);
    world.write_back(folio);
    assert_eq!(world.age_of(g, folio), 2);
    assert_eq!(world.counter(mglru::Counter::Pgrotated), 0);
}
