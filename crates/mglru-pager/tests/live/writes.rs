//! What reclaim of dirty pages does to the order of the others.

use crate::stress::{race_over, verify};
use crate::{MIB, content, file_of, pager};
use mglru_pager::{Advice, Group};

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
    let mut map = unsafe { pager.root().map_mut(&file) }.unwrap();
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
