//! What programs do with files that they also map.

use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

/// A second file of the test's, beside the managed one; no program maps it.
pub fn other() -> File {
    let file = tempfile::tempfile_in(".").unwrap();
    file.set_len(ALL as u64).unwrap();
    file
}

fn content(file: &File) -> Vec<u8> {
    let mut content = vec![0; ALL];
    file.read_exact_at(&mut content, 0).unwrap();
    content
}

fn offset_of(at: &mut i64) -> *mut i64 {
    std::ptr::from_mut(at)
}

#[test]
fn transfers_within_the_kernel_see_stores_and_are_seen() {
    if let Some((file, _)) = parent("files::transfers_within_the_kernel_see_stores_and_are_seen") {
        return assert!(is_stamped(&std::fs::read(file.path()).unwrap(), 0x66));
    }
    let Some(file) = open() else { return };
    let (memory, copy) = (map(&file), other());
    assert!(is_managed());
    let (from, to) = (file.as_raw_fd(), copy.as_raw_fd());
    stamp(memory, 0x61);
    // SAFETY: descriptors and offsets of this test's.
    unsafe {
        let (mut at, mut there) = (0, 0);
        while at < ALL as i64 {
            let (at, there) = (offset_of(&mut at), offset_of(&mut there));
            assert!(libc::copy_file_range(from, at, to, there, ALL, 0) > 0);
        }
        assert!(is_stamped(&content(&copy), 0x61), "copy_file_range reads stores");
        stamp(memory, 0x62);
        let mut at = 0;
        while at < ALL as i64 {
            assert!(libc::sendfile(to, from, offset_of(&mut at), ALL) > 0);
        }
        assert!(is_stamped(&content(&copy), 0x62), "sendfile reads stores");
        stamp(memory, 0x63);
        let mut pipe = [0; 2];
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let (mut at, mut there) = (0, 0);
        while at < ALL as i64 {
            let none = std::ptr::null_mut();
            let n = libc::splice(from, offset_of(&mut at), pipe[1], none, 1 << 16, 0);
            assert!(n > 0);
            assert_eq!(libc::splice(pipe[0], none, to, offset_of(&mut there), n as usize, 0), n);
        }
        assert!(is_stamped(&content(&copy), 0x63), "splice reads stores");
        let mut wanted = content(&copy);
        stamp(&mut wanted, 0x66);
        copy.write_all_at(&wanted, 0).unwrap();
        let (mut at, mut there) = (0, 0);
        while at < ALL as i64 {
            let (at, there) = (offset_of(&mut at), offset_of(&mut there));
            assert!(libc::copy_file_range(to, at, from, there, ALL, 0) > 0);
        }
    }
    assert!(is_stamped(memory, 0x66), "loads see copy_file_range");
}

/// Reads a byte of memory by a system call: `None` where a load would be SIGBUS.
fn load(memory: &[u8], at: usize) -> Option<u8> {
    let (file, byte) = (other(), memory[at..].as_ptr());
    // SAFETY: one byte of this test's mapping.
    match unsafe { libc::pwrite(file.as_raw_fd(), byte.cast(), 1, 0) } {
        1 => Some(content(&file)[0]),
        _ => None,
    }
}

#[test]
fn a_file_that_shrinks_and_grows_is_mapped_as_it_is() {
    let name = "files::a_file_that_shrinks_and_grows_is_mapped_as_it_is";
    if let Some((file, _)) = parent(name) {
        assert_eq!(file.path().metadata().unwrap().len(), ALL as u64);
        let content = std::fs::read(file.path()).unwrap();
        assert!(content[..ALL / 2].iter().step_by(PAGE).all(|&b| b == 1));
        return assert!(content[ALL / 2..ALL - PAGE].iter().all(|&b| b == 0));
    }
    let Some(file) = open() else { return };
    let memory = map(&file);
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    let path = std::env::var_os(CHILD).unwrap().into_string().unwrap();
    let path = CString::new(path).unwrap();
    // SAFETY: a path of this test's.
    assert_eq!(unsafe { libc::truncate(path.as_ptr(), (ALL / 2) as i64) }, 0);
    assert_eq!(load(memory, ALL / 2 - PAGE), Some(1));
    assert_eq!(load(memory, ALL / 2), None, "beyond the end");
    // SAFETY: a descriptor of this test's.
    assert_eq!(unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, ALL as i64) }, 0);
    assert_eq!(load(memory, ALL / 2), Some(0), "it is there again, and zeros");
    memory[ALL - 1] = 5;
    let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (start, len) = ((ALL - PAGE) as i64, PAGE as i64);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), hole, start, len) }, 0);
    assert_eq!(memory[ALL - 1], 0, "loads see the hole");
    assert_eq!(memory[0], 1);
    memory[ALL - 1] = 7;
    file.set_len(ALL as u64 - 1).unwrap();
    file.set_len(ALL as u64).unwrap();
    assert_eq!(memory[ALL - 1], 0, "what was cut off is gone");
}

#[test]
fn parts_of_a_mapping_are_unmapped_and_mapped_over() {
    if let Some((file, _)) = parent("files::parts_of_a_mapping_are_unmapped_and_mapped_over") {
        return assert!(is_stamped(&std::fs::read(file.path()).unwrap(), 0x13));
    }
    let Some(file) = open() else { return };
    let memory = map(&file);
    stamp(memory, 0x13);
    let (part, len) = (memory[ALL / 4..].as_mut_ptr(), ALL / 4);
    let (prot, fixed) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_FIXED | libc::MAP_PRIVATE);
    // SAFETY: a quarter of this test's mapping becomes something else.
    let other = unsafe {
        let flags = fixed | libc::MAP_ANONYMOUS;
        assert_eq!(libc::mmap(part.cast(), len, prot, flags, -1, 0), part.cast());
        std::slice::from_raw_parts_mut(part, len)
    };
    other.fill(0x99);
    // SAFETY: the last quarter goes.
    assert_eq!(unsafe { libc::munmap(memory[3 * ALL / 4..].as_mut_ptr().cast(), len) }, 0);
    for _ in 0..3 {
        let rest = |at: usize| (at..at + ALL / 4).step_by(PAGE);
        for at in rest(0).chain(rest(ALL / 2)) {
            let page = at / PAGE;
            assert_eq!(memory[at + page % PAGE], (page as u8) ^ 0x13);
        }
        assert!(other.iter().all(|&b| b == 0x99), "what is there now is left alone");
    }
    // SAFETY: what is left of the mapping goes; what was mapped over it stays.
    unsafe {
        assert_eq!(libc::munmap(memory.as_mut_ptr().cast(), ALL / 4), 0);
        assert_eq!(libc::munmap(memory[ALL / 2..].as_mut_ptr().cast(), ALL / 4), 0);
    }
    assert!(!is_managed(), "the last part unmapped ends it");
    assert!(other.iter().all(|&b| b == 0x99));
}

#[test]
fn a_file_grows_into_a_mapping_that_is_longer() {
    let name = "files::a_file_grows_into_a_mapping_that_is_longer";
    for faults in ["thread", "sigbus"] {
        let Some((file, said)) = parent_with(name, faults) else { continue };
        assert_eq!(said, "");
        let content = std::fs::read(file.path()).unwrap();
        assert_eq!(content.len(), 3 * ALL);
        assert!(content[ALL..].chunks(PAGE).all(|page| page[7] == 5), "what was stored is there");
    }
    let Some(file) = open() else { return };
    // As LMDB does: a mapping of what the file may ever be.
    let memory = try_map(&file, 0..64 * ALL, BOTH, libc::MAP_SHARED).expect("longer than the file");
    assert!(is_managed());
    let sum = |memory: &[u8]| memory.iter().step_by(PAGE).map(|&b| u64::from(b)).sum::<u64>();
    assert_eq!(sum(&memory[..ALL]), 0);
    if std::env::var(launch::ENV_FAULTS).is_ok_and(|faults| faults == "thread") {
        assert_eq!(load(memory, 2 * ALL), None, "beyond the end");
    }
    let page = [3; PAGE];
    (ALL / PAGE..2 * ALL / PAGE).for_each(|n| file.write_all_at(&page, (n * PAGE) as u64).unwrap());
    assert_eq!(sum(&memory[ALL..2 * ALL]), 3 * PAGES as u64, "loads see what was written");
    file.set_len(3 * ALL as u64).unwrap();
    assert_eq!(memory[2 * ALL], 0);
    memory[ALL..3 * ALL].chunks_mut(PAGE).for_each(|page| page[7] = 5);
    let mut read = [0; 8];
    file.read_exact_at(&mut read, 2 * ALL as u64).unwrap();
    assert_eq!(read, [0, 0, 0, 0, 0, 0, 0, 5], "reads see what was stored");
    unmap(memory);
    assert!(!is_managed());
}

#[test]
fn a_file_is_mapped_again_longer_for_writing_and_where_it_was_unmapped() {
    let name = "files::a_file_is_mapped_again_longer_for_writing_and_where_it_was_unmapped";
    if let Some((file, said)) = parent(name) {
        assert_eq!(said, "");
        let content = std::fs::read(file.path()).unwrap();
        return assert_eq!((content[1], content[ALL + 1]), (4, 5));
    }
    let Some(path) = std::env::var_os(CHILD) else { return };
    let reader = File::open(path).unwrap();
    let first = try_map(&reader, 0..ALL / 2, READ, libc::MAP_SHARED).unwrap();
    let file = open().unwrap();
    file.set_len(2 * ALL as u64).unwrap();
    let all = try_map(&file, 0..2 * ALL, BOTH, libc::MAP_SHARED).expect("longer, and for writing");
    assert_eq!(all.as_ptr(), first.as_ptr(), "there is one");
    all[1] = 4;
    all[ALL + 1] = 5;
    let (start, no) = (all.as_mut_ptr().cast::<libc::c_void>(), libc::MAP_FAILED);
    // SAFETY: parts of this test's mapping, which is not used as a slice again.
    unsafe {
        assert_eq!(libc::munmap(start.byte_add(ALL / 2), ALL / 2), 0);
        let again = try_map(&file, ALL / 2..ALL, BOTH, libc::MAP_SHARED).expect("it was unmapped");
        again[0] = 6;
        unmap(again);
        assert_eq!(libc::munmap(start.byte_add(ALL), ALL), 0);
        // Of two mappings of what is left one goes.
        assert_eq!(libc::munmap(start, ALL / 2), 0);
        assert_eq!(libc::mremap(start, ALL / 2, ALL, 0), start);
        assert_eq!(libc::mremap(start, ALL, ALL / 4, 0), start);
        assert_eq!(libc::mremap(start, ALL / 4, 1 << 40, libc::MREMAP_MAYMOVE), no);
        assert_eq!(libc::munmap(start, ALL / 4), 0);
    }
    assert!(!is_managed());
}

#[test]
fn threads_that_map_a_file_and_unmap_it_do_not_meet() {
    let name = "files::threads_that_map_a_file_and_unmap_it_do_not_meet";
    if let Some((file, said)) = parent(name) {
        assert_eq!(said, "");
        let content = std::fs::read(file.path()).unwrap();
        return assert!((0..4).all(|n| content[n * PAGE] == 25), "every store is there");
    }
    let Some(file) = open() else { return };
    let rounds = |nth: usize| {
        for round in 1..=25 {
            let memory =
                try_map(&file, 0..ALL, BOTH, libc::MAP_SHARED).expect("its end is waited for");
            assert_eq!(memory[nth * PAGE], round - 1);
            memory[nth * PAGE] = round;
            unmap(memory);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|nth| _ = scope.spawn(move || rounds(nth))));
}

#[test]
fn processes_that_only_read_share_a_file() {
    let name = "files::processes_that_only_read_share_a_file";
    if let Some((_, said)) = parent(name) {
        return assert!(
            said.contains("again, for writing: Address already in use"),
            "the writer gets an error: {said}"
        );
    }
    let Some(path) = std::env::var_os(CHILD) else { return };
    let reader = File::open(&path).unwrap();
    let memory = try_map(&reader, 0..ALL, READ, libc::MAP_SHARED).unwrap();
    if std::env::var_os("MGLRU_PRELOAD_TEST_SECOND").is_some() {
        assert!(is_managed());
        assert!(try_map(&open().unwrap(), 0..ALL, BOTH, libc::MAP_SHARED).is_none(), "others read");
        return unmap(memory);
    }
    let mut second = child(name, Path::new(&path));
    let second = second.env("MGLRU_PRELOAD_TEST_SECOND", "1").output().unwrap();
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    eprint!("{}", String::from_utf8_lossy(&second.stderr));
    let memory_again =
        try_map(&open().unwrap(), 0..ALL, BOTH, libc::MAP_SHARED).expect("the other is gone");
    memory_again[0] = 1;
    unmap(memory_again);
    unmap(memory);
}

#[test]
fn a_mapping_for_reading_takes_no_stores_until_one_for_writing_is_made() {
    let name = "files::a_mapping_for_reading_takes_no_stores_until_one_for_writing_is_made";
    if let Some((file, _)) = parent(name) {
        return assert_eq!(std::fs::read(file.path()).unwrap()[PAGE], 4);
    }
    let Some(file) = open() else { return };
    let none = std::ptr::null_mut();
    // SAFETY: a new mapping of this test's.
    let view = unsafe {
        let start = libc::mmap(none, ALL, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        std::slice::from_raw_parts_mut(start.cast::<u8>(), ALL)
    };
    assert!(is_managed());
    assert_eq!(view.iter().map(|&b| u64::from(b)).sum::<u64>(), 0, "all of it is read");
    // A read(2) to where a store may not go is EFAULT, not SIGSEGV.
    let zero = File::open("/dev/zero").unwrap();
    // SAFETY: one byte of the mapping.
    let stored = unsafe { libc::read(zero.as_raw_fd(), view[PAGE..].as_mut_ptr().cast(), 1) };
    assert_eq!(stored, -1);
    let writable = map(&file);
    writable[PAGE] = 4;
    assert_eq!(view[PAGE], 4);
}

/// As fio maps what it only writes.
#[test]
fn a_mapping_for_writing_alone_is_managed() {
    if let Some((file, notes)) = parent("files::a_mapping_for_writing_alone_is_managed") {
        assert_eq!(std::fs::read(file.path()).unwrap()[7], 5);
        return assert_eq!(notes.matches("stays with the kernel").count(), 1, "{notes}");
    }
    let Some(file) = open() else { return };
    let map = |prot| {
        let (none, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping, used by this test alone.
        unsafe { libc::mmap(none, ALL, prot, libc::MAP_SHARED, fd, 0).cast::<u8>() }
    };
    assert_ne!(map(libc::PROT_NONE).cast(), libc::MAP_FAILED);
    assert!(!is_managed());
    let start = map(libc::PROT_WRITE);
    assert!(is_managed());
    // SAFETY: one byte of the mapping.
    unsafe { start.add(7).write(5) };
}

/// Pages that two threads race for, and how often each is written.
const RACED: usize = 8;
const ROUNDS: u64 = 400;

#[test]
fn stores_beside_what_another_thread_writes_are_kept() {
    if parent("files::stores_beside_what_another_thread_writes_are_kept").is_some() {
        return;
    }
    let Some(file) = open() else { return };
    let memory = &*map(&file);
    assert!(is_managed());
    let counter = |page: usize| {
        // SAFETY: aligned, in the mapping, and only ever used as an atomic.
        unsafe { AtomicU64::from_ptr(memory[page * PAGE..].as_ptr().cast_mut().cast()) }
    };
    let (done, written) = (AtomicBool::new(false), |page: usize| (page * PAGE + 8) as u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut before = 0;
            while !done.load(Ordering::Relaxed) {
                for page in 0..RACED {
                    let was = counter(page).swap(before + 1, Ordering::Relaxed);
                    assert_eq!(was, before, "a store to page {page} is lost");
                }
                before += 1;
            }
        });
        for round in 1..=ROUNDS {
            for page in 0..RACED {
                file.write_all_at(&round.to_le_bytes(), written(page)).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    for page in 0..RACED {
        let mut content = [0; 16];
        file.read_exact_at(&mut content, (page * PAGE) as u64).unwrap();
        assert_eq!(content, memory[page * PAGE..][..16], "page {page}");
        assert_eq!(content[8..], ROUNDS.to_le_bytes(), "what was written to page {page} is lost");
    }
}
