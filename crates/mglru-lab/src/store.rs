//! The records of one experiment on disk. Each finished run is appended and flushed at once, so a
//! kill or a full disk costs at most the run in flight; at the end the file is put in run order.
//! A torn last line is dropped and its run repeated. Records of another plan or version are moved
//! to `records.other.jsonl`, never deleted.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::record::{Record, VERSION};
use crate::spec::{Experiment, RunSpec};
use mglru_error::Error;

const RECORDS: &str = "records.jsonl";
const OTHER: &str = "records.other.jsonl";
const TIMING: &str = "timing.jsonl";
const LOCK: &str = "lock";

/// Returns where the files of a run begin that a backend keeps in a folder of records.
pub fn files(dir: &Path, run: &str) -> PathBuf {
    dir.join("runs").join(run)
}

/// Does a store's work on files; a test puts a disk that fills up in its place.
pub trait Disk: Write + Send {
    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// As the file system says.
    fn cut(&mut self, len: u64) -> std::io::Result<()>;
}

impl Disk for File {
    fn cut(&mut self, len: u64) -> std::io::Result<()> {
        self.set_len(len)
    }
}

/// Holds an open folder of records.
pub struct Store {
    dir: PathBuf,
    records: Vec<Record>,
    file: Box<dyn Disk>,
    len: u64,
    #[cfg_attr(not(test), expect(dead_code, reason = "held as long as the store is open"))]
    lock: Lock,
}

/// A folder's lock, which the system drops with the process.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that another thread is starting has a copy of the descriptor until it runs its
        // program: closing ours would leave the folder locked for that long.
        let _ = self.0.unlock();
    }
}

/// Holds the records found in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Counts records kept.
    pub kept: usize,
    /// Counts lines that were cut short or cannot be read, dropped.
    pub torn: usize,
    /// Counts records of another plan or version, moved aside.
    pub other: usize,
}

impl Store {
    /// Opens or makes `dir`, keeping the records that belong to the experiment.
    ///
    /// # Errors
    /// Names the file that could not be read or written, or says that another process is writing
    /// the folder.
    pub fn open(dir: &Path, experiment: &Experiment) -> Result<(Self, Found), Error> {
        fs::create_dir_all(dir).map_err(|e| Error::io(dir, e))?;
        let lock = lock(dir)?;
        let path = dir.join(RECORDS);
        let (records, other, torn) = read(&path, &experiment.hash)?;
        let found = Found { kept: records.len(), torn, other: other.len() };
        if !other.is_empty() {
            append(&dir.join(OTHER), &other.concat())?;
        }
        if torn + other.len() > 0 {
            replace(&path, &lines(&records))?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(|e| Error::io(&path, e))?;
        let len = file.metadata().map_err(|e| Error::io(&path, e))?.len();
        let file = Box::new(file);
        Ok((Self { dir: dir.to_path_buf(), records, file, len, lock }, found))
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lists runs of the experiment that have no record yet, or whose trace events are wanted, in
    /// run order.
    pub fn missing(&self, experiment: &Experiment) -> Vec<RunSpec> {
        let have: std::collections::BTreeSet<_> = self.records.iter().map(Record::key).collect();
        let is_missing = |run: &&RunSpec| run.events.is_some() || !have.contains(&key(run));
        experiment.runs.iter().filter(is_missing).cloned().collect()
    }

    /// Tells whether a run has its record.
    pub fn has(&self, run: &RunSpec) -> bool {
        self.records.iter().any(|record| record.key() == key(run))
    }

    /// Appends a finished run. After an error the file holds whole lines only.
    ///
    /// # Errors
    /// When the line cannot be written, for instance because the disk is full.
    pub fn push(&mut self, record: Record) -> Result<(), Error> {
        let line = record.line();
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        if let Err(e) = written {
            // The write's own error is the one to report; a torn line is dropped on resume.
            let _ = self.file.cut(self.len);
            return Err(Error::io(&self.dir.join(RECORDS), e));
        }
        self.len += line.len() as u64;
        self.records.push(record);
        Ok(())
    }

    /// Appends a line of wall-clock facts.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn push_timing(&self, run: &RunSpec, wall_s: f64) -> Result<(), Error> {
        let line = serde_json::json!({
            "run": run.id, "variant": run.variant.name, "seed": run.seed,
            "point": run.point.as_ref(), "wall_s": (wall_s * 1e6).round() / 1e6,
        });
        append(&self.dir.join(TIMING), &format!("{line}\n"))
    }

    /// Puts the file in run order (records outside the selection last) and returns the selected
    /// records in that order.
    ///
    /// # Errors
    /// When the file cannot be rewritten; it is then as it was.
    pub fn finish(&mut self, experiment: &Experiment) -> Result<Vec<Record>, Error> {
        let order: BTreeMap<_, _> = experiment.runs.iter().map(key).zip(0..).collect();
        let before: Vec<Record> = self.records.clone();
        let place = |r: &Record| order.get(&r.key()).copied().unwrap_or(usize::MAX);
        self.records.sort_by_cached_key(|r| (place(r), r.variant.clone(), r.seed));
        if before != self.records {
            replace(&self.dir.join(RECORDS), &lines(&self.records))?;
        }
        Ok(self.records.iter().filter(|r| order.contains_key(&r.key())).cloned().collect())
    }
}

/// Reads every record under a path: a file of records or a folder that holds one. A torn last line
/// is left out.
///
/// # Errors
/// Names file and line of anything else that is no record.
pub fn load(path: &Path) -> Result<Vec<Record>, Error> {
    let file = if path.is_dir() { path.join(RECORDS) } else { path.to_path_buf() };
    let text = fs::read_to_string(&file).map_err(|e| Error::io(&file, e))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |(at, line): (usize, &str)| {
        let place = || format!("{}:{}", file.display(), at + 1);
        Record::parse(line).map_err(|e| Error::Request(format!("{}: {e}", place())))
    };
    let records: Vec<Record> =
        whole.lines().enumerate().map(parse).collect::<Result<_, Error>>()?;
    match records.is_empty() {
        true => Err(Error::Request(format!("{}: holds no record", file.display()))),
        false => Ok(records),
    }
}

/// Says whether a folder holds records of the experiment's plan that its runs do not give.
pub fn has_more(dir: &Path, experiment: &Experiment) -> bool {
    let wanted: std::collections::BTreeSet<_> = experiment.runs.iter().map(key).collect();
    let is_more = |r: &Record| {
        r.plan_hash == experiment.hash && r.mglru == VERSION && !wanted.contains(&r.key())
    };
    load(dir).is_ok_and(|records| records.iter().any(is_more))
}

fn lock(dir: &Path) -> Result<Lock, Error> {
    let path = dir.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|e| Error::io(&path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => {
            let problem = "another mglru is writing this folder; wait for it or take another --out";
            Err(Error::Request(format!("{}: {problem}", dir.display())))
        }
        Err(TryLockError::Error(e)) => Err(Error::io(&path, e)),
    }
}

fn key(run: &RunSpec) -> (&str, u64, &str) {
    (&run.variant.name, run.seed, &run.point)
}

type Sorted = (Vec<Record>, Vec<String>, usize);

fn read(path: &Path, hash: &str) -> Result<Sorted, Error> {
    let (mut kept, mut other, mut torn) = (Vec::new(), Vec::new(), 0);
    let bytes = match fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((kept, other, torn)),
        read => read.map_err(|e| Error::io(path, e))?,
    };
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let whole = line.ends_with(b"\n").then(|| std::str::from_utf8(line).ok()).flatten();
        match whole.and_then(|text| Some((text, Record::parse(text).ok()?))) {
            None => torn += 1,
            Some((_, r)) if r.plan_hash == hash && r.mglru == VERSION => kept.push(r),
            Some((text, _)) => other.push(text.to_string()),
        }
    }
    Ok((kept, other, torn))
}

fn lines(records: &[Record]) -> String {
    records.iter().map(Record::line).collect()
}

fn append(path: &Path, text: &str) -> Result<(), Error> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut f| f.write_all(text.as_bytes())).map_err(|e| Error::io(path, e))
}

/// Writes beside the file first, so that a failure leaves the old one whole.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    // Another process may be replacing the same file.
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|e| {
        let _ = fs::remove_file(&beside);
        Error::io(path, e)
    })
}

#[cfg(test)]
mod tests;
