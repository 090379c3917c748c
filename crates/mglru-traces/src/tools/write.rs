//! Traces that are written: converted, imported, anonymized. A file is there whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use mglru_workload::trace::{
    Anonymizer, Event, EventReader, EventWriter, Format, Head, Importer, Operation, Request,
    Source, TraceFile, TraceReader, View,
};
use serde::Serialize;
use tempfile::NamedTempFile;

use mglru_error::Error;

/// Log2 of the bytes of a page of a trace by pages.
const PAGE_SHIFT: u8 = 12;
/// Most requests that become one event.
const RUN_MAX: u64 = 254;

/// Describes what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Names the file.
    pub file: PathBuf,
    /// Counts events in it; lines of text.
    pub events: u64,
    /// Counts its bytes.
    pub bytes: u64,
}

/// Says where a trace is written to.
pub struct Output<'a> {
    path: &'a Path,
    /// The file behind links; what is no file is written to, not replaced.
    place: PathBuf,
    file: NamedTempFile,
}

impl<'a> Output<'a> {
    /// Makes a file beside the place of the one that is to be.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn new(path: &'a Path) -> Result<Self, Error> {
        let place = match is_descriptor(path) {
            true => path.to_path_buf(),
            false => path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
        };
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = match is_special(&place) {
            true => std::env::temp_dir(),
            false => folder.unwrap_or(Path::new(".")).to_path_buf(),
        };
        let file = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(&folder)
            // Its own words name the file beside, which nobody asked for.
            .map_err(|e| failed(path, &plain(&e)))?;
        Ok(Output { path, place, file })
    }

    /// Returns the file that is written first; who ends the process before it is kept removes it.
    pub fn beside(&self) -> &Path {
        self.file.path()
    }

    /// A second handle of the file, to write through.
    fn handle(&self) -> Result<BufWriter<File>, Error> {
        self.file.reopen().map(BufWriter::new).map_err(|e| failed(self.path, &e))
    }

    /// Puts the file in its place.
    fn keep(self, events: u64) -> Result<Made, Error> {
        let bytes = self.file.as_file().metadata().map_err(|e| failed(self.path, &e))?.len();
        if is_special(&self.place) {
            let write = || {
                // The shell's `>>` keeps what a file has.
                let mut to = File::options().append(true).open(&self.place)?;
                io::copy(&mut self.file.reopen()?, &mut to)
            };
            write().map_err(|e| failed(self.path, &e))?;
        } else {
            self.file.persist(&self.place).map_err(|e| failed(self.path, &e.error))?;
        }
        Ok(Made { file: self.path.to_path_buf(), events, bytes })
    }

    /// Writes compact events as `fill` finds them, and keeps the file.
    ///
    /// # Errors
    /// The file cannot be written, or `fill` failed.
    pub fn compact(
        self,
        head: Head,
        mut fill: impl FnMut(&mut Sink) -> Result<(), Error>,
    ) -> Result<Made, Error> {
        let mut sink = Sink {
            writer: EventWriter::new(self.handle()?, head).map_err(|e| failed(self.path, &e))?,
            path: self.path,
        };
        fill(&mut sink)?;
        let writer = sink.writer;
        let events = writer.events();
        writer.finish().map(drop).map_err(|e| failed(self.path, &e))?;
        self.keep(events)
    }
}

/// True for what is written to and not replaced: a device, a pipe, a socket, an open descriptor.
fn is_special(path: &Path) -> bool {
    let is_other = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    is_other || is_descriptor(path)
}

/// True for a name of a descriptor of this process, whatever it is open on.
fn is_descriptor(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    let streams = ["/dev/stdout", "/dev/stderr"].map(Path::new);
    streams.contains(&path) || folders.iter().any(|folder| path.starts_with(folder))
}

/// Takes the events of a compact trace that is being written.
pub struct Sink<'a> {
    writer: EventWriter<BufWriter<File>>,
    path: &'a Path,
}

impl Sink<'_> {
    /// Adds an event.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn event(&mut self, event: &Event) -> Result<(), Error> {
        self.writer.event(event).map_err(|e| failed(self.path, &e))
    }

    /// Names spaces.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn names(&mut self, names: Vec<(u32, String)>) -> Result<(), Error> {
        let name = |(space, name): (u32, String)| self.writer.name(space, &name);
        names.into_iter().try_for_each(name).map_err(|e| failed(self.path, &e))
    }
}

/// Words an error as the system does for the commonest kind.
fn plain(error: &io::Error) -> io::Error {
    const ENOENT: i32 = 2;
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::from_raw_os_error(ENOENT),
        kind => kind.into(),
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::Request(format!("{}: {error}", path.display()))
}

/// Writes the requests of a trace as a compact one, or as text: CSV with the columns `op` and
/// `page`. A compact trace keeps its times and spaces where it becomes another one.
///
/// # Errors
/// The trace cannot be read, or the file not be written.
pub fn convert(
    from: &Path,
    format: Option<Format>,
    view: View,
    text: bool,
    out: Output,
) -> Result<Made, Error> {
    let file = TraceFile::open(from)?;
    let mut reader = file.reader(format, view)?;
    if text {
        return as_text(&mut reader, out);
    }
    if reader.format() == Format::Compact {
        return again(from, None, out);
    }
    let page_shift = if view == View::Pages { PAGE_SHIFT } else { 0 };
    let head = Head { page_shift, ..Head::default() };
    out.compact(head, |sink| {
        let (mut block, mut run) = (Vec::new(), None);
        while reader.read_block(&mut block)? {
            for request in &block {
                joined(&mut run, request).map_or(Ok(()), |event| sink.event(&event))?;
            }
        }
        match run {
            Some(event) => sink.event(&event),
            None => Err(reader.no_requests().into()),
        }
    })
}

/// Adds a request to the run at hand, or begins another one and returns what is complete.
fn joined(run: &mut Option<Event>, request: &Request) -> Option<Event> {
    let operation = if request.write { Operation::Write } else { Operation::Read };
    let goes_on = |event: &&mut Event| {
        event.operation == operation
            && event.nr < RUN_MAX
            && event.page.checked_add(event.nr) == Some(request.page)
    };
    if let Some(event) = run.as_mut().filter(goes_on) {
        event.nr += 1;
        return None;
    }
    run.replace(Event { operation, page: request.page, nr: 1, ..Event::default() })
}

fn as_text(reader: &mut TraceReader, out: Output) -> Result<Made, Error> {
    let mut lines = out.handle()?;
    let (mut block, mut nr) = (Vec::new(), 0);
    let mut write = || -> Result<u64, Error> {
        let put = |line: io::Result<()>| line.map_err(|e| failed(out.path, &e));
        put(writeln!(lines, "op,page"))?;
        while reader.read_block(&mut block)? {
            for request in &block {
                let operation = if request.write { 'w' } else { 'r' };
                put(writeln!(lines, "{operation},{}", request.page))?;
            }
            nr += block.len() as u64;
        }
        put(lines.flush())?;
        Ok(nr)
    };
    match write()? {
        0 => Err(reader.no_requests().into()),
        nr => out.keep(nr),
    }
}

/// Writes a compact trace again, under a permutation if there is one.
fn again(from: &Path, key: Option<[u8; 32]>, out: Output) -> Result<Made, Error> {
    let mut reader = EventReader::open(from)?;
    let head = reader.head();
    let mut anonymizer = key.map(|key| Anonymizer::new(key, head));
    out.compact(head, |sink| {
        let (mut events, mut known) = (Vec::new(), Vec::new());
        while let Some(event) = reader.event()? {
            events.clear();
            match &mut anonymizer {
                Some(anonymizer) => anonymizer.event(&event, &mut events),
                None => {
                    let names = reader.names()?;
                    if names != known {
                        sink.names(names.clone())?;
                        known = names;
                    }
                    events.push(event);
                }
            }
            events.iter().try_for_each(|event| sink.event(event))?;
        }
        Ok(())
    })
}

/// Writes a compact trace with other page numbers, coarse times and no names. The key decides
/// which.
///
/// # Errors
/// The trace is no compact one, cannot be read, or the file not be written.
pub fn anonymize(from: &Path, key: [u8; 32], out: Output) -> Result<Made, Error> {
    if !EventReader::is_compact(from)? {
        let from = from.display();
        return Err(Error::Request(format!(
            "{from}: no compact trace: convert or import it first"
        )));
    }
    again(from, Some(key), out)
}

/// Writes what another program recorded as a compact trace.
///
/// # Errors
/// The recording cannot be read, or the file not be written.
pub fn import(from: &Path, source: &Source, out: Output) -> Result<Made, Error> {
    import_from(Importer::open(from, source)?, out)
}

/// Writes what an importer reads as a compact trace.
///
/// # Errors
/// The recording cannot be read, or the file not be written.
pub fn import_from(mut importer: Importer, out: Output) -> Result<Made, Error> {
    out.compact(importer.head(), |sink| {
        let mut found = Vec::new();
        while importer.read(&mut found)? {
            sink.names(importer.names())?;
            for (event, times) in &found {
                (0..*times).try_for_each(|_| sink.event(event))?;
            }
        }
        Ok(())
    })
}
