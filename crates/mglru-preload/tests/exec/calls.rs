//! Calls that are given mapped memory: larger than the budget, so that much of it is not there.

use std::ffi::CString;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::ptr::null_mut;

use libc::{FILE, c_void, iovec, msghdr};

use super::files::other;
use super::*;

/// Runs a test once more under the library, with either engine; nothing in the child.
fn with_either_engine(test: &str) {
    for faults in ["thread", "sigbus"] {
        parent_with(test, faults);
    }
}

/// A managed file's memory, stamped, in the child.
fn stamped(salt: u8) -> Option<&'static mut [u8]> {
    let memory = map(&open()?);
    stamp(memory, salt);
    Some(memory)
}

unsafe extern "C" {
    fn __pread_chk(fd: i32, to: *mut u8, len: usize, at: i64, room: usize) -> isize;
    fn __read_chk(fd: i32, to: *mut c_void, len: usize, room: usize) -> isize;
    fn __recv_chk(fd: i32, to: *mut c_void, len: usize, room: usize, flags: i32) -> isize;
    fn __recvfrom_chk(
        fd: i32,
        to: *mut c_void,
        len: usize,
        room: usize,
        flags: i32,
        from: *mut libc::sockaddr,
        from_len: *mut libc::socklen_t,
    ) -> isize;
    fn __fread_chk(to: *mut c_void, room: usize, size: usize, n: usize, file: *mut FILE) -> usize;
}

#[test]
fn buffered_input_and_output_go_to_and_from_managed_memory() {
    with_either_engine("calls::buffered_input_and_output_go_to_and_from_managed_memory");
    let Some(memory) = stamped(0x21) else { return };
    let path = std::env::current_dir().unwrap().join(format!("stdio-{}", std::process::id()));
    let path = CString::new(path.into_os_string().into_string().unwrap()).unwrap();
    // SAFETY: a stream of this test's, and memory of the mapping, which is larger than the budget.
    unsafe {
        let stream = libc::fopen(path.as_ptr(), c"w+".as_ptr());
        assert!(!stream.is_null());
        assert_eq!(libc::fwrite(memory.as_ptr().cast(), 1, ALL, stream), ALL);
        memory.fill(0);
        libc::rewind(stream);
        assert_eq!(libc::fread(memory.as_mut_ptr().cast(), 1, ALL, stream), ALL);
        libc::fclose(stream);
        libc::unlink(path.as_ptr());
    }
    assert!(is_stamped(memory, 0x21));
}

/// The memory is larger than the budget, so that much of what a call is given is not there.
#[test]
fn system_calls_are_given_managed_memory() {
    with_either_engine("calls::system_calls_are_given_managed_memory");
    let Some(memory) = stamped(0x31) else { return };
    let other = other();
    let fd = other.as_raw_fd();
    // SAFETY: memory and descriptors of this test's.
    unsafe {
        let (start, all) = (memory.as_mut_ptr().cast::<libc::c_void>(), ALL as isize);
        assert_eq!(libc::write(fd, start, ALL), all);
        memory.fill(0);
        assert_eq!(libc::pread(fd, start, ALL, 0), all);
        assert!(is_stamped(memory, 0x31));
        let half = |n: usize| libc::iovec { iov_base: start.byte_add(n * ALL / 2), iov_len: PAGE };
        let halves = [half(0), half(1)];
        assert_eq!(libc::pwritev(fd, halves.as_ptr(), 2, 0), 2 * PAGE as isize);
        memory.fill(0);
        assert_eq!(libc::preadv(fd, halves.as_ptr(), 2, 0), 2 * PAGE as isize);
        assert_eq!((memory[0], memory[ALL / 2 + PAGES / 2]), (0x31, (PAGES / 2) as u8 ^ 0x31));
        stamp(memory, 0x32);
        let (one, two) = UnixStream::pair().unwrap();
        let (from, to) = (one.as_raw_fd(), two.as_raw_fd());
        let sender = std::thread::spawn(move || {
            assert_eq!(libc::send(from, memory.as_ptr().cast(), ALL, 0), all, "at one go");
            memory
        });
        let mut got = vec![0; ALL];
        assert_eq!(libc::recv(to, got.as_mut_ptr().cast(), ALL, libc::MSG_WAITALL), all);
        assert!(is_stamped(&got, 0x32));
        let memory = sender.join().unwrap();
        let sender = std::thread::spawn(move || libc::send(from, got.as_ptr().cast(), ALL, 0));
        memory.fill(0);
        assert_eq!(libc::recv(to, start, ALL, libc::MSG_WAITALL), all, "at one go");
        assert_eq!(sender.join().unwrap(), all);
        assert!(is_stamped(memory, 0x32));
    }
}

#[test]
fn a_read_that_the_compiler_has_checked_sees_what_was_stored() {
    if parent("calls::a_read_that_the_compiler_has_checked_sees_what_was_stored").is_some() {
        return;
    }
    let Some(file) = open() else { return };
    let (memory, mut read) = (map(&file), [0; 8]);
    memory[3 * PAGE] = 9;
    // SAFETY: a descriptor and memory of this test's.
    let n = unsafe { __pread_chk(file.as_raw_fd(), read.as_mut_ptr(), 8, 3 * PAGE as i64, 8) };
    assert_eq!((n, read[0]), (8, 9));
}

#[test]
fn calls_that_the_compiler_has_checked_are_given_managed_memory() {
    with_either_engine("calls::calls_that_the_compiler_has_checked_are_given_managed_memory");
    let Some(memory) = stamped(0x41) else { return };
    let (content, all) = (memory.to_vec(), ALL as isize);
    let file = other();
    file.write_all_at(&content, 0).unwrap();
    let (one, two) = UnixStream::pair().unwrap();
    let (from, to) = (one.as_raw_fd(), two.as_raw_fd());
    let mut filled = |how: &str, fill: &dyn Fn(*mut c_void) -> isize| {
        memory.fill(0);
        std::thread::scope(|scope| {
            if how.starts_with("recv") {
                // SAFETY: a descriptor and memory of this test's.
                scope.spawn(|| unsafe { libc::send(from, content.as_ptr().cast(), ALL, 0) });
            }
            assert_eq!(fill(memory.as_mut_ptr().cast()), all, "{how}");
        });
        assert!(is_stamped(memory, 0x41), "{how}");
    };
    let (wait, room) = (libc::MSG_WAITALL, ALL + PAGE);
    // SAFETY: descriptors of this test's, a stream of its own, and memory as long as is said.
    unsafe {
        filled("read", &|to| __read_chk(file.as_raw_fd(), to, ALL, room));
        filled("recv", &|start| __recv_chk(to, start, ALL, room, wait));
        filled("recvfrom", &|start| {
            __recvfrom_chk(to, start, ALL, room, wait, null_mut(), null_mut())
        });
        let stream = libc::fdopen(libc::dup(file.as_raw_fd()), c"r".as_ptr());
        libc::rewind(stream);
        filled("fread", &|to| __fread_chk(to, room, 2, ALL / 2, stream) as isize * 2);
        libc::fclose(stream);
    }
}

#[test]
fn several_buffers_of_managed_memory_are_read_and_written_with_flags() {
    with_either_engine("calls::several_buffers_of_managed_memory_are_read_and_written_with_flags");
    let Some(memory) = stamped(0x51) else { return };
    let (file, all) = (other(), ALL as isize);
    let buffers = parts(memory, [ALL / 4, ALL / 4 + 100, ALL / 2 - 100]);
    let (fd, buffers, n) = (file.as_raw_fd(), buffers.as_ptr(), 3);
    // SAFETY: a descriptor of this test's.
    let seek = |at: i64| unsafe { libc::lseek(fd, at, libc::SEEK_SET) };
    // SAFETY: a descriptor of this test's, and three buffers of its memory.
    unsafe {
        assert_eq!(libc::pwritev2(fd, buffers, n, 0, libc::RWF_DSYNC), all);
        memory.fill(0);
        assert_eq!(libc::preadv2(fd, buffers, n, 0, 0), all);
        assert!(is_stamped(memory, 0x51));
        stamp(memory, 0x52);
        seek(0);
        assert_eq!(libc::pwritev2(fd, buffers, n, -1, 0), all, "at the descriptor's own place");
        assert_eq!(seek(0), 0);
        memory.fill(0);
        assert_eq!(libc::preadv2(fd, buffers, n, -1, 0), all);
        assert!(is_stamped(memory, 0x52));
        memory[100..].fill(9);
        assert_eq!(libc::preadv2(fd, buffers, n, (ALL - 100) as i64, 0), 100, "to the file's end");
        assert_eq!(libc::pread(fd, memory.as_mut_ptr().cast(), ALL, (ALL - 100) as i64), 100);
    }
    assert!(memory[100..].iter().all(|&byte| byte == 9), "and no byte more");
}

/// Memory as buffers of these lengths, one after the other.
fn parts<const N: usize>(memory: &mut [u8], lengths: [usize; N]) -> [iovec; N] {
    let mut start = memory.as_mut_ptr();
    lengths.map(|iov_len| {
        let iov_base = start.cast();
        start = start.wrapping_add(iov_len);
        iovec { iov_base, iov_len }
    })
}

fn message(buffers: &mut [iovec]) -> msghdr {
    // SAFETY: the structure is plain numbers, and nothing is as good as zeros.
    let none: msghdr = unsafe { std::mem::zeroed() };
    msghdr { msg_iov: buffers.as_mut_ptr(), msg_iovlen: buffers.len(), ..none }
}

#[test]
fn messages_are_sent_from_managed_memory_and_received_there() {
    with_either_engine("calls::messages_are_sent_from_managed_memory_and_received_there");
    let Some(memory) = stamped(0x61) else { return };
    let (one, two) = UnixDatagram::pair().unwrap();
    let (from, to) = (one.as_raw_fd(), two.as_raw_fd());
    let (sent, got) = memory.split_at_mut(ALL / 2);
    got.fill(0);
    let mut of = parts(sent, [5 * PAGE, 3 * PAGE + 10]);
    let (of, len) = (message(&mut of), 8 * PAGE as isize + 10);
    let mut into = parts(got, [PAGE + 7, 6 * PAGE - 7]);
    let mut into = message(&mut into);
    let given = (into.msg_iov, into.msg_iovlen);
    // SAFETY: descriptors of this test's, and buffers of its memory.
    unsafe {
        assert_eq!(libc::sendmsg(from, &of, 0), len);
        assert_eq!(libc::recvmsg(to, &mut into, libc::MSG_PEEK), 7 * PAGE as isize);
        assert_eq!(
            libc::recvmsg(to, &mut into, libc::MSG_TRUNC),
            len,
            "its own length is returned"
        );
    }
    assert_eq!(into.msg_flags & libc::MSG_TRUNC, libc::MSG_TRUNC, "and that it is cut");
    assert_eq!(
        (into.msg_iov, into.msg_iovlen),
        given,
        "the caller's buffers are left as they were"
    );
    assert_eq!(got[..7 * PAGE], sent[..7 * PAGE]);
    assert!(got[7 * PAGE..].iter().all(|&byte| byte == 0), "nothing beyond the buffers");
}

#[test]
fn a_call_stores_where_stores_are_possible_and_is_refused_elsewhere() {
    with_either_engine("calls::a_call_stores_where_stores_are_possible_and_is_refused_elsewhere");
    let Some(file) = open() else { return };
    let memory = try_map(&file, 0..ALL, READ, libc::MAP_SHARED).unwrap();
    assert!(is_managed());
    let (file, start) = (other(), memory.as_mut_ptr().cast());
    let refused = |n: isize| {
        assert_eq!(n, -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EFAULT));
    };
    let buffers = parts(memory, [PAGE, PAGE]);
    // SAFETY: a descriptor and addresses of this test's, stored to once that is possible.
    unsafe {
        refused(libc::pread(file.as_raw_fd(), start, PAGE, 0));
        refused(libc::preadv(file.as_raw_fd(), buffers.as_ptr(), 2, 0));
        // As the file itself allows.
        assert_eq!(libc::mprotect(start, ALL, BOTH), 0);
        memory[0] = 1;
        assert_eq!(libc::pread(file.as_raw_fd(), start, ALL, 0), ALL as isize);
    }
    assert!(memory.iter().all(|&byte| byte == 0));
}
