//! fs-mark (experiments E14): threads write new files from end to end, an iteration after the
//! other; nothing is synced, read or deleted.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{FileSpec, Layout, Op, TaskId};
use crate::pages::{CALL_BYTES, add_task, calls};
use crate::script::Script;
use crate::string_hash::{StringHash, access};
use crate::ycsb::share;

/// Calls handed out at once.
const BATCH: u64 = 32;

/// Describes an fs-mark run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FsmarkParams {
    /// Counts the threads.
    pub threads: u32,
    /// Counts the iterations.
    pub iterations: u32,
    /// Counts the files of an iteration, of all threads together.
    pub files: u32,
    /// Sets the size of a file, bytes.
    pub file_bytes: u64,
    /// Names the group it runs in by its path; empty: the root.
    pub group: String,
}

impl Default for FsmarkParams {
    /// mmtests on a machine with 7.5 GiB and four processors.
    fn default() -> Self {
        Self { threads: 16, iterations: 15, files: 256, file_bytes: 30 << 20, group: String::new() }
    }
}

impl FsmarkParams {
    /// Returns the parameters with the files' size multiplied by `scale`.
    pub fn scaled(&self, scale: f64) -> Self {
        let file_bytes = ((self.file_bytes as f64 * scale).round() as u64).max(1);
        Self { file_bytes, ..self.clone() }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("fsmark.threads", self.threads, 1, 4096)?;
        in_range("fsmark.iterations", self.iterations, 1, 1 << 16)?;
        in_range("fsmark.files", self.files, 1, 1 << 16)?;
        in_range("fsmark.file_bytes", self.file_bytes, 1, 1 << 40)?;
        let files = u64::from(self.iterations) * u64::from(self.files);
        in_range("fsmark.iterations × files", files, 1, 1 << 24)?;
        Ok(())
    }

    fn all_files(&self) -> u32 {
        self.iterations * self.files
    }
}

/// Holds the state of an fs-mark run.
#[derive(Debug)]
pub struct Fsmark {
    params: FsmarkParams,
    /// Per thread: files done, and bytes of the one under way.
    done: Vec<(u32, u64)>,
    hash: StringHash,
}

impl Fsmark {
    /// Creates a run that has not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &FsmarkParams) -> Result<Self, WorkloadError> {
        params.check()?;
        Ok(Self {
            done: vec![(0, 0); params.threads as usize],
            hash: StringHash::new(params.threads as usize),
            params: params.clone(),
        })
    }
}

impl Script for Fsmark {
    fn layout(&self) -> Layout {
        let mut layout = Layout { classes: vec!["file".to_owned()], ..Layout::default() };
        (0..self.params.threads).for_each(|_| add_task(&mut layout, 0, &self.params.group));
        let file = |n| FileSpec { name: format!("file{n}"), bytes: self.params.file_bytes };
        layout.files = (0..self.params.all_files()).map(file).collect();
        layout
    }

    fn step(&mut self, t: TaskId, out: &mut Vec<Op>) {
        let (files, off) = self.done[t as usize];
        let all = u64::from(self.params.all_files());
        if u64::from(files) == share(all, self.params.threads, t) {
            return out.push(Op::Done);
        }
        let file = files * self.params.threads + t;
        out.extend((off == 0).then_some(Op::Truncate { file, len: 0 }));
        let end = self.params.file_bytes.min(off + BATCH * CALL_BYTES);
        calls(off, end, |off, len| out.push(Op::Write { file, off, len }));
        self.done[t as usize] = (files, end);
        if end == self.params.file_bytes {
            self.hash.add(t, access(file, end, true));
            self.done[t as usize] = (files + 1, 0);
            out.push(Op::End { class: 0 });
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> u64 {
        u64::from(self.params.all_files()) * self.params.file_bytes.div_ceil(CALL_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Scripted;
    use crate::script::tests::{ends, strings};

    #[test]
    fn every_file_is_written_once_from_end_to_end() {
        let params = FsmarkParams { threads: 3, iterations: 2, files: 10, ..Default::default() };
        let params = FsmarkParams { file_bytes: 3_000_000, ..params };
        let mut workload = Scripted::new(Fsmark::new(&params).unwrap());
        let tasks = strings(&mut workload);
        assert_eq!(ends(&tasks, 0), 20);
        let mut sizes = [None; 20];
        for op in tasks.iter().flatten() {
            match *op {
                Op::Truncate { file, len: 0 } => {
                    assert_eq!(sizes[file as usize].replace(0), None);
                }
                Op::Write { file, off, len } => {
                    assert_eq!(sizes[file as usize], Some(off));
                    sizes[file as usize] = Some(off + u64::from(len));
                }
                _ => {}
            }
        }
        assert_eq!(sizes, [Some(3_000_000); 20]);
    }

    #[test]
    fn wrong_numbers_are_named() {
        let error = Fsmark::new(&FsmarkParams { threads: 0, ..Default::default() });
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "fsmark.threads = 0: must be from 1 to 4096");
    }
}
