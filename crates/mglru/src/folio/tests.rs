use super::*;
use alloc::vec;

fn folios(n: usize) -> (Folios, List, Vec<FolioId>) {
    let mut folios = Folios::default();
    let list = folios.new_list();
    let ids = (0..n)
        .map(|i| folios.alloc(FolioKind::File, LruvecId(0), Zone(2), 0, [i as u32, 0]))
        .collect();
    (folios, list, ids)
}

#[test]
fn a_folio_is_32_bytes() {
    assert_eq!(size_of::<Folio>() + size_of::<Links>(), 32);
}

#[test]
fn lists_keep_order_from_both_ends() {
    let (mut folios, list, ids) = folios(3);
    folios.push_head(list, ids[0]);
    folios.push_head(list, ids[1]);
    folios.push_tail(list, ids[2]);
    let order: Vec<_> = folios.iter_from_tail(list).collect();
    assert_eq!(order, vec![ids[2], ids[0], ids[1]]);
    folios.unlink(ids[0]);
    let order: Vec<_> = folios.iter_from_tail(list).collect();
    assert_eq!(order, vec![ids[2], ids[1]]);
}

#[test]
fn a_piece_keeps_its_order_at_either_end_of_another_list() {
    for (to_tail, expected) in [(true, [1, 2, 5]), (false, [5, 1, 2])] {
        let (mut folios, list, ids) = folios(6);
        let other = folios.new_list();
        ids[..5].iter().for_each(|&id| folios.push_head(list, id));
        folios.push_head(other, ids[5]);
        folios.splice(ids[1], ids[2], other, to_tail);
        let order = |list| -> Vec<FolioId> { folios.iter_from_tail(list).collect() };
        assert_eq!(order(other), expected.map(|i| ids[i]), "to_tail {to_tail}");
        assert_eq!(order(list), [0, 3, 4].map(|i| ids[i]));
        let mut back: Vec<FolioId> = order(other);
        back.reverse();
        let head = |id: &FolioId| Some(folios.links[id.index()].next).filter(|n| *n != other.0);
        let forth = core::iter::successors(Some(back[0]), head).collect::<Vec<_>>();
        assert_eq!(forth, back, "links agree both ways");
    }
}

#[test]
fn slots_are_reused() {
    let (mut folios, _, ids) = folios(2);
    folios.free(ids[0]);
    let again = folios.alloc(FolioKind::Anon, LruvecId(1), Zone(0), 0, [9, 9]);
    assert_eq!(again, ids[0]);
    assert_eq!((folios.live(), folios[again].lru_type()), (2, LruType::Anon));
    assert_eq!(folios.iter().count(), 2);
}
