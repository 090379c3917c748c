//! Faults served by the thread that has them.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::stress::{race, verify};
use crate::{MIB, PAGE, content, file_of, open, page_out, pattern, until};
use mglru_pager::{Advice, Codec, FaultEngine, ForkPolicy, Map, Pager, PagerOptions, SwapOptions};

fn pager_with(max: usize, swap: SwapOptions) -> Option<Pager> {
    let options = PagerOptions::new().memory_max(max as u64).swap(swap);
    open(options.fault_engine(FaultEngine::Sigbus))
}

fn pager(max: usize) -> Option<Pager> {
    pager_with(max, SwapOptions::in_memory(max as u64))
}

#[test]
fn stores_survive_eviction() {
    let dir = tempfile::tempdir_in(".").unwrap();
    for codec in [Codec::Lz4, Codec::Zstd] {
        let swap = SwapOptions { codec, ..SwapOptions::in_memory(MIB as u64) };
        let swap = swap.with_file_in(dir.path(), 64 << 20);
        let Some(pager) = pager_with(6 * MIB, swap) else { return };
        let mut map = pager.root().map_anon(16 * MIB).unwrap();
        let root = pager.root();
        let expected = race(&pager, &mut map, 4, || assert!(root.reclaim(256 << 10).is_ok()));
        verify(&map, &expected);
        assert!(root.stat().unwrap().get("pgsteal_anon").unwrap() > 1000);
        println!("{codec:?}: {} stores, {:?}", expected.iter().sum::<u64>(), map.stat());
    }
}

#[test]
fn stores_to_files_survive_eviction_and_reach_them() {
    for advice in [Advice::Normal, Advice::Random] {
        let Some(pager) = pager(6 * MIB) else { return };
        let file = file_of(16 * MIB, |_| 0);
        // SAFETY: nobody else has the file.
        let mut map = unsafe { pager.root().map(Map::file_mut(&file).unwrap()) }.unwrap();
        map.advise(advice).unwrap();
        let root = pager.root();
        let expected = race(&pager, &mut map, 4, || assert!(root.reclaim(256 << 10).is_ok()));
        verify(&map, &expected);
        println!("{advice:?}: {:?}", map.stat());
        map.flush().unwrap();
        drop(map);
        verify(&content(&file), &expected);
    }
}

/// Threads that fault faster than the policy learns of it leave what has happened to the handler,
/// which nothing else wakes.
#[test]
fn a_flush_ends_after_more_faults_than_the_policy_has_learnt_of() {
    let Some(pager) = pager(64 * MIB) else { return };
    let file = tempfile::tempfile_in(".").unwrap();
    file.set_len(48 << 20).unwrap();
    // SAFETY: nobody else has the file.
    let mut map = unsafe { pager.root().map(Map::file_mut(&file).unwrap()) }.unwrap();
    map.advise(Advice::Random).unwrap();
    std::thread::scope(|scope| {
        for part in map.chunks_mut(12 * MIB) {
            scope.spawn(|| part.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1));
        }
    });
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(map.flush().is_ok()));
        let done = receiver.recv_timeout(std::time::Duration::from_secs(300));
        // The other thread would be waited for.
        done.map_or_else(|_| std::process::abort(), |done| assert!(done));
    });
    assert!(content(&file).iter().step_by(PAGE).all(|&byte| byte == 1));
}

#[test]
fn a_heap_beside_is_served_by_threads() {
    let Some(pager) = pager(8 * MIB) else { return };
    let heap = match pager.root().heap(1 << 30, ForkPolicy::Serve) {
        Ok(heap) => heap,
        Err(error) => return println!("skipped: {error}"),
    };
    let start = heap.map(16 * MIB, None).unwrap();
    // SAFETY: the range was just mapped, and is nobody else's.
    let bytes = unsafe { std::slice::from_raw_parts_mut(start, 16 * MIB) };
    bytes.iter_mut().step_by(PAGE).for_each(|byte| *byte = 7);
    assert!(bytes.iter().step_by(PAGE).all(|&byte| byte == 7));
    let mut zeros = std::fs::File::open("/dev/zero").unwrap();
    assert_eq!(zeros.read(bytes).unwrap(), 16 * MIB, "a system call is served too");
    assert!(bytes.iter().all(|&byte| byte == 0));
}

#[test]
fn memory_larger_than_the_budget_keeps_every_byte() {
    let Some(pager) = pager(8 * MIB) else { return };
    let pages = 20 * MIB / PAGE;
    let mut map = pager.root().map_anon(pages * PAGE).unwrap();
    for page in 0..pages {
        map[page * PAGE..][..PAGE].copy_from_slice(&pattern(page, 1));
    }
    for page in (0..pages).rev() {
        assert!(map[page * PAGE..][..PAGE] == pattern(page, 1), "page {page}");
    }
    assert!(pager.root().peak() <= 8 * MIB as u64);
    let pin = map.pin(0..MIB).unwrap();
    page_out(&map, MIB);
    let missing = map.stat().missing;
    let populate = || map.advise_range(Advice::PopulateRead, 4 * MIB..5 * MIB).unwrap();
    populate();
    assert!(map.stat().missing - missing >= (MIB / PAGE) as u64);
    until(populate, || map.resident().unwrap() >= 2 * MIB as u64);
    assert!(map.resident().unwrap() >= 2 * MIB as u64);
    drop(pin);
    pager.check().unwrap();
}

static TOUCHED: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static TIMES: AtomicUsize = AtomicUsize::new(0);

extern "C" fn touch_all(_: libc::c_int) {
    let start = TOUCHED.load(Ordering::Relaxed);
    for page in 0..MIB / PAGE {
        // SAFETY: the mapping lasts until no more signals come.
        unsafe { start.add(page * PAGE).read_volatile() };
    }
    TIMES.fetch_add(1, Ordering::Relaxed);
}

/// A handler that waited for the thread it came upon would wait for ever.
#[test]
fn handlers_of_signals_may_touch_what_is_being_populated() {
    const CHILD: &str = "MGLRU_PAGER_SIGNAL_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let test = "sigbus::handlers_of_signals_may_touch_what_is_being_populated";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", test]).env(CHILD, "1").output().unwrap();
        return assert!(output.status.success(), "{:?}", output.status);
    }
    let Some(pager) = pager(8 * MIB) else { return };
    let file = file_of(MIB, |at| at as u8);
    // SAFETY: nobody else has the file; ends what hangs; the handler loads from the mapping.
    let map = unsafe {
        let map = pager.root().map_read(Map::file(&file).unwrap()).unwrap();
        TOUCHED.store(map.as_ptr().cast_mut(), Ordering::Relaxed);
        libc::alarm(60);
        libc::signal(libc::SIGUSR1, touch_all as *const () as libc::sighandler_t);
        map
    };
    map.advise(Advice::Random).unwrap();
    let done = AtomicBool::new(false);
    // SAFETY: takes nothing, gives a number.
    let populater = unsafe { libc::pthread_self() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: the thread lives until this one ends.
                unsafe { libc::pthread_kill(populater, libc::SIGUSR1) };
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        for _ in 0..60 {
            map.advise_range(Advice::PageOut, 0..MIB).unwrap();
            map.advise_range(Advice::PopulateRead, 0..MIB).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(TIMES.load(Ordering::Relaxed) > 60);
}

#[test]
fn what_it_cannot_serve_is_refused() {
    let Some(pager) = pager(8 * MIB) else { return };
    let mut map = pager.root().map_anon(MIB).unwrap();
    let mut zeros = std::fs::File::open("/dev/zero").unwrap();
    let error = zeros.read(&mut map[..PAGE]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EFAULT), "a page that is not there");
    map[0] = 1;
    assert_eq!(zeros.read(&mut map[..PAGE]).unwrap(), PAGE);
    assert_eq!(map[0], 0);
}

#[test]
fn a_page_without_room_ends_the_program_by_sigbus() {
    const CHILD: &str = "MGLRU_PAGER_SIGBUS_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let swap = SwapOptions::default();
        let Some(pager) = pager_with(6 * MIB, swap) else { std::process::exit(7) };
        let mut map = pager.root().map_anon(16 * MIB).unwrap();
        map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        return;
    }
    let test = "sigbus::a_page_without_room_ends_the_program_by_sigbus";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", test]).env(CHILD, "1").output().unwrap();
    assert!(output.status.signal() == Some(libc::SIGBUS) || output.status.code() == Some(7));
}
