//! An open file that goes to another process by a Unix socket.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::net::UnixStream;

const NUMBER: libc::c_uint = size_of::<RawFd>() as libc::c_uint;
/// Room for a header and one descriptor, with what the kernel adds.
const ROOM: usize = 64;

/// Control data, aligned as its headers are.
#[repr(C, align(8))]
struct Control([u8; ROOM]);

/// Calls `with` with a message of one byte and control data.
fn message<T>(
    byte: &mut u8,
    control: &mut Control,
    with: impl FnOnce(&mut libc::msghdr) -> T,
) -> T {
    let mut part = libc::iovec { iov_base: (&raw mut *byte).cast(), iov_len: 1 };
    // SAFETY: all zeros are an empty message.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = ROOM;
    with(&mut message)
}

/// Sends a byte and an open file.
pub fn send(stream: &UnixStream, byte: u8, file: &File) -> io::Result<()> {
    let (mut byte, mut control) = (byte, Control([0; ROOM]));
    let sent = message(&mut byte, &mut control, |message| {
        // SAFETY: the control data has room for a header and a descriptor, and the message
        // outlives the call.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(NUMBER) as usize;
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(NUMBER) as usize;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(file.as_raw_fd());
            libc::sendmsg(stream.as_raw_fd(), message, libc::MSG_NOSIGNAL)
        }
    });
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives a byte, and the file that came with it, if one did.
pub fn receive(stream: &UnixStream) -> io::Result<(u8, Option<File>)> {
    let (mut byte, mut control) = (0, Control([0; ROOM]));
    let (got, fd) = message(&mut byte, &mut control, |message| {
        // SAFETY: the message outlives the call; what the kernel filled in is read as it says.
        unsafe {
            let got = libc::recvmsg(stream.as_raw_fd(), message, libc::MSG_CMSG_CLOEXEC);
            let header = if got == 1 { libc::CMSG_FIRSTHDR(message) } else { std::ptr::null_mut() };
            let is_file = !header.is_null()
                && (*header).cmsg_level == libc::SOL_SOCKET
                && (*header).cmsg_type == libc::SCM_RIGHTS;
            (got, is_file.then(|| libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
        }
    });
    match got {
        1 => {
            // SAFETY: the descriptor came with the message and is nobody else's.
            Ok((byte, fd.map(|fd| unsafe { File::from_raw_fd(fd) })))
        }
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};

    #[test]
    fn a_file_is_the_same_at_the_other_end() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"here").unwrap();
        send(&ours, b'x', &file).unwrap();
        let (byte, got) = receive(&theirs).unwrap();
        let (mut got, mut text) = (got.unwrap(), String::new());
        got.rewind().unwrap();
        got.read_to_string(&mut text).unwrap();
        assert_eq!((byte, text.as_str()), (b'x', "here"));
    }

    #[test]
    fn a_byte_may_come_alone_and_an_end_is_an_error() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"y").unwrap();
        assert!(matches!(receive(&theirs), Ok((b'y', None))));
        drop(ours);
        assert!(receive(&theirs).is_err());
    }
}
