//! Trace events of a run in a file: as ftrace prints them, for `trace-cmd`, `perf script` and what
//! else reads that text, or as a Perfetto trace. Of the model and of a booted kernel alike, so that
//! one viewer shows both.

mod perfetto;
mod proto;
mod text;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mglru_error::Error;
use mglru_sim::tracing::{Event, LEVELS, Sink};

pub use perfetto::{Perfetto, fields};
pub use text::{HEADER, Owned, parse};

/// Names that end so are Perfetto traces.
const PERFETTO: [&str; 2] = ["pftrace", "perfetto-trace"];

/// Files that are being written.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the files that are being written: a signal ends the process.
pub fn discard_unfinished() {
    unfinished().iter().for_each(|file| discard(file));
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a file off the list of those that are being written.
fn forget(path: &Path) {
    unfinished().retain(|file| file != path);
}

/// Writes events to a file as they come.
pub struct TraceFile {
    path: PathBuf,
    out: BufWriter<File>,
    form: Form,
}

enum Form {
    Text,
    Perfetto(Box<Perfetto>),
}

impl TraceFile {
    /// Begins a file; its name says in which form.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|e| Error::io(path, e))?;
        unfinished().push(path.to_path_buf());
        let mut made = Self::over(file, path, Perfetto::default());
        if let Form::Text = made.form {
            made.out.write_all(HEADER.as_bytes()).map_err(|e| Error::io(path, e))?;
        }
        Ok(made)
    }

    /// Creates a file and writes its beginning at once, so that a disk without room shows, for
    /// another process to [`Self::resume`].
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn begin(path: &Path) -> Result<File, Error> {
        let mut file = Self::create(path)?;
        let begun = match &mut file.form {
            Form::Text => Ok(()),
            Form::Perfetto(perfetto) => perfetto.begin(&mut file.out),
        };
        let written = begun.and_then(|()| file.out.flush());
        forget(path);
        let ended = |()| file.out.into_inner().map_err(io::IntoInnerError::into_error);
        written.and_then(ended).map_err(|e| {
            discard(path);
            Error::io(path, e)
        })
    }

    /// Goes on with a file that was begun.
    pub fn resume(file: File, path: &Path) -> Self {
        Self::over(file, path, Perfetto::begun())
    }

    fn over(file: File, path: &Path, perfetto: Perfetto) -> Self {
        let form = match is_perfetto(path) {
            true => Form::Perfetto(Box::new(perfetto)),
            false => Form::Text,
        };
        let out = BufWriter::with_capacity(1 << 16, file);
        Self { path: path.to_path_buf(), out, form }
    }

    /// Writes at the end how many events there are, and how many could not be kept.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn close(&mut self, written: u64, lost: u64) -> Result<(), String> {
        let closed = match &mut self.form {
            Form::Text => text::close(&mut self.out, written, lost),
            Form::Perfetto(perfetto) => perfetto.close(&mut self.out, written, lost),
        };
        self.done(closed).and_then(|()| self.finish())
    }

    /// Says what went wrong; half a trace is not left behind.
    fn done(&self, written: io::Result<()>) -> Result<(), String> {
        written.map_err(|e| {
            discard(&self.path);
            format!("--trace-events: {}: {e}", self.path.display())
        })
    }
}

impl Sink for TraceFile {
    fn event(&mut self, event: &Event<'_>) -> Result<(), String> {
        let written = match &mut self.form {
            Form::Text => text::write(&mut self.out, event),
            Form::Perfetto(perfetto) => perfetto.event(&mut self.out, event),
        };
        self.done(written)
    }

    fn levels(&mut self, at: u64, levels: &[u64; LEVELS.len()]) -> Result<(), String> {
        let written = match &mut self.form {
            Form::Text => Ok(()),
            Form::Perfetto(perfetto) => {
                let named = LEVELS.into_iter().zip(levels.iter().copied());
                perfetto.levels(&mut self.out, at, named)
            }
        };
        self.done(written)
    }

    fn finish(&mut self) -> Result<(), String> {
        let written = self.out.flush();
        forget(&self.path);
        self.done(written)
    }
}

/// Removes half a trace; what is no file of its own, as a pipe, stays.
fn discard(path: &Path) {
    if fs::metadata(path).is_ok_and(|found| found.is_file()) {
        // The write's own error is the one to report.
        let _ = fs::remove_file(path);
    }
}

fn is_perfetto(path: &Path) -> bool {
    path.extension().is_some_and(|ending| PERFETTO.iter().any(|name| ending == *name))
}

/// Names the file of one run of several: the run's name stands before the ending.
pub fn file_of(file: &Path, run: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._+=".contains(c) { c } else { '-' };
    let run: String = run.chars().map(plain).collect();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match file.extension() {
        Some(ending) => format!("{stem}-{run}.{}", ending.to_string_lossy()),
        None => format!("{stem}-{run}"),
    };
    file.with_file_name(name)
}

#[cfg(test)]
mod tests;
