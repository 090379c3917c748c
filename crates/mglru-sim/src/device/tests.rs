use super::*;

fn device(name: &str) -> Device {
    Device::new(DeviceSpec::preset(name).unwrap(), Rng::new(1, 0))
}

fn read(lba_page: u64, pages: u32) -> Io {
    Io { write: false, lba_page, pages }
}

/// Runs the device dry: (time, token) in order of completion.
fn drain(device: &mut Device) -> Vec<(Nanos, u64)> {
    let (mut done, mut tokens, mut now) = (Vec::new(), Vec::new(), 0);
    while let Some(at) = device.next_event() {
        now = at.max(now);
        device.complete(now, &mut tokens);
        done.extend(tokens.drain(..).map(|token| (now, token)));
    }
    assert_eq!(device.in_flight(), 0);
    done
}

#[test]
fn one_request_takes_service_and_transfer() {
    let mut nvme = device("nvme");
    nvme.submit(1_000, read(0, 7), 9);
    // 28,672 bytes at 3 GB/s: 9,557.3 ns, rounded up.
    assert_eq!(drain(&mut nvme), [(1_000 + 80_000 + 9_558, 9)]);
    let traffic = Traffic { reads: 1, sectors_in: 56, ..Traffic::default() };
    assert_eq!(nvme.traffic(), traffic);
}

#[test]
fn channels_bound_the_rate_of_small_requests() {
    let mut net = device("ssd-net");
    (0..80).for_each(|token| net.submit(0, read(token * 100, 1), token));
    let done = drain(&mut net);
    // Ten rounds of eight; a page takes 16.4 µs of the shared rate, less than a channel's share.
    assert_eq!(done.last().unwrap().0, 10 * 600_000 + 8 * 16_384);
    assert_eq!(done.len(), 80);
}

#[test]
fn shared_rate_bounds_large_requests() {
    let mut nvme = device("nvme");
    (0..1_000).for_each(|token| nvme.submit(0, read(token * 320, 320), token));
    let elapsed = drain(&mut nvme).last().unwrap().0;
    let rate = 1_000 * 320 * 4_096 * 1_000 / elapsed;
    assert!((2_990..=3_000).contains(&rate), "{rate} MB/s");
}

#[test]
fn a_read_overtakes_delayed_writes() {
    let mut delay = device("delay");
    delay.submit(0, Io { write: true, lba_page: 0, pages: 320 }, 1);
    assert_eq!(delay.next_event(), Some(1_000_000_000 + 1_310_720));
    delay.submit(5_000, read(400, 1), 2);
    let done = drain(&mut delay);
    assert_eq!(done, [(5_000 + 4_096, 2), (1_001_310_720, 1)]);
}

#[test]
fn an_overtaken_request_makes_the_caller_look_again() {
    let spec = DeviceSpec { channels: 2, write_rate: 1_000_000, ..DeviceSpec::nvme() };
    let mut slow = Device::new(spec, Rng::new(1, 0));
    slow.submit(0, read(0, 1), 1);
    let foreseen = slow.next_event().unwrap();
    slow.submit(0, Io { write: true, lba_page: 9, pages: 1 }, 2);
    let done = drain(&mut slow);
    assert_eq!(done[0], (25_000 + 4_096_000, 2));
    assert!(done[1].0 > foreseen && done[1].1 == 1);
}

#[test]
fn disk_serves_a_batch_in_order_of_address() {
    let mut hdd = device("hdd");
    hdd.submit(0, read(500, 1), 0);
    for (token, lba) in [(1, 900), (2, 100), (3, 101), (4, 700)] {
        hdd.submit(0, read(lba, 1), token);
    }
    let done = drain(&mut hdd);
    let order: Vec<u64> = done.iter().map(|(_, token)| *token).collect();
    assert_eq!(order, [0, 2, 3, 4, 1]);
    let next_lba = done[2].0 - done[1].0;
    assert_eq!(next_lba, 40_960, "no seek between neighbours");
    let seek = done[1].0 - done[0].0 - 40_960;
    assert!((8_000_000..=12_000_000).contains(&seek), "{seek}");
}

#[test]
fn disk_batches_hold_128_and_later_arrivals_wait() {
    let mut hdd = device("hdd");
    hdd.submit(0, read(1_000_000, 1), 0);
    (1..=129).for_each(|n| hdd.submit(0, read(1_000 - n, 1), n));
    let order: Vec<u64> = drain(&mut hdd).iter().map(|(_, token)| *token).collect();
    assert_eq!(order[1], 128, "lowest address of the first 128");
    assert_eq!(order[129], 129, "lower still, but of the next batch");
}

#[test]
fn disk_hands_back_what_finished_before_a_submission() {
    let mut hdd = device("hdd");
    hdd.submit(0, read(0, 1), 7);
    hdd.submit(1_000_000_000, read(1, 1), 8);
    let mut tokens = Vec::new();
    assert!(hdd.next_event().unwrap() <= 1_000_000_000);
    hdd.complete(1_000_000_000, &mut tokens);
    assert_eq!(tokens, [7]);
    assert_eq!(hdd.next_event(), Some(1_000_040_960));
}

#[test]
fn same_seed_same_disk() {
    let run = || {
        let mut hdd = device("hdd");
        (0..300).for_each(|n| hdd.submit(n * 1_000, read(n * 7_919 % 1_000, 2), n));
        drain(&mut hdd)
    };
    assert_eq!(run(), run());
}

#[test]
fn memory_copies_on_the_processor() {
    let mut ram = device("ram");
    assert_eq!(ram.copy(read(0, 4)), Some(1_600));
    assert_eq!(ram.traffic().sectors_in, 32);
    assert_eq!(device("nvme").copy(read(0, 4)), None);
}

#[test]
fn room_ends_at_the_queue_depth() {
    let mut delay = device("delay");
    (0..128).for_each(|n| {
        assert!(delay.has_room());
        delay.submit(0, Io { write: true, lba_page: n, pages: 1 }, n);
    });
    assert!(!delay.has_room());
    drain(&mut delay);
    assert!(delay.has_room());
}

#[test]
fn presets_by_name_and_with_changes() {
    #[derive(serde::Deserialize)]
    struct Plan {
        device: DeviceSpec,
    }
    let parse = |text: &str| toml::from_str::<Plan>(text).map(|plan| plan.device);
    for name in PRESETS {
        let named = parse(&format!("device = \"{name}\"")).unwrap();
        assert_eq!(Some(named), DeviceSpec::preset(name));
    }
    let changed = parse("device = { preset = \"ufs\", channels = 4 }").unwrap();
    assert_eq!(changed, DeviceSpec { channels: 4, ..DeviceSpec::preset("ufs").unwrap() });
    let unknown = parse("device = \"floppy\"").unwrap_err().to_string();
    assert!(unknown.contains("unknown device `floppy` (known: nvme"), "{unknown}");
    let key = parse("device = { chanels = 4 }").unwrap_err().to_string();
    assert!(key.contains("chanels"), "{key}");
}
