use super::*;

fn parse(text: &str) -> Result<MachineSpec, String> {
    let spec = toml::from_str::<MachineSpec>(text).map_err(|e| e.to_string())?;
    spec.check().map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err()
}

#[test]
fn nothing_written_is_the_default() {
    assert_eq!(parse("").unwrap(), MachineSpec::default());
}

#[test]
fn a_whole_machine() {
    let spec = parse(
        "memory = \"128GiB\"\ncpus = 96\nnodes = 2\ndevice = \"ssd-net\"\n\
         swap = { kind = \"zram\", ratio = 2.5 }\ncosts = { scan_ns = 90 }\n\
         dirty = { ratio = 30 }\n[groups.\"/mongo\"]\n\"memory.max\" = \"10GiB\"\n\
         memory_low = 4096\nswappiness = 100",
    )
    .unwrap();
    assert_eq!(spec.pages(), 32 << 20);
    assert_eq!(spec.device, DeviceSpec::preset("ssd-net").unwrap());
    assert_eq!(spec.swap.size, Some(Size(128 << 30)), "as much as there is memory");
    assert_eq!((spec.costs.scan_ns, spec.dirty.ratio), (90, 30));
    let mongo = spec.group("/mongo");
    assert_eq!((mongo.max, mongo.low), (Size(10 << 30), Size(4096)));
    assert_eq!((mongo.high, mongo.swappiness), (Size::MAX, Some(100)));
    assert_eq!(spec.group("/other"), GroupSpec::default());
}

#[test]
fn writes_what_it_reads() {
    let mut spec = MachineSpec { swappiness: 7, ..MachineSpec::default() };
    spec.groups.insert("/a".into(), GroupSpec { max: Size(1 << 30), ..GroupSpec::default() });
    let text = toml::to_string(&spec).unwrap();
    assert_eq!(parse(&text).unwrap(), spec);
}

#[test]
fn scaling_takes_memory_and_limits_along() {
    let spec = parse(
        "memory = \"128GiB\"\nswap = { kind = \"zram\", size = \"64GiB\" }\n\
         zones = { dma32 = \"4GiB\" }\n[groups.\"/a\"]\nmemory_max = \"10GiB\"",
    )
    .unwrap();
    let small = spec.scaled(1.0 / 64.0);
    assert_eq!((small.memory, small.swap.size), (Size(2 << 30), Some(Size(1 << 30))));
    assert_eq!(small.zones.dma32, Size(64 << 20));
    assert_eq!(small.group("/a").max, Size(160 << 20));
    assert_eq!(small.group("/a").high, Size::MAX);
    assert_eq!((small.cpus, small.readahead_pages()), (spec.cpus, 32));
}

#[test]
fn values_out_of_range_are_named() {
    assert_eq!(refused("cpus = 0"), "cpus = 0: must be from 1 to 4096");
    assert_eq!(refused("memory = 4096"), "memory = 4KiB: must be from 1MiB to 1TiB");
    assert_eq!(
        refused("costs = { scan_ns = 1000000001 }"),
        "costs.scan_ns = 1000000001: must be from 0 to 1000000000"
    );
    assert_eq!(
        refused("swap = { kind = \"device\", device = { read_rate = 1 } }"),
        "swap.device.read_rate = 1: must be from 4096 to 18446744073709551615"
    );
    assert_eq!(refused("swappiness = 201"), "swappiness = 201: must be from 0 to 200");
    assert_eq!(refused("dirty = { ratio = 101 }"), "dirty.ratio = 101: must be from 1 to 100");
    assert_eq!(
        refused("[groups.\"/a\"]\nmemory_max = 100"),
        "groups./a.memory.max = 100: must be from 4KiB to 16GiB"
    );
    assert_eq!(
        refused("memory = \"1GiB\"\n[groups.\"/a\"]\nmemory_max = \"2GiB\""),
        "groups./a.memory.max = 2GiB: must be from 4KiB to 1GiB"
    );
    assert_eq!(
        refused("[groups.\"/a\"]\nmemory_swappiness = 201"),
        "groups./a.memory.swappiness = 201: must be from 0 to 200"
    );
}

#[test]
fn contradictions_are_named() {
    let cases = [
        (
            "device = { preset = \"nvme\", elevator_batch = 9 }",
            "device.channels = 32: a device with an elevator (elevator_batch > 0) has one channel",
        ),
        (
            "device = { seek_ns = 9 }",
            "device.seek_ns = 9: only a device with an elevator (elevator_batch > 0) seeks",
        ),
        (
            "[groups.\"/a\"]\nmemory_max = \"1GiB\"\nmemory_low = \"2GiB\"",
            "groups./a.memory.low = 2GiB: more than memory.max (1GiB)",
        ),
        (
            "[groups.\"/a\"]\nmemory_max = \"1GiB\"\nmemory_min = \"2GiB\"",
            "groups./a.memory.min = 2GiB: more than memory.max (1GiB)",
        ),
        (
            "[groups.\"/a\"]\nmemory_swap_max = \"1GiB\"",
            "groups./a.memory.swap.max = 1GiB: there is no swap (swap.kind = none)",
        ),
        ("swap = { size = \"1GiB\" }", "swap.size = 1GiB: there is no swap (swap.kind = none)"),
        (
            "swap = { kind = \"zram\", device = \"hdd\" }",
            "swap.device = set: only swap.kind = device has one",
        ),
        ("nodes = 9", "nodes = 9: cpus is only 8"),
        ("groups.web = {}", "groups = web: a group is named by its path, such as /web"),
        ("fault_around_kb = 24", "fault_around_kb = 24: no power of two"),
        ("readahead_kb = 6", "readahead_kb = 6: no multiple of a page (4 KiB)"),
        (
            "zones = { dma32 = \"16GiB\" }",
            "zones.dma32 = 16GiB: leaves no normal zone of the first node's 16GiB",
        ),
        ("dirty = { ratio = 10 }", "dirty.background_ratio = 10: not below dirty.ratio (10)"),
    ];
    for (text, message) in cases {
        assert_eq!(refused(text), message, "{text}");
    }
}

#[test]
fn every_preset_can_be_simulated() {
    for name in crate::device::PRESETS {
        parse(&format!("device = \"{name}\"")).unwrap();
    }
}

#[test]
fn group_keys_may_be_dotted_quoted_or_underscored() {
    let quoted = parse("[groups.\"/a\"]\n\"memory.max\" = 8192\n\"memory.swap.max\" = 0");
    let dotted = parse("[groups.\"/a\"]\nmemory.max = \"8K\"\nmemory.swap.max = 0");
    let underscored = parse("[groups.\"/a\"]\nmemory_max = \"8K\"\nmemory_swap_max = 0");
    assert_eq!(quoted.as_ref().unwrap().group("/a").max, Size(8_192));
    assert_eq!(quoted, dotted);
    assert_eq!(quoted, underscored);
    let twice = refused("[groups.\"/a\"]\nmemory.max = 1\nmemory_max = 1");
    assert!(twice.contains("memory.max is written twice"), "{twice}");
    let unknown = refused("[groups.\"/a\"]\nmemory.maxx = 1");
    assert!(unknown.contains("unknown field `maxx`"), "{unknown}");
}

#[test]
fn unknown_keys_are_named() {
    for text in ["memmory = 1", "[groups.\"/a\"]\n\"memory.maxx\" = 1", "swap = { knd = 1 }"] {
        assert!(refused(text).contains("unknown field"), "{text}");
    }
}
