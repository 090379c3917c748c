//! What is sent from managed memory and received into it.

use std::iter::once;
use std::ops::Range;

use libc::{c_int, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use mglru_pager::Advice;

use crate::lent::{given, range};
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

/// The addresses of several buffers.
pub fn ranges(buffers: *const iovec, n: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    // SAFETY: the caller of the function that is stood in for says that there are `n`.
    let buffers = (0..n).map(move |nth| unsafe { *buffers.add(nth) });
    buffers.map(|buffer| range(buffer.iov_base, buffer.iov_len))
}

/// Those of a message.
fn parts(message: *const msghdr) -> impl Iterator<Item = Range<usize>> + Clone {
    // SAFETY: null, or the caller's message.
    let message = unsafe { message.as_ref() };
    message.into_iter().flat_map(|message| ranges(message.msg_iov, message.msg_iovlen))
}

/// Stands in for send(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    given(
        once(range(from, len)),
        Advice::PopulateRead,
        || next!(send(fd, from, len, flags) as Send),
    )
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
    given(once(range(from, len)), Advice::PopulateRead, || {
        next!(sendto(fd, from, len, flags, to, to_len) as SendTo)
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
    given(
        once(range(to, len)),
        Advice::PopulateWrite,
        || next!(recv(fd, to, len, flags) as Receive),
    )
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
    given(once(range(to, len)), Advice::PopulateWrite, || {
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
    given(once(range(to, len)), Advice::PopulateWrite, || {
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
