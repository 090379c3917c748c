//! Which files can be managed.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;

use crate::claim::Key;

/// File systems whose files are memory: nothing is won, and processes share them.
const IN_MEMORY: [i64; 3] = [libc::TMPFS_MAGIC, libc::HUGETLBFS_MAGIC, 0x8584_58f6];

/// Returns the key and length of a file, if it is regular, on a disk, and has a name and content.
pub fn candidate(file: &File) -> Option<(Key, usize)> {
    let meta = file.metadata().ok()?;
    let eligible = meta.is_file() && meta.nlink() > 0 && meta.len() > 0 && !is_in_memory(file);
    eligible.then(|| ((meta.dev(), meta.ino()), meta.len() as usize))
}

/// Is the file of a system whose files are memory?
pub fn is_in_memory(file: impl AsFd) -> bool {
    // SAFETY: any bytes are a value of the structure, which the call fills.
    let (done, found) = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_fd().as_raw_fd(), &mut found), found)
    };
    done == 0 && IN_MEMORY.contains(&found.f_type)
}

/// Is it the device of zeros, whose private mappings are anonymous memory?
pub fn is_zeros(file: &impl AsFd) -> bool {
    // SAFETY: any bytes are a value of the structure, which the call fills.
    let (done, found) = unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::fstat(file.as_fd().as_raw_fd(), &mut found), found)
    };
    done == 0
        && found.st_mode & libc::S_IFMT == libc::S_IFCHR
        && found.st_rdev == libc::makedev(1, 5)
}

/// Tells whether the file is open to be written.
pub fn is_writable(file: &File) -> bool {
    // SAFETY: takes numbers.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    flags != -1 && flags & libc::O_ACCMODE == libc::O_RDWR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_on_disk_are_candidates_and_memory_is_not() {
        match tempfile::NamedTempFile::new_in("/dev/shm") {
            Ok(memory) => {
                memory.as_file().set_len(4096).unwrap();
                assert_eq!(candidate(memory.as_file()), None);
            }
            Err(_) => println!("skipped: no /dev/shm here"),
        }
        let zeros = |path| File::open(path).is_ok_and(|file| is_zeros(&file));
        assert!(zeros("/dev/zero") && !zeros("/dev/null") && !zeros("."));
        let disk = tempfile::NamedTempFile::new_in(".").unwrap();
        assert_eq!(candidate(disk.as_file()), None, "it is empty");
        disk.as_file().set_len(5).unwrap();
        assert!(candidate(disk.as_file()).is_some_and(|(_, len)| len == 5));
        assert!(is_writable(disk.as_file()) && !is_writable(&File::open(disk.path()).unwrap()));
    }
}
