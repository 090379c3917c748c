use super::*;

fn anon(pages: u32) -> PageTable {
    PageTable::new(pages, true)
}

#[test]
fn an_access_sets_what_the_hardware_sets() {
    let mut table = PageTable::new(1000, false);
    assert!(!table.access(700, false), "nothing is mapped");
    table.set(700, Pte::FOLIO);
    assert_eq!(table.next_table(0), Some((1, false)));
    assert!(table.access(700, false));
    assert!(table.get(700).is_young() && !table.get(700).is_dirty());
    assert_eq!(table.next_table(0), Some((1, true)));
    assert!(!table.access(700, true), "a store to a clean page is the kernel's to see");
    table.set(700, table.get(700).dirty());
    assert!(table.access(700, true));
    table.clear_dirty(700);
    assert!(!table.access(700, true));
    assert!(!table.access(1000, false), "beyond the mapping");
}

#[test]
fn masks_say_what_the_entries_say() {
    let mut table = anon(80);
    table.set(3, Pte::FOLIO.young());
    table.set(4, Pte::FOLIO.dirty());
    table.set(5, Pte::SWAP);
    table.set(70, Pte::ZERO.young());
    assert_eq!(table.present_and_young(0..64), (0b11000, 0b01000));
    assert_eq!(table.present_and_young(4..6), (0b01, 0));
    assert_eq!(table.present_and_young(16..80), (1 << 54, 1 << 54));
    (0..80).for_each(|page| _ = table.set(page, Pte::FOLIO.young().dirty()));
    assert_eq!(table.present_and_young(0..64), (u64::MAX, u64::MAX));
    assert_eq!(table.present_and_young(9..22), (0x1FFF, 0x1FFF));
    assert!(table.peek(3).is_young() && !table.peek(99).is_young());
}

#[test]
fn clearing_the_accessed_bits_lets_them_be_set_again() {
    let mut table = PageTable::new(10, false);
    table.set(3, Pte::FOLIO.young());
    assert!(table.take_young(3).is_young());
    assert!(!table.take_young(3).is_young());
    table.clear_table_young(0);
    assert_eq!(table.next_table(0), Some((0, false)));
    assert!(table.access(3, false));
    assert!(table.get(3).is_young());
    assert_eq!(table.next_table(0), Some((0, true)));
}

#[test]
fn an_entry_is_one_of_four_things() {
    let mut table = anon(1);
    assert_eq!(table.maps(0), Maps::None);
    table.set(0, Pte::ZERO.young());
    assert_eq!(table.maps(0), Maps::Zero);
    table.point(0, u32::MAX - 1);
    table.set(0, Pte::FOLIO.young().dirty());
    assert_eq!(table.maps(0), Maps::Folio(FolioId(u32::MAX - 1)));
    table.point(0, 0);
    table.set(0, Pte::SWAP);
    assert_eq!(table.maps(0), Maps::Swap(0));
    assert!(!Pte::ZERO.has_folio() && !Pte::SWAP.has_folio() && !Pte::SWAP.is_young());
}

#[test]
fn resident_and_swapped_pages_are_counted() {
    let mut table = anon(600);
    table.set(0, Pte::FOLIO);
    table.set(599, Pte::FOLIO);
    table.set(599, Pte::SWAP);
    table.set(5, Pte::ZERO);
    assert_eq!((table.resident(), table.swapped()), (1, 1));
    table.set(599, Pte::NONE);
    assert_eq!((table.resident(), table.swapped()), (1, 0));
    assert_eq!(table.table_pages(1), 512..600);
}

#[test]
fn a_page_of_a_file_costs_a_byte_and_one_of_memory_five() {
    let bytes = |table: &PageTable| table.entries.len() + 4 * table.targets.len();
    assert_eq!(bytes(&PageTable::new(1_000, false)), 1_000);
    assert_eq!(bytes(&anon(1_000)), 5_000);
    assert_eq!(size_of::<Pte>(), 1);
}
