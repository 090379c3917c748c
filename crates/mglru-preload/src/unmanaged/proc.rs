//! Files and folders of /proc, read without allocating and by the kernel's calls alone: the
//! program may be in malloc, and its own reads are not to be mixed up with these.

use std::ffi::CStr;
use std::fmt::Write;

use libc::{c_int, c_long};

/// Lines are read up to this length, bytes; a longer one's end is left out.
const LINE: usize = 512;
const CHUNK: usize = 2048;

/// Holds a path, made in place.
pub struct Path {
    bytes: [u8; 64],
    len: usize,
}

impl Path {
    /// Makes a path of its parts, 63 bytes at most.
    pub fn new(parts: std::fmt::Arguments<'_>) -> Self {
        let mut path = Self { bytes: [0; 64], len: 0 };
        let fits = path.write_fmt(parts).is_ok();
        // A path that is too long becomes empty, and opens nothing.
        if fits { path } else { Self { bytes: [0; 64], len: 0 } }
    }

    fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.bytes[..63]
            .get_mut(self.len..end)
            .ok_or(std::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// An open file or folder.
struct Open(c_int);

impl Open {
    fn new(path: &Path, flags: c_int) -> Option<Self> {
        let (flags, at) = (flags | libc::O_RDONLY | libc::O_CLOEXEC, libc::AT_FDCWD);
        // SAFETY: the path ends with a zero byte.
        let fd = unsafe { libc::syscall(libc::SYS_openat, at, path.as_c().as_ptr(), flags) };
        (fd >= 0).then_some(Self(fd as c_int))
    }

    /// Fills the buffer by a call that reads; how much there was.
    fn fill(&self, call: c_long, buffer: &mut [u8]) -> usize {
        // SAFETY: the buffer is as long as it says.
        let n = unsafe { libc::syscall(call, self.0, buffer.as_mut_ptr(), buffer.len()) };
        usize::try_from(n).unwrap_or(0)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// Does something with each line of a file; false: it cannot be read.
pub fn lines(path: &Path, each: impl FnMut(&[u8])) -> bool {
    split(path, |byte| byte == b'\n', each)
}

fn split(path: &Path, ends: impl Fn(u8) -> bool, mut each: impl FnMut(&[u8])) -> bool {
    let Some(file) = Open::new(path, 0) else { return false };
    let (mut chunk, mut line, mut len) = ([0; CHUNK], [0; LINE], 0);
    loop {
        let n = file.fill(libc::SYS_read, &mut chunk);
        for &byte in &chunk[..n] {
            if ends(byte) {
                each(&line[..len]);
                len = 0;
            } else if len < LINE {
                line[len] = byte;
                len += 1;
            }
        }
        if n == 0 {
            if len > 0 {
                each(&line[..len]);
            }
            return true;
        }
    }
}

/// Does something with each word of a file.
pub fn for_each_word(path: &Path, mut each: impl FnMut(&[u8])) {
    split(
        path,
        |byte| byte.is_ascii_whitespace(),
        |word| {
            if !word.is_empty() {
                each(word);
            }
        },
    );
}

/// Reads the first bytes of a file; empty if it cannot be read.
pub fn head<'a>(path: &Path, buffer: &'a mut [u8]) -> &'a [u8] {
    let n = Open::new(path, 0).map_or(0, |file| file.fill(libc::SYS_read, buffer));
    &buffer[..n]
}

/// Does something with each number that is the name of an entry of a folder, until that says stop.
pub fn numbers(path: &Path, mut each: impl FnMut(u32) -> bool) {
    let Some(folder) = Open::new(path, libc::O_DIRECTORY) else { return };
    let mut chunk = [0; CHUNK];
    loop {
        let n = folder.fill(libc::SYS_getdents64, &mut chunk);
        let mut rest = &chunk[..n];
        // A record: 16 bytes, its length in 2, its type in 1, its name.
        while let Some(len) = rest.get(16..18).map(|len| u16::from_ne_bytes([len[0], len[1]])) {
            let (record, after) = rest.split_at(usize::from(len).max(19).min(rest.len()));
            let name = record.get(19..).and_then(|name| name.split(|&byte| byte == 0).next());
            if name.and_then(number).is_some_and(|number| !each(number as u32)) {
                return;
            }
            rest = after;
        }
        if n == 0 {
            return;
        }
    }
}

/// Reads a whole decimal number.
pub fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_of_proc_are_read() {
        let path = Path::new(format_args!("/proc/{}/status", std::process::id()));
        let mut rss = None;
        assert!(lines(&path, |line| {
            if let Some(rest) = line.strip_prefix(b"VmRSS:") {
                rss = number(rest.trim_ascii().split(|&b| b == b' ').next().unwrap());
            }
        }));
        assert!(rss.is_some_and(|kib| kib > 100));
        let mut found = false;
        numbers(&Path::new(format_args!("/proc")), |pid| {
            found |= pid == std::process::id();
            !found
        });
        assert!(found);
        assert!(!lines(&Path::new(format_args!("/proc/none")), |_| ()));
        let long = Path::new(format_args!("/proc/{}", "9".repeat(100)));
        assert!(!lines(&long, |_| ()), "it does not fit");
    }

    #[test]
    fn lines_are_whole_across_chunks_and_long_ones_are_cut() {
        let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        let text = format!("{}\n{}\nend", "a".repeat(2042), "b".repeat(100));
        std::fs::write(file.path(), text).unwrap();
        let mut seen = Vec::new();
        let path = Path::new(format_args!("{}", file.path().display()));
        assert!(lines(&path, |line| seen.push(line.to_vec())));
        assert_eq!(seen, [vec![b'a'; LINE], vec![b'b'; 100], b"end".to_vec()]);
    }
}
