//! Heaps: private memory that a program maps, drops, locks and forks as it likes.

mod threads;

use std::ops::Range;

use crate::{ANON_COLUMN, MIB, PAGE, nr_young, open, pattern};
use mglru_pager::{
    FaultStat, ForkPolicy, Heap, KEPT_BITS, Pager, PagerOptions, SwapOptions, probe,
};

/// A pager of `max` bytes whose swap overflows to a file, and a heap of its root.
pub fn heap(max: usize, fork: ForkPolicy) -> Option<(Pager, Heap, tempfile::TempDir)> {
    heap_with(PagerOptions::new(), max, fork)
}

fn heap_with(
    options: PagerOptions,
    max: usize,
    fork: ForkPolicy,
) -> Option<(Pager, Heap, tempfile::TempDir)> {
    let dir = tempfile::tempdir_in(".").unwrap();
    let swap = SwapOptions::in_memory(max as u64 / 4).with_file_in(dir.path(), 256 << 20);
    let pager = open(options.memory_max(max as u64).swap(swap))?;
    match pager.root().heap(1 << 30, fork) {
        Ok(heap) => Some((pager, heap, dir)),
        Err(error) => {
            println!("skipped: no heaps here: {error}");
            None
        }
    }
}

pub fn map(heap: &Heap, len: usize) -> &'static mut [u8] {
    let start = heap.map(len, None).expect("the reserve has room");
    // SAFETY: the range was just mapped, and the test ends before the heap does.
    unsafe { std::slice::from_raw_parts_mut(start, len) }
}

fn addresses(memory: &[u8]) -> Range<usize> {
    memory.as_ptr() as usize..memory.as_ptr() as usize + memory.len()
}

pub fn fill(memory: &mut [u8], version: u32) {
    for (nth, page) in memory.chunks_mut(PAGE).enumerate() {
        page.copy_from_slice(&pattern(nth, version));
    }
}

/// Pages that do not hold what [`fill`] left there. Allocates nothing, for children of a fork.
pub fn wrong(memory: &[u8], version: u32) -> usize {
    let seed =
        |nth: usize| (nth as u32).wrapping_mul(0x9E37_79B9) ^ version.wrapping_mul(0x85EB_CA6B);
    let is_filled = |page: &[u8], seed: u32| {
        page.chunks_exact(4).enumerate().all(|(i, word)| {
            u32::from_le_bytes([word[0], word[1], word[2], word[3]]) == seed ^ (i as u32 / 7)
        })
    };
    memory.chunks(PAGE).enumerate().filter(|(nth, page)| !is_filled(page, seed(*nth))).count()
}

/// Runs `what` in a forked child; the child's number.
pub fn fork(what: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the child touches memory, makes system calls and leaves.
    match unsafe { libc::fork() } {
        0 => {
            let code = what();
            // SAFETY: ends the child.
            unsafe { libc::_exit(code) }
        }
        pid => pid,
    }
}

pub fn status(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this test.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child was killed: {status:#x}");
    libc::WEXITSTATUS(status)
}

#[test]
fn a_heap_larger_than_the_budget_keeps_its_content() {
    let Some((pager, heap, _dir)) = heap(6 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 24 * MIB);
    for version in 1..4 {
        fill(memory, version);
        assert_eq!(wrong(memory, version), 0);
    }
    assert!(pager.root().peak() <= 6 * MIB as u64, "{}", pager.root().peak());
    pager.check().unwrap();
    println!("{:?}", heap.stat());
}

#[test]
fn what_is_used_again_while_it_is_staged_is_rescued() {
    let options = PagerOptions::new().kept_bits(false);
    let Some((pager, heap, _dir)) = heap_with(options, 8 * MIB, ForkPolicy::Serve) else { return };
    let stat = use_few_of_many(&heap, 4096);
    assert!(stat.rescued > 0, "{stat:?}");
    // Hot pages are found again where they are, not in swap.
    assert!(stat.major < 64, "{stat:?}");
    pager.check().unwrap();
}

/// Stores to so many pages, one after the other, and reads 64 pages after each.
fn use_few_of_many(heap: &Heap, pages: usize) -> FaultStat {
    let memory = map(heap, pages * PAGE);
    for page in 0..pages {
        memory[page * PAGE] = page as u8;
        for hot in 0..64 {
            assert_eq!(memory[hot * PAGE], hot.min(page) as u8 * u8::from(hot <= page));
        }
    }
    heap.stat()
}

/// Linux 7.3 keeps them.
fn keeps_bits() -> bool {
    let lacking = probe().into_iter().find(|fact| fact.what == KEPT_BITS && !fact.ok);
    lacking.iter().for_each(|fact| println!("skipped: {} ({})", fact.detail, fact.fix));
    lacking.is_none()
}

#[test]
fn bits_on_both_sides_of_what_was_unmapped_are_cleared() {
    if !keeps_bits() {
        return;
    }
    let Some((pager, heap, _dir)) = heap(8 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 256 * PAGE);
    fill(memory, 1);
    let middle = memory.as_ptr() as usize + 128 * PAGE;
    // SAFETY: nobody uses the page any more.
    unsafe { heap.unmap(middle..middle + PAGE) }.unwrap();
    assert!(pager.root().age().unwrap());
    assert!(nr_young(&pager, ANON_COLUMN) >= 255, "all were used by the fill");
    assert!(pager.root().age().unwrap());
    assert_eq!(nr_young(&pager, ANON_COLUMN), 0, "{}", pager.root().lru_gen().unwrap());
}

#[test]
fn what_is_used_again_stays_where_the_kernel_keeps_accessed_bits() {
    if !keeps_bits() {
        return;
    }
    let Some((pager, heap, _dir)) = heap(8 * MIB, ForkPolicy::Serve) else { return };
    let stat = use_few_of_many(&heap, 16_384);
    // What is being written to the swap file can be used again.
    assert!(stat.rescued < 8 && stat.protect == 0, "{stat:?}");
    // Without the bits all 64 go eight times. With them a batch or two may: those that fault for
    // room use nothing meanwhile, and at first all are as old, whether used or not.
    assert!(stat.major < 256, "{stat:?}");
    pager.check().unwrap();
    println!("accessed bits were kept: {} majors", stat.major);
}

#[test]
fn a_child_sees_the_moment_of_its_fork() {
    for policy in [ForkPolicy::Serve, ForkPolicy::Copy] {
        let Some((pager, heap, _dir)) = heap(6 * MIB, policy) else { return };
        let memory = map(&heap, 20 * MIB);
        fill(memory, 1);
        let (read, grandchild) = (memory.as_ptr(), memory.len());
        // SAFETY: the parent writes meanwhile: to its own copy.
        let view = move || unsafe { std::slice::from_raw_parts(read, grandchild) };
        let child = fork(move || {
            let below = fork(move || i32::from(wrong(view(), 1) != 0));
            let wrong = wrong(view(), 1);
            i32::from(wrong != 0 || status(below) != 0)
        });
        fill(memory, 2);
        assert_eq!(wrong(memory, 2), 0, "the parent's own");
        assert_eq!(status(child), 0, "the child's, or its child's");
        assert_eq!(wrong(memory, 2), 0);
        fill(memory, 3);
        assert_eq!(wrong(memory, 3), 0, "evicted after the child is gone");
        pager.check().unwrap();
        assert!(pager.root().peak() <= 6 * MIB as u64, "{}", pager.root().peak());
    }
}

/// Pages that came from swap and were not stored to since are protected from stores.
#[test]
fn what_was_only_read_is_swapped_while_a_child_shares_it() {
    let Some((pager, heap, _dir)) = heap(6 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 16 * MIB);
    let tables = pager.root().current();
    fill(memory, 4);
    assert_eq!(wrong(memory, 4), 0);
    let mut gate = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(gate.as_mut_ptr()) }, 0);
    let [wait, go] = gate;
    let child = fork(move || {
        let mut byte = 0u8;
        // SAFETY: descriptors of this test; it waits until its parent has closed the other end.
        unsafe {
            libc::close(go);
            libc::read(wait, (&raw mut byte).cast(), 1) as i32
        }
    });
    let taken = || pager.root().current() - tables;
    let before = taken();
    for _ in 0..100 {
        // What is shared goes once it is the parent's alone: not at the first try.
        let _ = pager.root().reclaim(6 * MIB as u64);
    }
    assert!(taken() < before / 2, "{} of {before}", taken());
    assert_eq!(wrong(memory, 4), 0);
    // SAFETY: as above.
    unsafe { libc::close(go) };
    assert_eq!(status(child), 0);
    pager.check().unwrap();
}

#[test]
fn a_heap_may_go_while_a_child_lives() {
    let Some((pager, heap, _dir)) = heap(6 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 16 * MIB);
    fill(memory, 9);
    let mut gate = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(gate.as_mut_ptr()) }, 0);
    let [wait, go] = gate;
    let (start, len) = (memory.as_ptr(), memory.len());
    let child = fork(move || {
        let mut byte = 0u8;
        // SAFETY: descriptors of this test; the child's copy of the mapping.
        let memory = unsafe {
            libc::close(go);
            libc::read(wait, (&raw mut byte).cast(), 1);
            std::slice::from_raw_parts(start, len)
        };
        i32::from(wrong(memory, 9) > 0)
    });
    drop(heap);
    drop(pager);
    // SAFETY: as above.
    unsafe { libc::close(go) };
    assert_eq!(status(child), 0);
}

#[test]
fn a_child_may_store_drop_and_outlive_its_parents_pages() {
    let Some((_pager, heap, _dir)) = heap(6 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 16 * MIB);
    fill(memory, 7);
    let (start, len) = (memory.as_mut_ptr(), memory.len());
    let child = fork(move || {
        // SAFETY: the child's copy of the mapping.
        let memory = unsafe { std::slice::from_raw_parts_mut(start, len) };
        let half = len / 2;
        // SAFETY: drops content of the child's copy.
        unsafe { libc::madvise(start.cast(), half, libc::MADV_DONTNEED) };
        let zeros = memory[..half].chunks(PAGE).all(|page| page.iter().all(|&b| b == 0));
        let kept = wrong(memory, 7) == half / PAGE;
        memory[half..].chunks_mut(PAGE).for_each(|page| page[1] = 1);
        let stored = memory[half..].chunks(PAGE).all(|page| page[1] == 1);
        i32::from(!zeros) | i32::from(!kept) << 1 | i32::from(!stored) << 2
    });
    // SAFETY: the test is done with the first half.
    unsafe { heap.unmap(addresses(&memory[..len / 2])) }.unwrap();
    assert_eq!(status(child), 0);
    let second = &memory[len / 2..];
    let expected = (0..second.len() / PAGE).map(|nth| pattern(nth + len / 2 / PAGE, 7));
    assert!(second.chunks(PAGE).zip(expected).all(|(page, wanted)| page == wanted));
}

#[test]
fn dropped_and_unmapped_memory_comes_back_as_zeros() {
    let Some((pager, heap, _dir)) = heap(6 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 16 * MIB);
    for _ in 0..3 {
        fill(memory, 5);
        // SAFETY: drops content that nobody borrows.
        unsafe { libc::madvise(memory.as_mut_ptr().cast(), 8 * MIB, libc::MADV_DONTNEED) };
        assert!(memory[..8 * MIB].iter().all(|&b| b == 0));
        let tail = (8 * MIB / PAGE..).zip(memory[8 * MIB..].chunks(PAGE));
        assert!(tail.into_iter().all(|(nth, page)| page == pattern(nth, 5)));
    }
    let before = addresses(memory);
    // SAFETY: the test is done with it.
    unsafe { heap.unmap(before.clone()) }.unwrap();
    // Another thread's answer may be older than the event: what is left is read when it is.
    let again = map(&heap, 16 * MIB);
    assert_eq!(addresses(again), before, "first fit");
    assert!(again.iter().all(|&b| b == 0));
    fill(again, 6);
    assert_eq!(wrong(again, 6), 0);
    pager.check().unwrap();
}

#[test]
fn locked_and_read_only_pages_stay() {
    let Some((pager, heap, _dir)) = heap(8 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 24 * MIB);
    let (locked, rest) = memory.split_at_mut(MIB);
    fill(locked, 1);
    // SAFETY: locks memory of this test.
    assert_eq!(unsafe { libc::mlock(locked.as_ptr().cast(), locked.len()) }, 0);
    let (fixed, rest) = rest.split_at_mut(MIB);
    fill(fixed, 2);
    // SAFETY: nobody stores to it until it is writable again.
    unsafe { libc::mprotect(fixed.as_mut_ptr().cast(), fixed.len(), libc::PROT_READ) };
    for version in 3..6 {
        fill(rest, version);
        assert_eq!(wrong(rest, version), 0);
        assert_eq!((wrong(locked, 1), wrong(fixed, 2)), (0, 0));
    }
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: as above.
    unsafe { libc::mprotect(fixed.as_mut_ptr().cast(), fixed.len(), writable) };
    fill(fixed, 9);
    fill(rest, 6);
    assert_eq!(wrong(fixed, 9), 0);
    let mut resident = vec![0u8; locked.len() / PAGE];
    // SAFETY: the vector has a byte for each page.
    unsafe { libc::mincore(locked.as_mut_ptr().cast(), locked.len(), resident.as_mut_ptr()) };
    assert!(resident.iter().all(|&r| r & 1 == 1), "locked pages never left");
    pager.check().unwrap();
}

#[test]
fn system_calls_reach_evicted_pages() {
    let Some((_pager, heap, dir)) = heap(6 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 16 * MIB);
    fill(memory, 1);
    let path = dir.path().join("copy");
    std::fs::write(&path, &*memory).unwrap();
    fill(memory, 2);
    use std::io::Read;
    std::fs::File::open(&path).unwrap().read_exact(memory).unwrap();
    assert_eq!(wrong(memory, 1), 0);
}
