use super::*;

const NODE: NodeId = NodeId(0);

fn zones(memory: u64, nodes: u32, dma32: u64, watermark_scale: u32) -> Zones {
    let dma = Some(Size(0));
    let zones = ZoneSpec { dma, dma32: Size(dma32), watermark_scale, ..ZoneSpec::default() };
    Zones::new(&MachineSpec { memory: Size(memory), nodes, zones, ..MachineSpec::default() })
}

#[test]
fn watermarks_of_a_gibibyte() {
    // sqrt(16 · 1048576) KiB = 4096 KiB = 1024 pages.
    let view = zones(1 << 30, 1, 0, 0).view(NODE, NORMAL);
    assert_eq!((view.min, view.low, view.high), (1_024, 1_280, 1_536));
    let large = zones(128 << 30, 1, 0, 10).view(NODE, NORMAL);
    assert_eq!(large.min, 46_340 / 4);
    assert_eq!(large.low - large.min, 33_554, "a thousandth of the zone");
}

#[test]
fn nodes_share_memory_and_minimum() {
    let zones = zones((1 << 30) + PAGE_SIZE, 2, 0, 0);
    let views = [0, 1].map(|node| zones.view(NodeId(node), NORMAL));
    assert_eq!(views.map(|view| view.managed), [131_073, 131_072]);
    assert_eq!(views[1].min, 511);
    assert_eq!((zones.managed_pages(), zones.free_pages()), (262_145, 262_145));
}

#[test]
fn marks_stop_allocations_in_turn() {
    let mut zones = zones(1 << 30, 1, 0, 0);
    let mut take =
        |mark| (0..).take_while(|_| zones.alloc(NODE, NORMAL, 1, mark).is_some()).count();
    assert_eq!(take(Mark::High), 262_144 - 1_537);
    assert_eq!([Mark::Low, Mark::Min].map(&mut take), [256, 256]);
    assert_eq!((take(Mark::None), take(Mark::None)), (1_025, 0));
}

#[test]
fn kswapd_runs_below_low_until_above_high() {
    let mut zones = zones(1 << 30, 1, 0, 0);
    assert!(zones.is_balanced(NODE, NORMAL));
    zones.alloc(NODE, NORMAL, 262_144 - 1_281, Mark::None).unwrap();
    assert!(!zones.wants_kswapd(NODE, NORMAL) && !zones.is_balanced(NODE, NORMAL));
    zones.alloc(NODE, NORMAL, 1, Mark::None).unwrap();
    assert!(zones.wants_kswapd(NODE, NORMAL));
    zones.free(NODE, NORMAL, 256);
    assert!(!zones.is_balanced(NODE, NORMAL));
    zones.free(NODE, NORMAL, 1);
    assert!(zones.is_balanced(NODE, NORMAL));
}

#[test]
fn lower_zones_come_last_and_keep_a_reserve() {
    let mut zones = zones(8 << 30, 1, 1 << 30, 0);
    let normal = zones.view(NODE, NORMAL).managed;
    assert_eq!(zones.alloc(NODE, NORMAL, 1, Mark::Low), Some((NODE, NORMAL)));
    assert_eq!(zones.alloc(NODE, DMA32, 1, Mark::Low), Some((NODE, DMA32)));
    let rest = zones.view(NODE, NORMAL).free;
    zones.alloc(NODE, NORMAL, rest, Mark::None).unwrap();
    let free = zones.view(NODE, DMA32).free;
    let low = zones.view(NODE, DMA32).low;
    let usable = free - low - normal / 256 - 1;
    assert_eq!(zones.alloc(NODE, NORMAL, usable + 1, Mark::Low), None);
    assert_eq!(zones.alloc(NODE, NORMAL, usable, Mark::Low), Some((NODE, DMA32)));
    assert!(zones.allows(NODE, DMA32, 1, Mark::Low), "its own allocations need none");
}

#[test]
fn the_first_node_has_the_zone_of_the_oldest_devices() {
    let managed = |memory, dma| {
        let zones = ZoneSpec { dma, ..ZoneSpec::default() };
        let spec = MachineSpec { memory: Size(memory), nodes: 2, zones, ..MachineSpec::default() };
        let zones = Zones::new(&spec);
        [0, 1].map(|node| zones.view(NodeId(node), DMA).managed)
    };
    assert_eq!(managed(1 << 30, None), [3_840, 0]);
    assert_eq!(managed(1 << 30, Some(Size(0))), [0, 0]);
    assert_eq!(managed(32 << 20, None), [512, 0], "an eighth of a small node");
}

#[test]
fn a_large_machine_leaves_its_lowest_zone_alone() {
    let spec = MachineSpec { memory: Size(8 << 30), ..MachineSpec::default() };
    let mut zones = Zones::new(&spec);
    let dma = zones.view(NODE, DMA);
    assert_eq!(dma.reserve, zones.view(NODE, NORMAL).managed / 256);
    assert!(dma.free < dma.reserve);
    let normal = zones.view(NODE, NORMAL).free;
    zones.alloc(NODE, NORMAL, normal - 1, Mark::None).unwrap();
    assert!(zones.wants_kswapd(NODE, NORMAL), "its free pages help nobody");
    assert!(zones.kept_back() >= dma.managed);
}

#[test]
fn a_full_node_falls_back_to_the_next() {
    let mut zones = zones(1 << 30, 3, 0, 0);
    let (second, third) = (NodeId(1), NodeId(2));
    let all = zones.free_on(second);
    assert_eq!(zones.alloc(second, NORMAL, all, Mark::None), Some((second, NORMAL)));
    assert_eq!(zones.alloc(second, NORMAL, 1, Mark::Low), Some((third, NORMAL)));
    assert_eq!(zones.alloc_on(second, NORMAL, 1, Mark::None), None);
}

#[test]
#[should_panic(expected = "more pages freed")]
fn pages_are_conserved() {
    zones(1 << 30, 1, 0, 0).free(NODE, NORMAL, 1);
}
