use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::advice;

#[test]
fn what_is_no_managed_files_does_not_wait_for_the_table() {
    let (done, is_done) = mpsc::channel();
    let held = table();
    NR_FILES.store(1, Ordering::Release);
    std::thread::spawn(move || {
        let mut page = [0_u8; 2 * PAGE];
        let start = page.as_mut_ptr().wrapping_add(page.as_ptr().align_offset(PAGE)).cast();
        // SAFETY: says of a page of this thread's what is so anyway.
        done.send(unsafe { advice::madvise(start, PAGE, libc::MADV_NORMAL) })
    });
    let answer = is_done.recv_timeout(Duration::from_secs(300));
    NR_FILES.store(0, Ordering::Release);
    drop(held);
    assert_eq!(answer, Ok(0));
}
