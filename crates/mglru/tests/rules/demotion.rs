//! Slower memory (spec §5.1, §5.6): what reclaim takes from the first node goes to the second.

use mglru::folio::Bit;
use mglru::{Config, Counter, FolioKind, Gfp, MemcgId, NodeId, Reclaim};

use crate::toy::{NODE, World};

const SLOW: NodeId = NodeId(1);

fn tiered(variant: &str) -> (World, MemcgId) {
    let config = Config::variant(variant).unwrap();
    let mut world = World::new(Config { nr_nodes: 2, ..config });
    world.toy.lruvec_groups.push(0);
    world.toy.slow_room = Some(1 << 20);
    let g = world.group(MemcgId::ROOT);
    (world, g)
}

fn on(world: &World, g: MemcgId, node: NodeId) -> u64 {
    let sizes = world.lru.sizes(g, node);
    sizes.inactive_file + sizes.active_file + sizes.inactive_anon + sizes.active_anon
}

#[test]
fn what_would_be_evicted_moves() {
    for variant in ["after", "before", "k6.12", "classic"] {
        let (mut world, g) = tiered(variant);
        let folios = world.files(g, 200);
        world.lru.set_dirty(folios[0]);
        let reclaimed = world.reclaim(g, 32);
        let (freed, moved) = (world.toy.freed.len() as u64, world.counter(Counter::PgdemoteDirect));
        assert!(moved >= 32, "{variant}: {moved}");
        assert_eq!(on(&world, g, NODE), 200 - moved, "{variant}: nothing else leaves fast memory");
        assert_eq!(on(&world, g, SLOW), moved - freed, "{variant}: only slow memory loses pages");
        assert_eq!(reclaimed, moved + freed, "{variant}");
        assert_eq!(world.counter(Counter::PgstealDirect), reclaimed, "{variant}");
        assert_eq!(world.toy.usage(g.index()), 200 - freed, "{variant}: the charge stays");
    }
}

#[test]
fn a_dirty_folio_moves_with_its_account() {
    let (mut world, g) = tiered("after");
    let folios = world.files(g, 64);
    folios.iter().for_each(|&folio| world.lru.set_dirty(folio));
    assert!(world.reclaim(g, 32) >= 32);
    let moved = on(&world, g, SLOW);
    assert_eq!(world.lru.node_write(SLOW), (moved, 0));
    assert_eq!(world.lru.node_write(NODE), (64 - moved, 0));
    assert!(folios.iter().all(|&folio| world.has(folio, Bit::DIRTY)));
}

#[test]
fn without_room_they_are_reclaimed_but_not_for_memory_reclaim() {
    let (mut world, g) = tiered("after");
    world.files(g, 200);
    world.toy.slow_room = Some(0);
    assert_eq!(world.run(Reclaim::proactive(g, 32, None)), 0);
    assert!(world.toy.freed.is_empty());
    assert!(world.reclaim(g, 32) >= 32);
    assert_eq!(world.toy.freed.len() as u64, world.counter(Counter::PgstealDirect));
    assert_eq!(world.counter(Counter::PgdemoteDirect), 0);
}

#[test]
fn anon_may_go_without_swap() {
    for variant in ["after", "classic"] {
        let (mut world, g) = tiered(variant);
        world.toy.groups[g.index()].swap_left = 0;
        let mm = world.mm(g);
        let fault = |nth| world.fault_nth(FolioKind::Anon, g, mm, nth);
        let folios: Vec<_> = (0..200).map(fault).collect();
        folios.iter().for_each(|&folio| world.rest(folio));
        world.run(Reclaim::memcg(g, 64, Gfp::default()));
        assert!(on(&world, g, SLOW) >= 32, "{variant}: {}", on(&world, g, SLOW));
        let mapped = |folio: &_| world.toy.places(*folio).len() == 1;
        assert!(folios.iter().all(mapped), "{variant}: what maps them moves along");
    }
}
