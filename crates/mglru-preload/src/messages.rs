//! Sends from managed memory and receives into it.

use std::ops::Range;

use libc::{c_int, c_void, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use crate::bounce::{BounceBuffer, MOST, concerns, concerns_stores, loads, ranges, stores, total};
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
type ReceiveFromChecked = unsafe extern "C" fn(
    c_int,
    *mut c_void,
    size_t,
    size_t,
    c_int,
    *mut sockaddr,
    *mut socklen_t,
) -> ssize_t;
type ReceiveMessage = unsafe extern "C" fn(c_int, *mut msghdr, c_int) -> ssize_t;

/// Stands in for send(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    loads(fd, flags, from, len, |from, _, len| next!(send(fd, from, len, flags) as Send))
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
    loads(fd, flags, from, len, |from, _, len| {
        next!(sendto(fd, from, len, flags, to, to_len) as SendTo)
    })
}

/// Stands in for recv(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    stores(fd, flags, to, len, |to, _, len| next!(recv(fd, to, len, flags) as Receive))
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
    stores(fd, flags, to, len, |to, done, len| {
        next!(__recv_chk(fd, to, len, room.saturating_sub(done), flags) as ReceiveChecked)
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
    stores(fd, flags, to, len, |to, _, len| {
        next!(recvfrom(fd, to, len, flags, from, from_len) as ReceiveFrom)
    })
}

/// Stands in for what recvfrom(2) is where the compiler knows how large the buffer is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    room: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> ssize_t {
    stores(fd, flags, to, len, |to, done, len| {
        let room = room.saturating_sub(done);
        next!(__recvfrom_chk(fd, to, len, room, flags, from, from_len) as ReceiveFromChecked)
    })
}

/// Returns the addresses of a message's buffers. Reads the message when they are iterated.
fn parts(message: *const msghdr) -> impl Iterator<Item = Range<usize>> + Clone {
    // SAFETY: null, or the caller's message.
    let messages = std::iter::once(message).filter_map(|message| unsafe { message.as_ref() });
    messages.flat_map(|message| ranges(message.msg_iov, message.msg_iovlen))
}

/// Maps a bounce buffer for a message; `None`: it needs none, or one that is too large.
fn bounce_buffer(concerned: bool, message: *const msghdr) -> Option<BounceBuffer> {
    let len = concerned.then(|| total(parts(message)))?;
    BounceBuffer::new(Some(len).filter(|&len| len <= MOST)?)
}

/// Stands in for sendmsg(2). With MSG_ZEROCOPY the kernel reads after the call: no bounce buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let some = |message| next!(sendmsg(fd, message, flags) as SendMessage);
    let concerned = flags & libc::MSG_ZEROCOPY == 0 && concerns(parts(message));
    let Some(bounce) = bounce_buffer(concerned, message) else { return some(message) };
    bounce.load(parts(message));
    let mut buffer = bounce.buffer();
    // SAFETY: the caller's message, of which something is managed.
    some(&msghdr { msg_iov: &mut buffer, msg_iovlen: 1, ..unsafe { *message } })
}

/// Stands in for recvmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let some = |message| next!(recvmsg(fd, message, flags) as ReceiveMessage);
    let Some(bounce) = bounce_buffer(concerns_stores(parts(message)), message) else {
        return some(message);
    };
    let mut buffer = bounce.buffer();
    // SAFETY: the caller's message, of which something is managed.
    let message = unsafe { &mut *message };
    let mut other = msghdr { msg_iov: &mut buffer, msg_iovlen: 1, ..*message };
    let n = some(&mut other);
    if n >= 0 {
        bounce.store(parts(message), n as usize);
        let (msg_iov, msg_iovlen) = (message.msg_iov, message.msg_iovlen);
        *message = msghdr { msg_iov, msg_iovlen, ..other };
    }
    n
}
