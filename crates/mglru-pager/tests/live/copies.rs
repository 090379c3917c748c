//! Copies of files, where what is stored to is the mapping's own and the rest the file's; and files
//! that grow into their mapping.

use std::sync::Arc;

use crate::stress::{race, verify};
use crate::{MIB, PAGE, content, file_of, open, page_out, pattern};
use mglru_pager::{FaultEngine, FileStore, Map, MappingMut, Pager, PagerOptions, SwapOptions};

const PAGES: usize = 4096;

fn pagers(swap: &SwapOptions) -> impl Iterator<Item = Pager> {
    [FaultEngine::Thread, FaultEngine::Sigbus].into_iter().filter_map(|engine| {
        let options = PagerOptions::new().memory_max(6 * MIB as u64).fault_engine(engine);
        open(options.swap(swap.clone()))
    })
}

fn page(map: &MappingMut, page: usize) -> &[u8] {
    &map[page * PAGE..][..PAGE]
}

/// The file is `pattern(page, 1)` throughout; of every three pages of the copy one is stored to,
/// and one becomes zeros.
fn stored(map: &mut MappingMut) {
    for (nth, page) in map.chunks_mut(PAGE).enumerate() {
        match nth % 3 {
            0 => page.copy_from_slice(&pattern(nth, 2)),
            1 => page.fill(0),
            _ => {}
        }
    }
}

fn check(map: &MappingMut) {
    for nth in 0..PAGES {
        let expected = match nth % 3 {
            0 => pattern(nth, 2),
            1 => vec![0; PAGE],
            _ => pattern(nth, 1),
        };
        assert!(page(map, nth) == expected, "page {nth}");
    }
}

#[test]
fn what_is_stored_to_a_copy_is_its_own() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let small = SwapOptions::in_memory(MIB as u64).with_file_in(folder.path(), 64 << 20);
    for pager in pagers(&SwapOptions::in_memory(6 * MIB as u64)).chain(pagers(&small)) {
        let whole: Vec<u8> = (0..PAGES).flat_map(|page| pattern(page, 1)).collect();
        let file = file_of(PAGES * PAGE, |_| 0);
        std::os::unix::fs::FileExt::write_all_at(&file, &whole, 0).unwrap();
        // SAFETY: nobody changes the file.
        let mut map = unsafe { pager.root().map(Map::file(&file).unwrap().private()) }.unwrap();
        assert_eq!(map.changed_ranges().unwrap(), []);
        stored(&mut map);
        check(&map);
        page_out(&map, 0);
        check(&map);
        pager.check().unwrap();
        let changed = map.changed_ranges().unwrap();
        assert!(changed.iter().enumerate().all(|(n, range)| range.start == n * 3 * PAGE));
        assert_eq!(changed.iter().map(|range| range.len()).sum::<usize>(), 2731 * PAGE);
        let stat = pager.root().stat().unwrap();
        assert!(stat.get("memory.peak").unwrap() <= 6 * MIB as u64, "{stat:?}");
        assert!(stat.get("pgsteal_file").unwrap() > 0, "clean pages go as a file's do");
        map.discard_range(0..3 * PAGE).unwrap();
        assert!((0..3).all(|nth| page(&map, nth) == pattern(nth, 1)), "they are the file's again");
        drop(map);
        assert!(content(&file) == whole, "the file knows nothing of it");
        assert_eq!(pager.root().stat().unwrap().get("memory.swap.current"), Some(0));
    }
}

#[test]
fn no_store_to_a_copy_is_lost() {
    for pager in pagers(&SwapOptions::in_memory(6 * MIB as u64)) {
        let file = file_of(16 * MIB, |_| 0);
        // SAFETY: nobody else has the file.
        let mut map = unsafe { pager.root().map(Map::file(&file).unwrap().private()) }.unwrap();
        let root = pager.root();
        let expected = race(&pager, &mut map, 4, || assert!(root.reclaim(256 << 10).is_ok()));
        verify(&map, &expected);
        pager.check().unwrap();
        assert!(content(&file).iter().all(|&byte| byte == 0));
    }
}

#[test]
fn no_store_to_what_a_file_grew_into_is_lost() {
    for pager in pagers(&SwapOptions::default()) {
        let file = file_of(MIB, |_| 0);
        let store = Arc::new(FileStore::new(&file, true).unwrap());
        let (root, room) = (pager.root(), 16 * MIB);
        let before = root.current();
        // SAFETY: nobody else has the file.
        let mut map = unsafe { root.map(Map::store(store, MIB).with_room(room)) }.unwrap();
        file.set_len(room as u64).unwrap();
        let expected = race(&pager, &mut map, 4, || assert!(root.reclaim(256 << 10).is_ok()));
        verify(&map, &expected);
        map.flush().unwrap();
        drop(map);
        verify(&content(&file), &expected);
        // The buffers of writes stay, 32 KiB each.
        let (after, buffers) = (root.current(), 32 << 10);
        assert_eq!((after - before) % buffers, 0, "all tables are paid back: {before}, {after}");
    }
}

#[test]
fn room_costs_nothing_before_it_is_used() {
    for pager in pagers(&SwapOptions::default()) {
        let file = file_of(MIB, |_| 1);
        let store = Arc::new(FileStore::new(&file, true).unwrap());
        let root = pager.root();
        // SAFETY: nobody else has the file.
        let map = unsafe { root.map(Map::store(store, MIB).with_room(1 << 40)) }.unwrap();
        assert!(map[..MIB].iter().all(|&byte| byte == 1));
        assert!(root.current() <= 3 * MIB as u64, "{}", root.current());
    }
}
