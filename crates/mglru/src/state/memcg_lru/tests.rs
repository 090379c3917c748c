use super::*;

/// Ten memcgs, dealt out over the bins in turn.
fn ten() -> (MemcgLru, impl FnMut() -> u8) {
    let mut draw = {
        let mut drawn = 0;
        move || {
            drawn = (drawn + 1) % MEMCG_NR_BINS as u8;
            drawn
        }
    };
    let mut lru = MemcgLru::default();
    (0..10).for_each(|id| lru.add(MemcgId(id)));
    lru.settle(&mut draw);
    lru.check(|memcg| memcg.0 < 10).unwrap();
    (lru, draw)
}

/// All that a walk comes to from where it stands.
fn rest(lru: &MemcgLru, walk: &mut BinWalk) -> Vec<u32> {
    let mut met = Vec::new();
    loop {
        match lru.next(walk) {
            Some(memcg) => met.push(memcg.0),
            None if lru.next_bin(walk) => {}
            None => return met,
        }
    }
}

#[test]
fn a_walk_meets_every_memcg_of_the_old_generation_once() {
    let (mut lru, mut draw) = ten();
    let mut walk = lru.walk(&mut || 3);
    assert_eq!(rest(&lru, &mut walk), [2, 3, 4, 5, 6, 7, 0, 8, 1, 9]);
    lru.rotate(MemcgId(4), Rotation::Young, &mut draw);
    let mut walk = lru.walk(&mut || 0);
    let mut met = rest(&lru, &mut walk);
    met.sort_unstable();
    assert_eq!(met, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
}

#[test]
fn the_generation_advances_when_its_last_memcg_leaves_it() {
    let (mut lru, mut draw) = ten();
    for id in 0..9 {
        lru.rotate(MemcgId(id), Rotation::Young, &mut draw);
        assert_eq!(lru.seq, 0, "memcg 9 is still old");
        lru.check(|memcg| memcg.0 < 10).unwrap();
    }
    lru.rotate(MemcgId(9), Rotation::Tail, &mut draw);
    assert_eq!((lru.seq, lru.segment(MemcgId(9))), (0, Segment::Tail));
    lru.rotate(MemcgId(9), Rotation::Young, &mut draw);
    assert_eq!((lru.seq, lru.segment(MemcgId(9))), (1, Segment::Default));
    lru.check(|memcg| memcg.0 < 10).unwrap();
}

#[test]
fn head_and_tail_stay_in_their_generation_and_old_returns_to_it() {
    let (mut lru, mut draw) = ten();
    for (rotation, slot) in [(Rotation::Young, 1), (Rotation::Head, 1), (Rotation::Tail, 1)] {
        lru.rotate(MemcgId(2), rotation, &mut draw);
        assert_eq!(lru.links[index(MemcgId(2))].slot, Some(slot), "{rotation:?}");
    }
    lru.rotate(MemcgId(2), Rotation::Old, &mut || 6);
    let mut walk = lru.walk(&mut || 6);
    assert_eq!(lru.next(&mut walk), Some(MemcgId(2)), "before memcg 5, at the head");
    assert_eq!(lru.next(&mut walk), Some(MemcgId(5)));
}

#[test]
fn a_second_excess_does_not_move_a_memcg_that_is_at_a_head() {
    let (mut lru, _) = ten();
    lru.exceed(MemcgId(3));
    lru.settle(&mut || 7);
    lru.exceed(MemcgId(3));
    lru.settle(&mut || panic!("no bin is drawn"));
    assert_eq!(lru.segment(MemcgId(3)), Segment::Head);
}

#[test]
fn a_walker_carried_into_another_list_starts_its_bin_again() {
    let (mut lru, mut draw) = ten();
    let mut walk = lru.walk(&mut || 1);
    assert_eq!(lru.next(&mut walk), Some(MemcgId(0)));
    // Another walker takes memcg 0 to the young generation, behind memcg 5; 8 is still to come.
    lru.rotate(MemcgId(5), Rotation::Young, &mut || 1);
    lru.rotate(MemcgId(0), Rotation::Young, &mut || 1);
    let mut met = rest(&lru, &mut walk);
    assert_eq!(met[0], 8, "the rest of its own bin first");
    met.sort_unstable();
    assert_eq!(met, [1, 2, 3, 4, 6, 7, 8, 9]);
    lru.rotate(MemcgId(8), Rotation::Young, &mut draw);
    lru.check(|memcg| memcg.0 < 10).unwrap();
}

#[test]
fn a_walker_survives_the_release_of_the_memcg_it_stands_at() {
    let (mut lru, _) = ten();
    let mut walk = lru.walk(&mut || 1);
    assert_eq!(lru.next(&mut walk), Some(MemcgId(0)));
    lru.release(MemcgId(0));
    assert_eq!(lru.next(&mut walk), Some(MemcgId(8)));
    lru.check(|memcg| (1..10).contains(&memcg.0)).unwrap();
}

/// I22: walks that stop anywhere, and whatever bins are drawn.
#[test]
fn memcgs_that_are_aged_at_every_visit_are_visited_equally_often() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut lru, mut visits) = (ten().0, [0u32; 10]);
    for _ in 0..2000 {
        let mut walk = lru.walk(&mut || random(8) as u8);
        for _ in 0..random(6) {
            let met = loop {
                let next = lru.next(&mut walk);
                if next.is_some() || !lru.next_bin(&mut walk) {
                    break next;
                }
            };
            let Some(memcg) = met else { break };
            visits[memcg.index()] += 1;
            lru.rotate(memcg, Rotation::Young, &mut || random(8) as u8);
            walk.at = head(walk.slot, walk.bin);
            let spread = visits.iter().max().unwrap() - visits.iter().min().unwrap();
            assert!(spread <= 1, "{visits:?}");
        }
        lru.check(|memcg| memcg.0 < 10).unwrap();
    }
    assert!(visits[0] > 300);
}

#[test]
fn the_last_release_leaves_an_empty_lru_that_can_be_filled_again() {
    let (mut lru, mut draw) = ten();
    (0..10).for_each(|id| lru.release(MemcgId(id)));
    lru.check(|_| false).unwrap();
    let mut walk = lru.walk(&mut draw);
    assert_eq!(rest(&lru, &mut walk), []);
    lru.add(MemcgId(10));
    lru.check(|memcg| memcg.0 == 10).unwrap();
    let mut walk = lru.walk(&mut draw);
    assert_eq!(rest(&lru, &mut walk), [10]);
}

#[test]
#[should_panic(expected = "I21: count")]
fn a_wrong_count_is_noticed() {
    let (mut lru, _) = ten();
    lru.count[0] -= 1;
    lru.check(|memcg| memcg.0 < 10).unwrap();
}
