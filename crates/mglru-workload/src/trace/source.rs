//! Files that traces are read from, again and again. A pipe gives its bytes once: they are kept in
//! a file without a name, which is gone when the program ends, however it ends.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::TraceError;
use super::format::Format;
use super::reader::TraceReader;
use super::record::View;
use super::unpack::{self, Opened};

/// Holds a trace that can be read more than once, be it a file or a pipe.
#[derive(Clone, Debug)]
pub struct TraceFile {
    path: PathBuf,
    file: Arc<File>,
}

impl TraceFile {
    /// Opens a file, or keeps in a temporary file what comes out of a pipe.
    ///
    /// # Errors
    /// The file cannot be opened or is a device, or there is no room to keep what a pipe holds.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TraceError> {
        let path = path.into();
        let mut file = open(&path)?;
        if is_pipe(&path) {
            file = kept(&path, &mut file)?;
        }
        Ok(TraceFile { path, file: Arc::new(file) })
    }

    /// Returns the path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts to read the trace from its beginning.
    ///
    /// # Errors
    /// Those of [`TraceReader::open`].
    pub fn reader(&self, format: Option<Format>, view: View) -> Result<TraceReader, TraceError> {
        let source = FromStart { file: Arc::clone(&self.file), offset: 0 };
        TraceReader::new(&self.path, Box::new(source), format, view)
    }
}

/// Opens a file that may be compressed, to read what is in it.
///
/// # Errors
/// The file cannot be read, or is an archive.
pub fn unpacked(path: &Path) -> io::Result<Box<dyn Read>> {
    match unpack::open(Box::new(File::open(path)?))? {
        Opened::Plain(raw) => Ok(Box::new(raw)),
        Opened::Packed(unpacked) => Ok(Box::new(unpacked)),
        Opened::Foreign(kind) => Err(io::Error::other(format!("is {kind}"))),
    }
}

/// Says whether a file can be read once only: a pipe, a socket or a terminal.
pub fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_char_device()
    })
}

/// Opens what has an end: files, pipes and terminals.
pub(super) fn open(path: &Path) -> Result<File, TraceError> {
    let fail = |source| TraceError::Open { path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(fail)?;
    let kind = file.metadata().map_err(fail)?.file_type();
    if kind.is_char_device() && !file.is_terminal() {
        // Other devices than the one that holds nothing have no end.
        return match file.read(&mut [0]).map_err(fail)? {
            0 => Err(TraceError::empty(path)),
            _ => Err(TraceError::Device { path: path.to_path_buf() }),
        };
    }
    Ok(file)
}

fn kept(path: &Path, pipe: &mut File) -> Result<File, TraceError> {
    let folder = std::env::temp_dir();
    let copied = tempfile::tempfile_in(&folder).and_then(|mut file| {
        io::copy(pipe, &mut file)?;
        Ok(file)
    });
    copied.map_err(|source| TraceError::Keep { path: path.to_path_buf(), folder, source })
}

/// Reads a file that others read at other places.
struct FromStart {
    file: Arc<File>,
    offset: u64,
}

impl Read for FromStart {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let nr = self.file.read_at(out, self.offset)?;
        self.offset += nr as u64;
        Ok(nr)
    }
}
