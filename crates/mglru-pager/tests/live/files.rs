//! Groups as cgroup files: every file is read, what is written takes effect, what is wrong says so.

use crate::{MIB, PAGE, pager};
use mglru_pager::{Group, PagerError, files};

fn number(group: &Group, file: &str) -> u64 {
    group.read(file).unwrap().trim().parse().unwrap()
}

/// A key of a flat-keyed file.
fn key(group: &Group, file: &str, key: &str) -> u64 {
    let text = group.read(file).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{file} has no {key}")).parse().unwrap()
}

/// Faults of a group, once there are so many: a waiting thread goes on before its fault is noted.
fn faults(group: &Group, at_least: u64) -> u64 {
    while key(group, "memory.stat", "pgfault") < at_least {
        std::thread::yield_now();
    }
    key(group, "memory.stat", "pgfault")
}

/// Stalled time of the first line of `memory.pressure`, µs.
fn stalled(group: &Group) -> u64 {
    let text = group.read("memory.pressure").unwrap();
    text.lines().next().unwrap().split_once("total=").unwrap().1.parse().unwrap()
}

#[test]
fn every_file_is_read_and_limits_are_what_was_written() {
    let Some(pager) = pager(32 * MIB) else { return };
    let group = pager.root().create("app").unwrap();
    let mut map = group.map_anon(2 * MIB).unwrap();
    map.fill(1);
    let readable = |file: &&mglru_pager::GroupFile| file.is_readable() && file.is_in("/app");
    for file in files().iter().filter(readable) {
        let text = group.read(file.name).unwrap();
        assert!(text.ends_with('\n'), "{}: {text:?}", file.name);
    }
    // Nothing counts it in a program that has a pager of its own.
    for group in [&group, &pager.root()] {
        assert!(group.read("memory.unmanaged").is_err());
    }
    assert_eq!(group.read("memory.max").unwrap(), "max\n");
    for (written, read) in [("8M", "8388608\n"), ("8388700", "8388608\n"), ("max\n", "max\n")] {
        group.write("memory.max", written).unwrap();
        assert_eq!(group.read("memory.max").unwrap(), read);
    }
    group.write("memory.swappiness", "7").unwrap();
    assert_eq!(group.read("memory.swappiness").unwrap(), "7\n");
    assert!(number(&group, "memory.current") >= 2 * MIB as u64);
    assert_eq!(key(&group, "memory.stat", "anon"), 2 * MIB as u64);
    assert_eq!(key(&group, "memory.events", "oom_kill"), 0);
    assert_eq!(faults(&group, 512), 512, "{}", group.read("mglru.faults").unwrap());
    assert_eq!(key(&pager.root(), "memory.stat", "pgfault"), 512, "groups below are included");
}

#[test]
fn what_cannot_be_is_refused_with_an_errno() {
    let Some(pager) = pager(32 * MIB) else { return };
    let group = pager.root().create("app").unwrap();
    let errno = |file, text| group.write(file, text).unwrap_err().errno();
    assert_eq!(errno("memory.max", "lots"), libc::EINVAL);
    assert_eq!(errno("memory.swappiness", "201"), libc::EINVAL);
    assert_eq!(errno("memory.reclaim", "max"), libc::EINVAL);
    assert_eq!(errno("memory.reclaim", "1M swap=1"), libc::EINVAL);
    assert_eq!(errno("memory.reclaim", "1M"), libc::EAGAIN);
    assert_eq!(errno("memory.current", "1"), libc::EACCES);
    assert_eq!(errno("memory.nothing", "1"), libc::ENOENT);
    assert_eq!(errno("lru_gen", "- 0 0 0"), libc::EINVAL);
    assert_eq!(group.read("memory.reclaim").unwrap_err().errno(), libc::EACCES);
    let root = pager.root();
    assert_eq!(root.write("memory.max", "1M").unwrap_err().errno(), libc::EINVAL);
    assert_eq!(root.read("memory.max").unwrap(), "33554432\n");
}

#[test]
fn groups_come_and_go() {
    let Some(pager) = pager(32 * MIB) else { return };
    let root = pager.root();
    let web = root.create("web").unwrap();
    let cache = web.create("cache").unwrap();
    let names = |group: &Group| -> Vec<String> {
        group.children().unwrap().iter().map(|child| child.path().to_string()).collect()
    };
    assert_eq!((names(&root), names(&web)), (vec!["/web".into()], vec!["/web/cache".into()]));
    let mut map = cache.map_anon(MIB).unwrap();
    map.fill(1);
    let busy = |group: &Group| matches!(group.remove(), Err(PagerError::Busy(_)));
    assert!(busy(&root) && busy(&web) && busy(&cache));
    drop(map);
    cache.remove().unwrap();
    assert!(matches!(pager.group("/web/cache"), Err(PagerError::NoGroup(_))));
    assert!(matches!(cache.create("x"), Err(PagerError::NoGroup(_))), "below one that is gone");
    assert!(cache.map_anon(MIB).is_err());
    assert_eq!(key(&web, "memory.stat", "pgfault"), 256, "what was counted stays");
    let again = web.create("cache").unwrap();
    assert_eq!(key(&again, "memory.stat", "pgfault"), 0);
    assert_eq!(pager.group("/web/cache").unwrap().path(), "/web/cache");
    pager.check().unwrap();
}

#[test]
fn reclaim_is_asked_for_and_counted() {
    let Some(pager) = pager(32 * MIB) else { return };
    let group = pager.root();
    let mut map = group.map_anon(8 * MIB).unwrap();
    map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    group.write("memory.reclaim", "2M swappiness=100").unwrap();
    assert!(key(&group, "memory.stat", "pgsteal_proactive") >= 512);
    assert!(key(&group, "memory.stat", "zswpout") >= 512);
    assert!(number(&group, "memory.swap.current") >= 2 * MIB as u64);
    group.write("memory.high", "4M").unwrap();
    let high = || key(&group, "memory.events", "high");
    while high() == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn only_pages_that_come_back_are_pressure() {
    let Some(pager) = pager(16 * MIB) else { return };
    let group = pager.root().create("app").unwrap();
    let mut map = group.map_anon(12 * MIB).unwrap();
    map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    assert_eq!(stalled(&group), 0, "first touches");
    group.reclaim(6 << 20).unwrap();
    let sum: u32 = map.iter().step_by(PAGE).map(|&byte| u32::from(byte)).sum();
    assert_eq!(sum, 12 * MIB as u32 / PAGE as u32);
    // A waiting thread goes on before the last fault is noted.
    while key(&group, "memory.stat", "zswpin") < map.stat().major {
        std::thread::yield_now();
    }
    let own = stalled(&group);
    assert!(own > 0, "pages that were evicted");
    assert!(stalled(&pager.root()) >= own, "pressure of a group is its parents'");
    let faults = group.read("mglru.faults").unwrap();
    let zswap = faults.lines().find(|line| line.starts_with("zswap ")).unwrap();
    let fields: Vec<u64> = zswap.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
    assert_eq!(fields[0], fields[2..].iter().sum::<u64>(), "{zswap}");
    assert_eq!(fields[0], key(&group, "memory.stat", "zswpin"));
    assert!(fields[1] / 1000 >= stalled(&group) / 2, "a stall is a part of a fault: {zswap}");
}

#[test]
fn a_fault_that_waits_for_room_is_pressure() {
    let Some(pager) = pager(16 * MIB) else { return };
    let group = pager.root().create("app").unwrap();
    let mut map = group.map_anon(8 * MIB).unwrap();
    group.write("memory.max", "3M").unwrap();
    // Incompressible: reclaim is slower than the loop.
    for page in 0..8 * MIB / PAGE {
        map[page * PAGE..][..PAGE].copy_from_slice(&crate::pattern(page, 1));
    }
    if map.stat().throttled > 0 {
        assert!(stalled(&group) > 0);
        assert!(key(&group, "memory.events", "max") > 0);
    }
    assert!(group.peak() <= 3 << 20);
}
