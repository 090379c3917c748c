//! Files that only QEMU sees: they have no name, so that nothing is left behind however the
//! program ends.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::Command;

/// Room for ext4's own tables, per mille of the files.
const OVERHEAD: u64 = 60;
/// Persistent memory comes in sections of this size.
const SECTION: u64 = 128 << 20;

/// Holds a file without a name.
pub struct Scratch(File);

impl Scratch {
    /// Creates a file that holds `bytes`.
    ///
    /// # Errors
    /// When the folder for temporary files cannot take it.
    pub fn holding(bytes: &[u8]) -> Result<Self, String> {
        let file = tempfile::tempfile().and_then(|mut file| file.write_all(bytes).map(|()| file));
        file.map(Self).map_err(|e| format!("{}: {e}", std::env::temp_dir().display()))
    }

    /// Puts a program's code into a file in memory: temporary folders may forbid to run it.
    ///
    /// # Errors
    /// When the kernel gives no such file.
    pub fn executable(code: &[u8]) -> Result<Self, String> {
        let file = rustix::fs::memfd_create("mglru", rustix::fs::MemfdFlags::CLOEXEC);
        let file = file.map_err(std::io::Error::from).map(File::from);
        let file = file.and_then(|mut file| file.write_all(code).map(|()| file));
        file.map(Self).map_err(|e| format!("a file in memory: {e}"))
    }

    /// Creates an empty ext4 with room for `bytes`, and returns its size too. It takes no space
    /// until it is written.
    ///
    /// # Errors
    /// When mkfs.ext4 is missing or fails.
    pub fn ext4(bytes: u64, room: u64) -> Result<(Self, u64), String> {
        let scratch = Self::holding(&[])?;
        let size = disk_size(bytes, room);
        scratch.0.set_len(size).map_err(|e| format!("a disk of {size} bytes: {e}"))?;
        let mkfs = super::programs::find("mkfs.ext4")?;
        // Blocks of a page, whatever the size; nothing is initialised in the background while
        // something is measured.
        let options = ["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        let made = Command::new(mkfs).args(options).arg(scratch.path()).output();
        let made = made.map_err(|e| format!("mkfs.ext4: {e}"))?;
        match made.status.success() {
            true => Ok((scratch, size)),
            false => Err(format!("mkfs.ext4: {}", String::from_utf8_lossy(&made.stderr).trim())),
        }
    }

    /// Reads all that another process wrote to the file.
    ///
    /// # Errors
    /// As the file system says.
    pub fn text(&self) -> Result<String, String> {
        std::fs::read_to_string(self.path()).map_err(|e| format!("{}: {e}", self.path()))
    }

    /// Returns a path by which another process of this user can open it while this one lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

fn disk_size(bytes: u64, room: u64) -> u64 {
    with_overhead(bytes, room).next_multiple_of(SECTION)
}

/// Returns the bytes of a disk that has room for files of `bytes`, and `room` besides.
pub fn with_overhead(bytes: u64, room: u64) -> u64 {
    bytes + bytes / 1000 * OVERHEAD + room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_can_open_a_file_without_a_name() {
        let scratch = Scratch::holding(b"text").unwrap();
        let read = Command::new("cat").arg(scratch.path()).output().unwrap();
        assert_eq!(read.stdout, b"text");
    }

    #[test]
    fn disks_are_whole_sections_and_larger_than_their_files() {
        assert_eq!(disk_size(0, 16 << 20), SECTION);
        assert_eq!(disk_size(128 << 20, 64 << 20), 2 * SECTION);
    }
}
