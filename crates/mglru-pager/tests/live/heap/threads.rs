//! Threads use a heap while it is forked, theirs and the pager's own.

use std::sync::atomic::{AtomicU64, Ordering};

use mglru_pager::ForkPolicy;

use super::{fill, fork, heap, map, status, wrong};
use crate::{MIB, PAGE};

/// Rounds of each thread of the stress test.
fn rounds() -> u32 {
    let rounds = std::env::var("MGLRU_PAGER_STORES").ok().and_then(|n| n.parse().ok());
    rounds.unwrap_or(5_000)
}

/// The counter at the head of a page.
fn counter(memory: &[u8], page: usize) -> &AtomicU64 {
    let word = memory[page * PAGE..][..8].as_ptr();
    // SAFETY: aligned, in bounds, and only ever used as an atomic while threads run.
    unsafe { AtomicU64::from_ptr(word.cast_mut().cast()) }
}

/// Words that children of forks share with their parent.
fn shared(n: usize) -> &'static [AtomicU64] {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping of zeros, which stays.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), n * 8, prot, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        std::slice::from_raw_parts(start.cast(), n)
    }
}

#[test]
fn threads_and_forks_lose_nothing() {
    const THREADS: usize = 4;
    let Some((pager, heap, _dir)) = heap(5 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 16 * MIB);
    let pages = memory.len() / PAGE;
    fill(memory, 0);
    (0..pages).for_each(|page| counter(memory, page).store(0, Ordering::Relaxed));
    let memory = &*memory;
    let seen = shared(pages);
    // Page by page what was added before, and what may have been added since.
    let done: Vec<AtomicU64> = (0..pages).map(|_| AtomicU64::new(0)).collect();
    let begun: Vec<AtomicU64> = (0..pages).map(|_| AtomicU64::new(0)).collect();
    let left = AtomicU64::new(THREADS as u64);
    std::thread::scope(|scope| {
        for seed in 0..THREADS as u64 {
            let (begun, done, left) = (&begun, &done, &left);
            scope.spawn(move || {
                let mut x = seed + 1;
                for _ in 0..rounds() {
                    x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let page = (x >> 40) as usize % pages;
                    begun[page].fetch_add(1, Ordering::SeqCst);
                    counter(memory, page).fetch_add(1, Ordering::SeqCst);
                    done[page].fetch_add(1, Ordering::SeqCst);
                }
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let mut forks = 0;
        while left.load(Ordering::SeqCst) > 0 || forks < 3 {
            let low: Vec<u64> = done.iter().map(|n| n.load(Ordering::SeqCst)).collect();
            let child = fork(|| {
                for (page, seen) in seen.iter().enumerate() {
                    seen.store(counter(memory, page).load(Ordering::SeqCst), Ordering::SeqCst);
                }
                0
            });
            let high: Vec<u64> = begun.iter().map(|n| n.load(Ordering::SeqCst)).collect();
            assert_eq!(status(child), 0, "fork {forks}");
            let within = |page: &usize| {
                (low[*page]..=high[*page]).contains(&seen[*page].load(Ordering::SeqCst))
            };
            assert_eq!((0..pages).filter(within).count(), pages, "fork {forks}");
            forks += 1;
        }
        println!("{forks} forks, {:?}", heap.stat());
    });
    let lost = |page: &usize| {
        counter(memory, *page).load(Ordering::SeqCst) != done[*page].load(Ordering::SeqCst)
    };
    assert_eq!((0..pages).filter(lost).count(), 0);
    pager.check().unwrap();
}

/// The C library's allocator is held still while a fork waits for the pager's threads, which
/// allocate with it too.
#[test]
fn forks_end_while_the_pagers_threads_allocate() {
    let Some((_pager, heap, _dir)) = heap(6 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 12 * MIB);
    fill(memory, 1);
    let memory = &*memory;
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(wrong(memory, 1), 0);
                }
            });
        }
        // A fork that waits for ever would keep the test from ending: then this ends it.
        // SAFETY: takes a number; nobody else here uses it.
        unsafe { libc::alarm(300) };
        let children: Vec<_> = (0..200).map(|_| fork(|| 0)).collect();
        // SAFETY: as above.
        unsafe { libc::alarm(0) };
        stop.store(true, Ordering::Relaxed);
        children.into_iter().for_each(|child| assert_eq!(status(child), 0));
    });
}
