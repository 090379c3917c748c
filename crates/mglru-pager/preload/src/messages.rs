//! What is sent from managed memory and received into it.

use std::ops::Range;

use libc::{c_int, c_void, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use mglru_pager::Advice;

use crate::lent::{PART, given, lent, ranges};
use crate::next::next;

type Send = unsafe extern "C" fn(c_int, *const c_void, size_t, c_int) -> ssize_t;
type SendTo = unsafe extern "C" fn(
    c_int,
    *const c_void,
    size_t,
    c_int,
    *const sockaddr,
    socklen_t,
) -> ssize_t;
type SendMessage = unsafe extern "C" fn(c_int, *const msghdr, c_int) -> ssize_t;
type Receive = unsafe extern "C" fn(c_int, *mut c_void, size_t, c_int) -> ssize_t;
type ReceiveChecked = unsafe extern "C" fn(c_int, *mut c_void, size_t, size_t, c_int) -> ssize_t;
type ReceiveFrom = unsafe extern "C" fn(
    c_int,
    *mut c_void,
    size_t,
    c_int,
    *mut sockaddr,
    *mut socklen_t,
) -> ssize_t;
type ReceiveMessage = unsafe extern "C" fn(c_int, *mut msghdr, c_int) -> ssize_t;

/// The addresses of a message.
fn parts(message: *const msghdr) -> impl Iterator<Item = Range<usize>> + Clone {
    // SAFETY: null, or the caller's message.
    let message = unsafe { message.as_ref() };
    message.into_iter().flat_map(|message| ranges(message.msg_iov, message.msg_iovlen))
}

/// Receives, all that is asked for if the flags say so.
fn received(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    flags: c_int,
    call: impl Fn(*mut c_void, size_t) -> ssize_t,
) -> ssize_t {
    let waits = flags & (libc::MSG_WAITALL | libc::MSG_PEEK) == libc::MSG_WAITALL;
    let mut done = 0;
    loop {
        let to = to.wrapping_byte_add(done);
        let n = lent(fd, to, len - done, Advice::PopulateWrite, |done, len| {
            call(to.wrapping_byte_add(done), len)
        });
        done += n.max(0) as usize;
        if !waits || n != PART as ssize_t || done == len {
            return if done == 0 { n } else { done as ssize_t };
        }
    }
}

/// Stands in for send(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    lent(fd, from, len, Advice::PopulateRead, |done, len| {
        next!(send(fd, from.wrapping_byte_add(done), len, flags) as Send)
    })
}

/// Stands in for sendto(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    lent(fd, from, len, Advice::PopulateRead, |done, len| {
        next!(sendto(fd, from.wrapping_byte_add(done), len, flags, to, to_len) as SendTo)
    })
}

/// Stands in for sendmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    given(
        parts(message),
        Advice::PopulateRead,
        || next!(sendmsg(fd, message, flags) as SendMessage),
    )
}

/// Stands in for recv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    received(fd, to, len, flags, |to, len| next!(recv(fd, to, len, flags) as Receive))
}

/// Stands in for what recv(2) is where the compiler knows how large the buffer is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    let end = (to as usize).saturating_add(room);
    received(fd, to, len, flags, |to, len| {
        let room = end.saturating_sub(to as usize);
        next!(__recv_chk(fd, to, len, room, flags) as ReceiveChecked)
    })
}

/// Stands in for recvfrom(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    received(fd, to, len, flags, |to, len| {
        next!(recvfrom(fd, to, len, flags, from, from_len) as ReceiveFrom)
    })
}

/// Stands in for recvmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    given(parts(message), Advice::PopulateWrite, || {
        next!(recvmsg(fd, message, flags) as ReceiveMessage)
    })
}
