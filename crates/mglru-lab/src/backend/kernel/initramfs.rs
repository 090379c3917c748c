//! The guest's first file system, made in memory: an archive in cpio's newc format, folders before
//! what is in them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, trailer};

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const DEVICE: u32 = 0o020_600;
const LINK: u32 = 0o120_777;
/// The console's device number.
const CONSOLE: (u32, u32) = (5, 1);

/// Holds an archive that is being written.
pub struct Archive {
    bytes: Vec<u8>,
    have: BTreeSet<PathBuf>,
    inode: u32,
}

impl Archive {
    /// Begins an archive with the console, which the kernel gives to the first process.
    ///
    /// # Errors
    /// As the archive's writer says.
    pub fn new() -> std::io::Result<Self> {
        let mut archive = Self { bytes: Vec::new(), have: BTreeSet::new(), inode: 0 };
        let device = |builder: Builder| builder.dev_major(0).rdev_major(CONSOLE.0);
        let device = |builder| device(builder).rdev_minor(CONSOLE.1);
        archive.entry(Path::new("dev/console"), DEVICE, &[], device)?;
        Ok(archive)
    }

    /// Adds a file that may be executed.
    ///
    /// # Errors
    /// As the archive's writer says.
    pub fn program(&mut self, path: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.entry(Path::new(path), FILE | 0o755, bytes, |builder| builder)
    }

    /// Adds a file.
    ///
    /// # Errors
    /// As the archive's writer says.
    pub fn file(&mut self, path: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.entry(Path::new(path), FILE | 0o644, bytes, |builder| builder)
    }

    /// Adds a file or folder of the host under its own path, links followed where the path itself
    /// is one and kept inside folders.
    ///
    /// # Errors
    /// Returns the error of a file that cannot be read.
    pub fn host(&mut self, path: &Path) -> std::io::Result<()> {
        let about = fs::metadata(path)?;
        if about.is_dir() {
            self.folders(&path.join("x"))?;
            let mut inside: Vec<_> = fs::read_dir(path)?.collect::<Result<_, _>>()?;
            inside.sort_by_key(fs::DirEntry::path);
            return inside.iter().try_for_each(|entry| self.inside(entry));
        }
        let mode = FILE | (about.permissions().mode() & 0o777);
        self.entry(path, mode, &fs::read(path)?, |builder| builder)
    }

    fn inside(&mut self, entry: &fs::DirEntry) -> std::io::Result<()> {
        let path = entry.path();
        if !entry.file_type()?.is_symlink() {
            return self.host(&path);
        }
        let to = fs::read_link(&path)?;
        self.entry(&path, LINK, to.to_string_lossy().as_bytes(), |builder| builder)
    }

    /// Ends the archive and returns its bytes.
    ///
    /// # Errors
    /// As the archive's writer says.
    pub fn finish(self) -> std::io::Result<Vec<u8>> {
        trailer(self.bytes)
    }

    fn folders(&mut self, path: &Path) -> std::io::Result<()> {
        let parents: Vec<&Path> = path.ancestors().skip(1).collect();
        for parent in parents.into_iter().rev().map(relative) {
            if !parent.as_os_str().is_empty() && !self.have.contains(parent) {
                self.write(parent, FOLDER, &[], |builder| builder)?;
            }
        }
        Ok(())
    }

    /// A path that is there already stays as it was.
    fn entry(
        &mut self,
        path: &Path,
        mode: u32,
        bytes: &[u8],
        with: impl FnOnce(Builder) -> Builder,
    ) -> std::io::Result<()> {
        let path = relative(path);
        if self.have.contains(path) {
            return Ok(());
        }
        self.folders(path)?;
        self.write(path, mode, bytes, with)
    }

    fn write(
        &mut self,
        path: &Path,
        mode: u32,
        bytes: &[u8],
        with: impl FnOnce(Builder) -> Builder,
    ) -> std::io::Result<()> {
        self.inode += 1;
        let builder = Builder::new(&path.to_string_lossy()).ino(self.inode).mode(mode).nlink(1);
        let too_large = |_| std::io::Error::other(format!("{}: too large", path.display()));
        let len = u32::try_from(bytes.len()).map_err(too_large)?;
        let mut writer = with(builder).write(&mut self.bytes, len);
        writer.write_all(bytes)?;
        writer.finish()?;
        self.have.insert(path.to_path_buf());
        Ok(())
    }
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::newc::Reader;
    use std::io::Read;

    /// Path, mode and content of every entry.
    fn entries(mut archive: &[u8]) -> Vec<(String, u32, String)> {
        let mut entries = Vec::new();
        loop {
            let mut reader = Reader::new(archive).unwrap();
            if reader.entry().is_trailer() {
                return entries;
            }
            let (name, mode) = (reader.entry().name().to_string(), reader.entry().mode());
            let mut content = String::new();
            reader.read_to_string(&mut content).unwrap();
            entries.push((name, mode, content));
            archive = reader.finish().unwrap();
        }
    }

    #[test]
    fn folders_come_before_files_and_nothing_twice() {
        let mut archive = Archive::new().unwrap();
        archive.program("/init", b"elf").unwrap();
        archive.file("/a/b/c", b"1").unwrap();
        archive.file("/a/b/c", b"2").unwrap();
        let bytes = archive.finish().unwrap();
        let entry = |name: &str, mode, text: &str| (name.to_string(), mode, text.to_string());
        assert_eq!(
            entries(&bytes),
            [
                entry("dev", FOLDER, ""),
                entry("dev/console", DEVICE, ""),
                entry("init", 0o100_755, "elf"),
                entry("a", FOLDER, ""),
                entry("a/b", FOLDER, ""),
                entry("a/b/c", 0o100_644, "1"),
            ]
        );
    }

    #[test]
    fn folders_of_the_host_keep_their_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        fs::write(dir.path().join("in/file"), "x").unwrap();
        std::os::unix::fs::symlink("file", dir.path().join("in/link")).unwrap();
        let mut archive = Archive::new().unwrap();
        archive.host(dir.path()).unwrap();
        let entries = entries(&archive.finish().unwrap());
        let named = |name: &str| entries.iter().find(|(path, ..)| path.ends_with(name)).unwrap();
        assert_eq!((named("in/file").2.as_str(), named("in/link").1), ("x", LINK));
        assert_eq!(named("in/link").2, "file");
        assert_eq!(named("/in").1, FOLDER);
    }
}
