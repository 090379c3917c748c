//! Private mappings of files: what is stored to them is their own, here and in children of forks.

use super::*;

fn map_private(file: &File, offset: usize, len: usize, prot: i32) -> &'static mut [u8] {
    try_map(file, offset..offset + len, prot, libc::MAP_PRIVATE).expect("it is mapped")
}

/// The file's pages begin with their number, from 1 on.
fn numbered(file: &File) {
    for page in 0..PAGES {
        file.write_all_at(&(page as u32 + 1).to_le_bytes(), (page * PAGE) as u64).unwrap();
    }
}

fn number(memory: &[u8], page: usize) -> u32 {
    u32::from_le_bytes(memory[page * PAGE..][..4].try_into().unwrap())
}

fn set(memory: &mut [u8], page: usize, number: u32) {
    memory[page * PAGE..][..4].copy_from_slice(&number.to_le_bytes());
}

/// What every page is to be: the file's, or of every third what was stored.
fn is_as_stored(memory: &[u8], first: usize, stored: u32) -> bool {
    (0..memory.len() / PAGE).all(|page| {
        let expected = if page % 3 == 0 { stored } else { (first + page) as u32 + 1 };
        number(memory, page) == expected
    })
}

fn store(memory: &mut [u8], number: u32) {
    (0..memory.len() / PAGE).step_by(3).for_each(|page| set(memory, page, number));
}

#[test]
fn stores_to_a_private_mapping_are_its_own() {
    for faults in ["thread", "sigbus"] {
        let name = "private::stores_to_a_private_mapping_are_its_own";
        let Some((file, said)) = parent_with(name, faults) else { continue };
        assert_eq!(said, "");
        let content = std::fs::read(file.path()).unwrap();
        assert!((0..PAGES).all(|page| number(&content, page) == page as u32 + 1));
    }
    let Some(path) = std::env::var_os(CHILD) else { return };
    numbered(&open().unwrap());
    // It need not be open to be written.
    let file = File::open(path).unwrap();
    let memory = map_private(&file, 0, ALL, BOTH);
    let tail = map_private(&file, ALL / 2, ALL / 2, BOTH);
    assert!(is_managed() && memory.as_ptr() != tail.as_ptr());
    store(memory, 7);
    store(tail, 0);
    for _ in 0..2 {
        assert!(is_as_stored(memory, 0, 7), "it came back from swap, or from the file");
        assert!(is_as_stored(tail, PAGES / 2, 0));
    }
    let start = memory.as_mut_ptr().cast::<libc::c_void>();
    // SAFETY: pages of this test's mapping; the part that is unmapped is not used again.
    unsafe {
        assert_eq!(libc::madvise(start, PAGE, libc::MADV_DONTNEED), 0);
        assert_eq!(number(memory, 0), 1, "it is the file's again");
        assert_eq!(libc::msync(start, ALL, libc::MS_SYNC), 0);
        assert_eq!(libc::munmap(start.byte_add(ALL / 2), ALL / 2), 0);
        assert_eq!(number(memory, 3), 7);
        assert_eq!(libc::munmap(start, ALL / 2), 0);
    }
    assert!(is_as_stored(tail, PAGES / 2, 0), "the other knows nothing of it");
    unmap(tail);
    assert!(!is_managed());
}

#[test]
fn a_private_mapping_for_reading_may_be_opened_for_stores() {
    let name = "private::a_private_mapping_for_reading_may_be_opened_for_stores";
    if let Some((_, said)) = parent(name) {
        return assert_eq!(said, "");
    }
    let Some(file) = open() else { return };
    numbered(&file);
    let shared = map(&file);
    set(shared, 5, 99);
    let memory = map_private(&file, 0, ALL, READ);
    assert_eq!(number(memory, 5), 99, "what the shared mapping stored is in the file");
    // SAFETY: this test's own mapping.
    unsafe { assert_eq!(libc::mprotect(memory.as_mut_ptr().cast(), ALL, BOTH), 0) };
    store(memory, 8);
    assert_eq!((number(memory, 6), number(shared, 6)), (8, 7));
    unmap(memory);
    unmap(shared);
}

#[test]
fn a_forked_child_has_a_private_mapping_of_its_own() {
    for faults in ["thread", "sigbus"] {
        let name = "private::a_forked_child_has_a_private_mapping_of_its_own";
        let Some((_, said)) = parent_with(name, faults) else { continue };
        assert_eq!(said, "");
    }
    let Some(file) = open() else { return };
    numbered(&file);
    let half = ALL / 2;
    let memory = map_private(&file, PAGE, half, BOTH);
    store(memory, 7);
    // SAFETY: the child touches its memory and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let as_it_was = is_as_stored(memory, 1, 7);
        store(memory, 9);
        let right = as_it_was && is_as_stored(memory, 1, 9);
        // SAFETY: ends the process.
        unsafe { libc::_exit(if right { 0 } else { 1 }) };
    }
    store(memory, 8);
    let mut status = 0;
    // SAFETY: the child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child's is as it was at the fork, and its own");
    assert!(is_as_stored(memory, 1, 8), "and so is the parent's");
    unmap(memory);
}
