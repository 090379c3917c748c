//! Reclaim of dirty pages and the order of the others, and writes to files behind mappings.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stress::{race_over, verify};
use crate::{MIB, content, file_of, pager};
use mglru_pager::{Advice, Group, Map};

/// The number of the youngest generation.
fn youngest(group: &Group) -> u64 {
    let text = group.lru_gen().unwrap();
    text.lines().last().unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

/// A dirty page that reclaim meets is young until it is written. If reclaim went on meanwhile it
/// would run through whole generations and age all pages again and again.
#[test]
fn reclaim_waits_for_the_writes_of_what_it_met() {
    let Some(pager) = pager(24 * MIB) else { return };
    let file = file_of(48 * MIB, |_| 0);
    // SAFETY: nobody else has the file.
    let mut map = unsafe { pager.root().map(Map::file_mut(&file).unwrap()) }.unwrap();
    map.advise(Advice::Random).unwrap();
    // Of ten stores eight go to a twentieth of the pages.
    let mostly_hot = |r: usize, pages: usize| if r % 10 < 8 { r % (pages / 20) } else { r % pages };
    let expected = race_over(&pager, &mut map, 2, 60_000, mostly_hot, || ());
    let stat = pager.root().stat().unwrap();
    let (stolen, aged) = (stat.get("pgsteal_file").unwrap(), youngest(&pager.root()));
    println!("{stolen} pages stolen, {aged} generations, {:?} scanned", stat.get("pgscan"));
    assert!(stolen > 4000, "{stat:?}");
    // Three with the rule, 11 to 37 without it.
    assert!(aged <= 7, "{aged} generations for {stolen} pages");
    map.flush().unwrap();
    drop(map);
    verify(&content(&file), &expected);
}

/// While a file is written behind its mapping's back another thread stores to the same page, and
/// reclaim wants the page.
#[test]
fn a_store_beside_what_changes_in_the_file_is_kept_and_waits() {
    let Some(pager) = pager(8 * MIB) else { return };
    let file = file_of(4 * MIB, |_| 0);
    // SAFETY: nobody else has the file.
    let mut map = unsafe { pager.root().map(Map::file_mut(&file).unwrap()) }.unwrap();
    // SAFETY: aligned, in the mapping, and only ever used as atomics from here on.
    let word =
        |nth: usize| unsafe { AtomicU64::from_ptr(map.as_ptr().cast_mut().cast::<u64>().add(nth)) };
    let (ours, theirs) = (word(0), word(1));
    ours.store(1, Ordering::Relaxed);
    map.change_store(0..16, || {
        ours.store(2, Ordering::Relaxed);
        // It takes what it can, and that is not this page.
        let _ = pager.root().reclaim(4 << 20);
        assert_eq!(content(&file)[0], 1, "nothing is written back now");
        file.write_all_at(&3u64.to_ne_bytes(), 8).unwrap();
        8..16
    })
    .unwrap();
    assert_eq!([ours, theirs].map(|word| word.load(Ordering::Relaxed)), [2, 3]);
    map.flush().unwrap();
    assert_eq!([content(&file)[0], content(&file)[8]], [2, 3]);
}
