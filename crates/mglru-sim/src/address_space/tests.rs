use super::*;
use crate::page_table::Pte;

fn two_spaces() -> AddressSpaces {
    let file = RegionKind::File { file: 0, first_page: 100 };
    let regions = [
        RegionSpec::plain(0, RegionKind::Anon, 2000),
        RegionSpec::plain(1, file, 50),
        RegionSpec::plain(0, file, 700),
    ];
    AddressSpaces::new(&regions, &[(MmId(4), MemcgId(1)), (MmId(7), MemcgId(2))], 1)
}

#[test]
fn owners_survive_packing() {
    for owner in [Owner::File { file: 3, page: 9 }, Owner::Anon { region: 3, page: 9 }] {
        assert_eq!(Owner::unpack(owner.pack()), owner);
    }
}

#[test]
fn the_reverse_map_finds_every_mapping_of_a_file_page() {
    let mut spaces = two_spaces();
    let owner = Owner::File { file: 0, page: 149 };
    let found: Vec<_> =
        (0..spaces.nr_mappings(owner)).filter_map(|n| spaces.mapping(owner, n)).collect();
    assert_eq!(found, [(1, 49), (2, 49)]);
    assert_eq!(spaces.mapping(Owner::File { file: 0, page: 150 }, 0), None);
    assert_eq!(spaces.mapping(Owner::File { file: 0, page: 99 }, 1), None);
    spaces.unmap(1);
    assert_eq!(spaces.nr_mappings(owner), 1);
    spaces.map(1);
    assert_eq!(spaces.mapping(owner, 1), Some((1, 49)));
}

#[test]
fn a_mapping_shows_a_part_of_a_large_folio() {
    let spaces = two_spaces();
    let shown = |page, n| spaces.mapped(Owner::File { file: 0, page }, n, 0);
    assert_eq!(shown(96, 8), Some((1, 0..4)), "the mapping begins inside");
    assert_eq!(shown(112, 16), Some((1, 12..28)));
    assert_eq!(shown(148, 4), Some((1, 48..50)), "and ends inside");
    assert_eq!((shown(92, 8), shown(152, 8)), (None, None));
    assert_eq!(shown(149, 1), Some((1, 49..50)));
}

#[test]
fn a_walk_meets_populated_tables_in_address_order() {
    let mut spaces = two_spaces();
    spaces.vma_mut(0).table.set(1999, Pte::FOLIO);
    spaces.vma_mut(2).table.set(3, Pte::FOLIO.young());
    let first = spaces.next_pmd(MmId(4), Va::default()).unwrap();
    assert_eq!((split(first.at), split(first.next)), ((0, 1536), (0, 2048)));
    assert_eq!((first.backing, first.young), (Backing::Anon, false));
    let second = spaces.next_pmd(MmId(4), first.next).unwrap();
    assert_eq!((split(second.at), second.young), ((2, 0), true));
    assert_eq!(spaces.next_pmd(MmId(4), second.next), None);
    assert_eq!(spaces.next_pmd(MmId(7), Va::default()), None, "nothing was touched");
    assert_eq!(spaces.next_pmd(MmId(5), Va::default()), None, "no such address space");
}
