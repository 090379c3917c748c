//! The use that brings a page is one use: its entry does not count a second time.

use std::ops::Range;

use crate::{ANON_COLUMN, FILE_COLUMN, MIB, PAGE, file_of, nr_young, pager};
use mglru_pager::{Advice, Map, Mapping, Pager};

const PAGES: usize = 32 * MIB / PAGE;
/// Brought early enough that the first use is over, and late enough that they are resident.
const LATE: Range<usize> = PAGES - 400..PAGES - 200;

/// A file whose pages hold their numbers, to be read at random.
fn mapped(pager: &Pager) -> Mapping {
    let file = file_of(PAGES * PAGE, |at| (at / PAGE) as u8);
    // SAFETY: nobody else has the file.
    let map = unsafe { pager.root().map_read(Map::file(&file).unwrap()) }.unwrap();
    map.advise(Advice::Random).unwrap();
    map
}

#[test]
fn a_page_that_was_used_once_more_is_distinguished_from_one_that_was_not() {
    let Some(pager) = pager(8 * MIB) else { return };
    let map = mapped(&pager);
    let read = |page: usize| assert_eq!(map[page * PAGE], page as u8);
    (0..PAGES).for_each(read);
    let missing = map.stat().missing;
    LATE.for_each(read);
    assert_eq!(map.stat().missing, missing, "the late ones are resident");
    let nr_used = || {
        assert!(pager.root().age().unwrap());
        nr_young(&pager, FILE_COLUMN)
    };
    assert_eq!(nr_used(), LATE.len() as u64, "a walk asks for a second use");
    assert_eq!(nr_used(), 0, "none was used since");
    pager.check().unwrap();
}

#[test]
fn a_fault_that_was_counted_is_not_found_again() {
    let Some(pager) = pager(8 * MIB) else { return };
    let mut map = pager.root().map_anon(PAGES * PAGE).unwrap();
    let mut write = |page: usize| map[page * PAGE] = 1;
    (0..PAGES).for_each(&mut write);
    LATE.for_each(&mut write);
    assert!(pager.root().age().unwrap());
    let used = nr_young(&pager, ANON_COLUMN);
    // The newest, a thirty-second of what is resident, keep their entries a while.
    let newest = 8 * MIB / PAGE / 32;
    assert!((LATE.len()..LATE.len() + newest).contains(&(used as usize)), "{used}");
    pager.check().unwrap();
}

#[test]
fn what_was_used_long_ago_makes_room_for_what_is_used_once() {
    let Some(pager) = pager(8 * MIB) else { return };
    let map = mapped(&pager);
    let read = |page: usize| assert_eq!(map[page * PAGE], page as u8);
    let proved = 0..500;
    (0..1500).for_each(read);
    // Where there is room it looks when it is asked.
    pager.check().unwrap();
    proved.clone().for_each(read);
    assert!(pager.root().age().unwrap());
    assert!(nr_young(&pager, FILE_COLUMN) >= 400, "most are young");
    // Twice around, and a generation for each time: four times the budget.
    (0..2).for_each(|_| (1500..PAGES).for_each(read));
    let missing = map.stat().missing;
    proved.for_each(read);
    let gone = map.stat().missing - missing;
    assert!(gone >= 450, "{gone}");
    pager.check().unwrap();
}
