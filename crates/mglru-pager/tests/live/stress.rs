//! No store is lost: counters on pages, incremented by racing threads while pages come and go.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{MIB, PAGE, content, file_of, pager};
use mglru_pager::{Advice, Map, Pager};

/// Increments of each thread.
fn stores() -> u32 {
    let stores = std::env::var("MGLRU_PAGER_STORES").ok().and_then(|n| n.parse().ok());
    stores.unwrap_or(20_000)
}

/// The counter at the head of a page.
fn counter(map: &[u8], page: usize) -> &AtomicU64 {
    let word = map[page * PAGE..][..8].as_ptr();
    // SAFETY: aligned, in bounds, and only ever used as an atomic while threads run.
    unsafe { AtomicU64::from_ptr(word.cast_mut().cast()) }
}

/// Threads increment counters of random pages, each noting what it did; another thread keeps
/// pushing pages out. Returns the increments of each page.
pub fn race(pager: &Pager, map: &mut [u8], threads: u64, push: impl Fn() + Sync) -> Vec<u64> {
    // Two draws, one squared: some pages are hot, most are not.
    let some_hot = |r: usize, pages: usize| match r & 1 {
        0 => r / 2 % pages,
        _ => (r / 2 % pages) * (r / 2 % pages) / pages,
    };
    race_over(pager, map, threads, stores(), some_hot, push)
}

/// The same, with so many increments of each thread, of the pages that `page` makes of chance.
pub fn race_over(
    pager: &Pager,
    map: &mut [u8],
    threads: u64,
    stores: u32,
    page: impl Fn(usize, usize) -> usize + Sync,
    push: impl Fn() + Sync,
) -> Vec<u64> {
    let pages = map.len() / PAGE;
    let done: Vec<AtomicU64> = (0..pages).map(|_| AtomicU64::new(0)).collect();
    let (map, left) = (&*map, AtomicU64::new(threads));
    std::thread::scope(|scope| {
        for seed in 0..threads {
            let (done, left, page) = (&done, &left, &page);
            scope.spawn(move || {
                let mut x = seed + 1;
                for _ in 0..stores {
                    x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let page = page((x >> 32) as usize, pages);
                    counter(map, page).fetch_add(1, Ordering::Relaxed);
                    done[page].fetch_add(1, Ordering::Relaxed);
                }
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while left.load(Ordering::Relaxed) > 0 {
                push();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
    pager.check().unwrap();
    done.into_iter().map(AtomicU64::into_inner).collect()
}

pub fn verify(map: &[u8], expected: &[u64]) {
    let wrong = (0..expected.len())
        .filter(|&p| counter(map, p).load(Ordering::Relaxed) != expected[p])
        .count();
    assert_eq!(wrong, 0, "pages with lost or repeated stores");
}

#[test]
fn anonymous_stores_survive_eviction() {
    let Some(pager) = pager(6 * MIB) else { return };
    let mut map = pager.root().map_anon(16 * MIB).unwrap();
    let root = pager.root();
    let expected = race(&pager, &mut map, 4, || assert!(root.reclaim(256 << 10).is_ok()));
    verify(&map, &expected);
    let stat = root.stat().unwrap();
    assert!(stat.get("pgsteal_anon").unwrap() > 1000, "{stat:?}");
    println!("{} stores, {:?}", expected.iter().sum::<u64>(), map.stat());
}

#[test]
fn file_stores_survive_eviction_and_reach_the_file() {
    let Some(pager) = pager(6 * MIB) else { return };
    let file = file_of(16 * MIB, |_| 0);
    // SAFETY: nobody else has the file.
    let mut map = unsafe { pager.root().map(Map::file_mut(&file).unwrap()) }.unwrap();
    map.advise(Advice::Random).unwrap();
    let root = pager.root();
    let expected = race(&pager, &mut map, 4, || assert!(root.reclaim(256 << 10).is_ok()));
    verify(&map, &expected);
    println!("{} stores, {:?}", expected.iter().sum::<u64>(), map.stat());
    assert!(root.stat().unwrap().get("pgsteal_file").unwrap() > 1000);
    map.flush().unwrap();
    drop(map);
    verify(&content(&file), &expected);
}
