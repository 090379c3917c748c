//! What comes back is what went.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::{MIB, PAGE, content, file_of, open, page_out, pager, pattern};
use mglru_pager::{Advice, Codec, Map, PagerOptions, Store, SwapOptions};

#[test]
fn anonymous_memory_larger_than_the_budget_keeps_every_byte() {
    let Some(pager) = pager(16 * MIB) else { return };
    let pages = 32 * MIB / PAGE;
    let mut map = pager.root().map_anon(pages * PAGE).unwrap();
    assert!(map[..PAGE].iter().all(|&b| b == 0));
    for version in 0..2 {
        for page in 0..pages {
            map[page * PAGE..][..PAGE].copy_from_slice(&pattern(page, version));
        }
        for page in (0..pages).rev() {
            assert!(map[page * PAGE..][..PAGE] == pattern(page, version), "page {page}");
        }
    }
    assert!(map.resident().unwrap() < 16 * MIB as u64);
    assert!(pager.root().peak() <= 16 * MIB as u64);
    pager.check().unwrap();
}

#[test]
fn what_the_pool_cannot_hold_goes_to_the_file() {
    let dir = tempfile::tempdir_in(".").unwrap();
    for codec in [Codec::Lz4, Codec::Zstd] {
        let swap = SwapOptions { codec, ..SwapOptions::in_memory(MIB as u64) };
        let swap = swap.with_file_in(dir.path(), 64 << 20);
        let options = PagerOptions::new().memory_max(8 << 20).swap(swap);
        let Some(pager) = open(options) else { return };
        let pages = 24 * MIB / PAGE;
        let mut map = pager.root().map_anon(pages * PAGE).unwrap();
        for page in 0..pages {
            map[page * PAGE..][..PAGE].copy_from_slice(&pattern(page, 1));
        }
        for page in 0..pages {
            assert!(map[page * PAGE..][..PAGE] == pattern(page, 1), "{codec:?} page {page}");
        }
        let stat = pager.root().stat().unwrap();
        assert!(stat.get("nr_vmscan_write").unwrap() > 3000, "{stat:?}");
        assert!(pager.root().peak() <= 8 << 20);
        pager.check().unwrap();
    }
}

/// The swap file in a folder, which has no name.
fn nameless(folder: &Path) -> File {
    let is_it = |fd: &PathBuf| std::fs::read_link(fd).is_ok_and(|to| to.starts_with(folder));
    let fds = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    OpenOptions::new().write(true).open(fds.into_iter().find(is_it).unwrap()).unwrap()
}

#[test]
fn what_swap_does_not_hold_as_it_was_written_is_read_twice_and_is_an_error() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let folder = dir.path().canonicalize().unwrap();
    let swap = SwapOptions::in_memory(0).with_file_in(&folder, 64 << 20);
    let Some(pager) = open(PagerOptions::new().memory_max(8 << 20).swap(swap)) else { return };
    let mut map = pager.root().map_anon(24 * MIB).unwrap();
    let pages = map.len() / PAGE;
    (0..pages).for_each(|page| map[page * PAGE..][..PAGE].copy_from_slice(&pattern(page, 1)));
    let damaged = nameless(&folder);
    damaged.write_all_at(&vec![0x55; 64 * MIB], 0).unwrap();
    damaged.sync_all().unwrap();
    let reads = || pager.root().stat().unwrap().get("pswpin").unwrap();
    let before = reads();
    // Through a system call it is an error, where a load is SIGBUS.
    let mut sink = tempfile::tempfile_in(".").unwrap();
    let error = sink.write(&map[..PAGE]).unwrap_err().raw_os_error();
    assert!([Some(libc::EFAULT), Some(libc::EHWPOISON)].contains(&error), "{error:?}");
    assert_eq!(reads() - before, 2);
    assert!(map[(pages - 1) * PAGE..] == pattern(pages - 1, 1), "what is in memory stays");
}

#[test]
fn a_file_reads_as_it_is_and_stores_reach_it() {
    let Some(pager) = pager(8 * MIB) else { return };
    let len = 20 * MIB + 1234;
    let file = file_of(len, |i| (i / PAGE) as u8 ^ (i % 251) as u8);
    // SAFETY: nobody else has the file.
    let mut map = unsafe { pager.root().map(Map::file_mut(&file).unwrap()) }.unwrap();
    assert_eq!(map.len(), len);
    for i in (0..len).step_by(1021) {
        assert_eq!(map[i], (i / PAGE) as u8 ^ (i % 251) as u8, "byte {i}");
    }
    for i in (0..len).step_by(3 * PAGE) {
        map[i] = 0xA5;
    }
    map[len - 1] = 0x5A;
    map.flush().unwrap();
    let now = content(&file);
    assert_eq!(now.len(), len, "the last page is short and stays so");
    assert!((0..len).step_by(3 * PAGE).all(|i| now[i] == 0xA5));
    assert_eq!(now[len - 1], 0x5A);
    assert_eq!(now[PAGE + 1], 1 ^ ((PAGE + 1) % 251) as u8);
    assert!(pager.root().peak() <= 8 * MIB as u64);
    pager.check().unwrap();
}

#[test]
fn system_calls_reach_evicted_pages() {
    let Some(pager) = pager(8 * MIB) else { return };
    let len = 16 * MIB;
    let mut map = pager.root().map_anon(len).unwrap();
    for page in 0..len / PAGE {
        map[page * PAGE..][..PAGE].copy_from_slice(&pattern(page, 9));
    }
    map.advise(Advice::PageOut).unwrap();
    assert!(map.resident().unwrap() < MIB as u64);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&map).unwrap();
    map.advise(Advice::PageOut).unwrap();
    file.rewind().unwrap();
    file.read_exact(&mut map[..]).unwrap();
    for page in 0..len / PAGE {
        assert!(map[page * PAGE..][..PAGE] == pattern(page, 9), "page {page}");
    }
}

#[test]
fn neighbours_are_read_along_unless_advised_otherwise() {
    let Some(pager) = pager(16 * MIB) else { return };
    let file = file_of(4 * MIB, |i| i as u8);
    // SAFETY: nobody else has the file.
    let map = unsafe { pager.root().map_read(Map::file(&file).unwrap()) }.unwrap();
    let sum =
        |from: usize| (from..from + MIB).step_by(PAGE).map(|i| u32::from(map[i])).sum::<u32>();
    assert_eq!(sum(0), 0);
    assert_eq!((map.stat().missing, map.stat().read_around), (16, 240));
    map.advise(Advice::Random).unwrap();
    assert_eq!(sum(MIB), 0);
    assert_eq!((map.stat().missing, map.stat().read_around), (16 + 256, 240));
}

#[test]
fn discarded_memory_is_zeros_and_takes_nothing() {
    let Some(pager) = pager(8 * MIB) else { return };
    let mut map = pager.root().map_anon(12 * MIB).unwrap();
    let before = pager.root().current();
    (0..12 * MIB / PAGE).for_each(|p| map[p * PAGE..][..PAGE].copy_from_slice(&pattern(p, 3)));
    map.discard_range(PAGE..12 * MIB).unwrap();
    assert!(pager.root().current() < before + 64 * 1024, "{} bytes", pager.root().current());
    assert!(map[..PAGE] == pattern(0, 3));
    assert!(map[PAGE..].iter().step_by(511).all(|&b| b == 0));
    map[5 * PAGE] = 1;
    assert_eq!(map[5 * PAGE], 1);
    assert!(map.discard_range(1..PAGE).is_err(), "not whole pages");
    pager.check().unwrap();
}

#[test]
fn pinned_pages_stay() {
    let Some(pager) = pager(8 * MIB) else { return };
    let mut map = pager.root().map_anon(16 * MIB).unwrap();
    map[..MIB].fill(7);
    let scan =
        |map: &mglru_pager::MappingMut| map.iter().step_by(PAGE).map(|&b| b as u64).sum::<u64>();
    let pin = map.pin(0..MIB).unwrap();
    let again = map.pin(MIB / 2..MIB).unwrap();
    drop(again);
    let major = map.stat().major;
    page_out(&map, MIB);
    assert_eq!(map[..MIB].iter().map(|&b| b as u64).sum::<u64>(), 7 * MIB as u64);
    assert_eq!(map.stat().major, major);
    drop(pin);
    page_out(&map, 0);
    assert_eq!(scan(&map), 7 * (MIB / PAGE) as u64);
}

#[test]
fn swapped_pages_come_together_where_they_are_used_in_turn() {
    let Some(pager) = pager(32 * MIB) else { return };
    let mut map = pager.root().map_anon(4 * MIB).unwrap();
    let pages = 4 * MIB / PAGE;
    let scan = |map: &mglru_pager::MappingMut, version: u32| {
        page_out(map, 0);
        let before = map.stat();
        (0..pages).for_each(|p| assert!(map[p * PAGE..][..PAGE] == pattern(p, version), "{p}"));
        let now = map.stat();
        (now.major - before.major, now.read_around - before.read_around)
    };
    (0..pages).for_each(|p| map[p * PAGE..][..PAGE].copy_from_slice(&pattern(p, 1)));
    let together = |(major, around): (u64, u64)| {
        assert_eq!(major + around, pages as u64);
        // How many depends on which is faster, the reader or readahead.
        assert!(around > major, "{around} with {major}");
    };
    together(scan(&map, 1));
    // What came along and is stored to is newer than its slot.
    (0..pages).for_each(|p| map[p * PAGE..][..PAGE].copy_from_slice(&pattern(p, 2)));
    together(scan(&map, 2));
    map.advise(Advice::Random).unwrap();
    assert_eq!(scan(&map, 2), (pages as u64, 0), "not where it was advised against");
    pager.check().unwrap();
}

/// A store that takes its time.
struct Slow;

impl Store for Slow {
    fn read_at(&self, _: u64, out: &mut [u8]) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(50));
        out.fill(7);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_page_that_two_threads_touch_at_once_is_one_fault() {
    let Some(pager) = pager(8 * MIB) else { return };
    // SAFETY: nobody else has the store.
    let map = unsafe { pager.root().map(Map::store(Arc::new(Slow), MIB)) }.unwrap();
    let start = Barrier::new(2);
    let touch = || {
        start.wait();
        assert_eq!(map[0], 7);
    };
    std::thread::scope(|scope| {
        scope.spawn(touch);
        scope.spawn(touch);
    });
    drop(map); // What its handlers did is counted.
    let faults = pager.root().read("mglru.faults").unwrap();
    let count = |kind| {
        let line = faults.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
        line.split(' ').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!((count("major "), count("wp ")), (1, 0), "{faults}");
}
