//! The budget holds, however memory is written; what cannot be served is an error, not a wrong
//! byte.

use std::io::{BufRead, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{MIB, PAGE, open, pager, pattern};
use mglru_pager::{ForkPolicy, Limit, PagerError, PagerOptions, SwapOptions};

/// What a process that stands still holds, as the kernel counts it, bytes: private memory, and the
/// pages of its arenas whether mapped right now or not.
fn resident(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    let private = line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024;
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let arenas = fds.map(|fd| fd.path()).filter(|path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("memfd:mglru"))
    });
    private + arenas.filter_map(|path| path.metadata().ok()).map(|m| m.blocks() * 512).sum::<u64>()
}

#[test]
fn without_swap_a_full_group_refuses_the_page_and_nothing_else() {
    let Some(pager) = open(PagerOptions::new().memory_max(8 << 20)) else { return };
    let mut map = pager.root().map_anon(16 * MIB).unwrap();
    // Through system calls a refused page is EFAULT rather than SIGBUS.
    let mut ones = std::fs::File::open("/dev/zero").unwrap();
    let mut served = 0;
    for page in 0..16 * MIB / PAGE {
        match ones.read(&mut map[page * PAGE..][..PAGE]) {
            Ok(n) => served += usize::from(n == PAGE),
            Err(error) => assert_eq!(error.raw_os_error(), Some(14), "EFAULT"),
        }
    }
    assert!((1000..2048).contains(&served), "{served} pages fit into 8 MiB");
    assert!(pager.root().stat().unwrap().get("oom").unwrap() > 0);
    assert!(pager.root().peak() <= 8 << 20);
    map.discard_range(0..16 * MIB).unwrap();
    map[15 * MIB] = 1;
    assert_eq!(map[15 * MIB], 1, "a refused page is usable again once it was discarded");
}

#[test]
fn memory_that_the_program_locks_is_reclaimed_all_the_same() {
    let Some(pager) = pager(8 * MIB) else { return };
    let mut map = pager.root().map_anon(16 * MIB).unwrap();
    let (start, len) = (map.as_ptr().cast(), map.len());
    // SAFETY: locking changes nothing of what the memory holds.
    assert_eq!(unsafe { libc::mlock2(start, len, 1) }, 0, "MLOCK_ONFAULT");
    for (page, content) in map.chunks_mut(PAGE).enumerate() {
        content.fill(page as u8);
    }
    assert!(pager.root().peak() <= 8 * MIB as u64);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::mlock(start, len) }, 0, "each page once, not all at once");
    assert!(map.chunks(PAGE).enumerate().all(|(page, c)| c.iter().all(|&b| b == page as u8)));
}

#[test]
fn a_lower_limit_is_reached_while_nobody_faults() {
    let Some(pager) = pager(32 * MIB) else { return };
    let root = pager.root();
    let mut map = root.map_anon(20 * MIB).unwrap();
    map.fill(1);
    assert!(root.current() > 20 * MIB as u64);
    root.set_limit(Limit::High, Some(10 << 20));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while root.current() > 10 << 20 && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(root.current() <= 10 << 20, "{}", root.current());
    assert!(map.iter().step_by(PAGE).all(|&b| b == 1));
}

/// As a write to the kernel's file does. Nothing of this packs, and writing it takes buffers, which
/// the lower limit has no room for.
#[test]
fn a_lower_memory_max_is_reached_before_the_write_returns_while_others_compute() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let swap = SwapOptions::in_memory(16 * MIB as u64).with_file_in(folder.path(), 256 << 20);
    let Some(pager) = open(PagerOptions::new().memory_max(96 << 20).swap(swap)) else { return };
    let root = pager.root();
    let mut map = root.map_anon(48 * MIB).unwrap();
    (0..map.len() / PAGE).for_each(|n| map[n * PAGE..][..PAGE].copy_from_slice(&pattern(n, 5)));
    let processors = std::thread::available_parallelism().unwrap().get();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 * processors {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let done = root.write("memory.max", "16M");
        let current = root.current();
        over.store(true, Ordering::Relaxed);
        done.unwrap();
        assert!(current <= 16 << 20, "{current}");
    });
    assert!((0..map.len() / PAGE).all(|n| map[n * PAGE..][..PAGE] == pattern(n, 5)));
    pager.check().unwrap();
}

/// The pool of the larger limit would fill the lower one.
#[test]
fn what_packs_fits_a_lower_memory_max_too() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let swap = SwapOptions::in_memory(16 * MIB as u64).with_file_in(folder.path(), 256 << 20);
    let Some(pager) = open(PagerOptions::new().memory_max(64 << 20).swap(swap)) else { return };
    let root = pager.root();
    let mut map = root.map_anon(80 * MIB).unwrap();
    // Half of each page packs.
    let content = |n| [&pattern(n, 5)[..PAGE / 2], &[n as u8; PAGE / 2]].concat();
    (0..map.len() / PAGE).for_each(|n| map[n * PAGE..][..PAGE].copy_from_slice(&content(n)));
    assert!(root.current() > 56 << 20);
    root.write("memory.max", "8M").unwrap();
    let anon = root.stat().unwrap().get("anon").unwrap();
    // A pool that kept its old size would leave next to nothing.
    assert!(root.current() <= 8 << 20 && anon > 3 << 20, "{} {anon}", root.current());
    assert!((0..map.len() / PAGE).all(|n| map[n * PAGE..][..PAGE] == content(n)));
    pager.check().unwrap();
}

#[test]
fn a_lower_memory_max_that_cannot_be_reached_is_set_and_counted() {
    let Some(pager) = open(PagerOptions::new().memory_max(32 << 20)) else { return };
    let root = pager.root();
    let mut map = root.map_anon(16 * MIB).unwrap();
    map.fill(1);
    root.write("memory.max", "8M").unwrap();
    assert_eq!(root.limit(Limit::Max), Some(8 << 20));
    assert!(root.current() > 16 << 20 && root.stat().unwrap().get("oom").unwrap() > 0);
}

#[test]
fn memory_reclaim_takes_what_it_is_asked_for() {
    let Some(pager) = pager(32 * MIB) else { return };
    let root = pager.root();
    let mut map = root.map_anon(16 * MIB).unwrap();
    map.fill(3);
    let before = map.resident().unwrap();
    let reclaimed = root.reclaim(4 << 20).unwrap();
    assert!(reclaimed >= 4 << 20, "{reclaimed}");
    assert_eq!(before - map.resident().unwrap(), reclaimed);
    pager.check().unwrap();
}

#[test]
fn bad_values_are_refused_by_name() {
    let refused = PagerOptions::new().memory_max(1 << 20).open().err().unwrap();
    assert_eq!(refused.to_string(), "memory.max: 1048576 is not within 4194304 bytes and more");
    let Some(pager) = pager(8 * MIB) else { return };
    assert!(matches!(pager.root().map_anon(0), Err(PagerError::OutOfRange { .. })));
    assert!(matches!(pager.root().map_anon(1 << 40), Err(PagerError::NoRoom(path)) if path == "/"));
    assert!(pager.root().set_swappiness(201).is_err());
    let map = pager.root().map_anon(PAGE).unwrap();
    let refused = map.flush_range(0..2 * PAGE).unwrap_err().to_string();
    assert_eq!(refused, "range: 8192 is not within the 4096 bytes of the mapping");
}

/// The error that the program gets when a page finds no room, for an arena and for a heap.
#[test]
fn a_page_without_room_is_sigbus_and_says_why() {
    const CHILD: &str = "MGLRU_PAGER_FULL";
    if let Ok(what) = std::env::var(CHILD) {
        let swap = SwapOptions::in_memory(1 << 20);
        let Some(pager) = open(PagerOptions::new().memory_max(8 << 20).swap(swap)) else { return };
        if what == "arena" {
            return write_noise(&mut pager.root().map_anon(16 * MIB).unwrap(), 1);
        }
        let Ok(heap) = pager.root().heap(1 << 30, ForkPolicy::Serve) else { return };
        assert!(heap.map(2 << 30, None).is_none(), "more than the reserve is refused at once");
        let start = heap.map(16 * MIB, None).unwrap();
        // SAFETY: the range was just mapped.
        return write_noise(unsafe { std::slice::from_raw_parts_mut(start, 16 * MIB) }, 1);
    }
    if pager(8 * MIB).is_none() {
        return;
    }
    for what in ["arena", "heap"] {
        let test = "limits::a_page_without_room_is_sigbus_and_says_why";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", test]).env(CHILD, what).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if what == "heap" && output.status.success() {
            println!("skipped: no heaps here");
            continue;
        }
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{what}: {said}");
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("out of memory")).collect();
        assert_eq!(lines.len(), 1, "{what}: {said}");
        let line = lines[0];
        assert!(line.starts_with("mglru-pager: /: out of memory: ") && line.contains("8388608"));
    }
}

/// The process obeys the budget, not only the pager's books: alone in a child process, so that
/// other tests do not count.
#[test]
fn resident_memory_obeys_the_budget_under_adversarial_writers() {
    const THREADS: &str = "MGLRU_PAGER_WRITERS";
    let max = 32 * MIB;
    if let Ok(threads) = std::env::var(THREADS) {
        return write_adversarially(threads.parse().unwrap(), max);
    }
    if pager(max).is_none() {
        return;
    }
    for threads in [1, 4, 16] {
        let test = "limits::resident_memory_obeys_the_budget_under_adversarial_writers";
        let me = std::env::current_exe().unwrap();
        let mut child = std::process::Command::new(me);
        child.args(["--exact", test, "--nocapture"]).env(THREADS, threads.to_string());
        let mut child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let used = most_resident(&mut child);
        println!("{threads} writers: {used} bytes resident of {max}");
        assert!(used <= max as u64 + max as u64 / 100, "{used} bytes of {max}");
    }
}

/// The most that a child had resident beyond what it had before it opened its pager.
fn most_resident(child: &mut std::process::Child) -> u64 {
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let before = lines.find_map(|line| line.unwrap().split_once("before ")?.1.parse::<u64>().ok());
    let (pid, mut status, mut most) = (child.id() as i32, 0, 0);
    loop {
        // SAFETY: both take plain values and a place for one.
        let waited = unsafe {
            libc::kill(pid, libc::SIGSTOP);
            libc::waitpid(pid, &mut status, libc::WUNTRACED)
        };
        assert_eq!(waited, pid);
        if !libc::WIFSTOPPED(status) {
            break;
        }
        most = most.max(resident(pid));
        // SAFETY: as above.
        unsafe { libc::kill(pid, libc::SIGCONT) };
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(status, 0, "the child failed: it said why");
    most - before.expect("it says what it had before")
}

fn write_adversarially(threads: usize, max: usize) {
    println!("before {}", resident(std::process::id() as i32));
    let pager = pager(max).unwrap();
    let mut maps: Vec<_> =
        (0..threads).map(|_| pager.root().map_anon(64 * MIB / threads).unwrap()).collect();
    std::thread::scope(|scope| {
        for (n, map) in maps.iter_mut().enumerate() {
            scope.spawn(move || write_noise(map, n as u64));
        }
    });
    // Packing pages may open chunks of the pool before it frees the pages: within the tolerance.
    let charged = pager.root().peak();
    assert!(charged <= max as u64 + max as u64 / 100, "{charged} bytes charged of {max}");
}

/// Pages half of which compress, in an order that no policy likes.
fn write_noise(map: &mut [u8], seed: u64) {
    let mut x = seed * 2 + 1;
    let pages = map.len() / PAGE;
    for _ in 0..2 * pages {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let page = (x >> 33) as usize % pages;
        let half = if x & 1 << 40 == 0 { PAGE / 8 } else { PAGE / 2 };
        let mut y = x | 1;
        for word in map[page * PAGE..][..half].chunks_exact_mut(8) {
            y ^= y << 13;
            y ^= y >> 7;
            y ^= y << 17;
            word.copy_from_slice(&y.to_le_bytes());
        }
    }
}
