//! PostMark: a mail server's many files, created, read, appended to and deleted (experiments E13).
//!
//! All files are created first, then transactions follow, each of which reads or appends to a
//! random file and creates or deletes one; at the end all that remain are deleted. Sizes are
//! uniform, choices too: there is no locality.
//!
//! One process on one disk. Reads and writes go through the C library in calls of 4 KiB; here an
//! operation carries several of them, which windows of readahead and the page cache see alike.
//! Directories, inodes and the journal are not modelled.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{FileSpec, Layout, Op, TaskId};
use crate::pages::{CALL_BYTES, add_task, calls};
use crate::rng::Rng;
use crate::script::Script;
use crate::string_hash::{StringHash, access};

const CLASSES: [&str; 3] = ["transaction", "setup", "delete"];
const SETUP: u8 = 1;
const DELETE: u8 = 2;

/// Describes a PostMark run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PostmarkParams {
    /// Counts the files at the start.
    pub files: u32,
    /// Counts the transactions.
    pub transactions: u32,
    /// Sets the size of the smallest file, bytes.
    pub min_bytes: u64,
    /// Sets the size of the largest file, bytes.
    pub max_bytes: u64,
    /// Names the group it runs in by its path; empty: the root.
    pub group: String,
}

impl Default for PostmarkParams {
    /// mmtests on a machine with 7.5 GiB.
    fn default() -> Self {
        Self {
            files: 6_124,
            transactions: 15_000,
            min_bytes: 3_096,
            max_bytes: 5_242_880,
            group: String::new(),
        }
    }
}

impl PostmarkParams {
    /// Returns the parameters with sizes multiplied; files and transactions stay.
    pub fn scaled(&self, scale: f64) -> Self {
        let times = |n: u64| ((n as f64 * scale).round() as u64).max(1);
        let (min_bytes, max_bytes) = (times(self.min_bytes), times(self.max_bytes));
        Self { min_bytes, max_bytes, ..self.clone() }
    }

    /// Checks every number's range.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("postmark.files", self.files, 1, 1 << 24)?;
        in_range("postmark.transactions", self.transactions, 1, 1 << 24)?;
        in_range("postmark.max_bytes", self.max_bytes, 1, 1 << 40)?;
        in_range("postmark.min_bytes", self.min_bytes, 1, self.max_bytes)?;
        Ok(())
    }

    /// Files that can exist if every transaction creates one.
    fn most_files(&self) -> u32 {
        self.files + self.transactions
    }
}

/// Holds the state of a PostMark run.
#[derive(Debug)]
pub struct Postmark {
    params: PostmarkParams,
    rng: Rng,
    /// Files that exist, and the size of each number.
    live: Vec<u32>,
    sizes: Vec<u64>,
    /// Numbers not in use, the next last.
    free: Vec<u32>,
    created: u32,
    transactions: u32,
    stage: Stage,
    hash: StringHash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Create,
    Transactions,
    Delete,
}

impl Postmark {
    /// Creates a run that has not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &PostmarkParams, seed: u64) -> Result<Self, WorkloadError> {
        params.check()?;
        Ok(Self {
            rng: Rng::new(seed, 0),
            live: Vec::new(),
            sizes: vec![0; params.most_files() as usize],
            free: (0..params.most_files()).rev().collect(),
            created: 0,
            transactions: 0,
            stage: Stage::Create,
            hash: StringHash::new(1),
            params: params.clone(),
        })
    }

    fn create(&mut self, out: &mut Vec<Op>) {
        let PostmarkParams { min_bytes, max_bytes, .. } = self.params;
        let file = self.free.pop().expect("there is a number for every file that can exist");
        let size = min_bytes + self.rng.below(max_bytes - min_bytes + 1);
        out.push(Op::Truncate { file, len: 0 });
        self.live.push(file);
        self.sizes[file as usize] = 0;
        self.append(file, size, out);
    }

    fn append(&mut self, file: u32, bytes: u64, out: &mut Vec<Op>) {
        let size = &mut self.sizes[file as usize];
        self.hash.add(0, access(file, *size + bytes, true));
        calls(*size, *size + bytes, |off, len| out.push(Op::Write { file, off, len }));
        *size += bytes;
    }

    fn read(&mut self, file: u32, out: &mut Vec<Op>) {
        self.hash.add(0, access(file, self.sizes[file as usize], false));
        calls(0, self.sizes[file as usize], |off, len| out.push(Op::Read { file, off, len }));
    }

    fn choose(&mut self) -> usize {
        self.rng.below(self.live.len() as u64) as usize
    }

    fn delete(&mut self, at: usize, out: &mut Vec<Op>) {
        let file = self.live.swap_remove(at);
        self.free.push(file);
        out.push(Op::Truncate { file, len: 0 });
    }

    fn transact(&mut self, out: &mut Vec<Op>) {
        if !self.live.is_empty() {
            let at = self.choose();
            let file = self.live[at];
            match self.rng.below(2) {
                0 => self.read(file, out),
                _ => {
                    let room = self.params.max_bytes - self.sizes[file as usize];
                    let bytes = self.rng.below(room + 1);
                    self.append(file, bytes, out);
                }
            }
        }
        match self.rng.below(2) {
            1 if !self.live.is_empty() => {
                let at = self.choose();
                self.delete(at, out);
            }
            _ => self.create(out),
        }
    }
}

impl Script for Postmark {
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            classes: CLASSES.map(str::to_owned).to_vec(),
            phases: ["create", "run", "delete"].map(str::to_owned).to_vec(),
            ..Layout::default()
        };
        add_task(&mut layout, 0, &self.params.group);
        // Places on the disk are as large as a file can become; a file begins empty.
        let file = |n| FileSpec { name: format!("file{n}"), bytes: self.params.max_bytes };
        layout.files = (0..self.params.most_files()).map(file).collect();
        layout
    }

    fn step(&mut self, _: TaskId, out: &mut Vec<Op>) {
        match self.stage {
            Stage::Create if self.created < self.params.files => {
                self.created += 1;
                self.create(out);
                out.push(Op::End { class: SETUP });
            }
            Stage::Create => {
                self.stage = Stage::Transactions;
                out.push(Op::Mark { phase: 1 });
            }
            Stage::Transactions if self.transactions < self.params.transactions => {
                self.transactions += 1;
                self.transact(out);
                out.push(Op::End { class: 0 });
            }
            Stage::Transactions => {
                self.stage = Stage::Delete;
                out.push(Op::Mark { phase: 2 });
            }
            Stage::Delete if !self.live.is_empty() => {
                self.delete(self.live.len() - 1, out);
                out.push(Op::End { class: DELETE });
            }
            Stage::Delete => out.push(Op::Done),
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> u64 {
        let calls = self.params.max_bytes / 2 / CALL_BYTES + 1;
        (u64::from(self.params.files) + u64::from(self.params.transactions)) * calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Workload;
    use crate::script::Scripted;
    use crate::script::tests::{ends, strings};

    fn small() -> PostmarkParams {
        PostmarkParams { files: 500, transactions: 2_000, ..Default::default() }.scaled(1.0 / 64.0)
    }

    fn run(seed: u64) -> (Vec<Op>, u64) {
        let mut workload = Scripted::new(Postmark::new(&small(), seed).unwrap());
        let tasks = strings(&mut workload);
        assert_eq!((ends(&tasks, 0), ends(&tasks, SETUP)), (2_000, 500));
        (tasks[0].clone(), workload.string_hash())
    }

    /// Bytes of each file as its operations leave them; whatever is read must exist.
    #[test]
    fn files_hold_what_was_written_and_are_all_deleted() {
        let mut sizes = vec![0; small().most_files() as usize];
        let (mut read, mut written) = (0, 0);
        for op in run(1).0 {
            match op {
                Op::Truncate { file, .. } => sizes[file as usize] = 0,
                Op::Write { file, off, len } => {
                    assert_eq!(off, sizes[file as usize], "files grow at their end");
                    sizes[file as usize] += u64::from(len);
                    written += u64::from(len);
                }
                Op::Read { file, off, len } => {
                    assert!(off + u64::from(len) <= sizes[file as usize]);
                    read += u64::from(len);
                }
                _ => {}
            }
        }
        assert!(sizes.iter().all(|&size| size == 0));
        // A file is 41 KiB in the mean: 1,000 are read, 1,500 created, 1,000 appended half of
        // what there is room for.
        let mean = small().max_bytes / 2;
        assert!(read.abs_diff(1_000 * mean * 11 / 10) < 1_000 * mean * 15 / 100, "{read}");
        assert!(written.abs_diff(1_950 * mean) < 1_950 * mean / 10, "{written}");
    }

    #[test]
    fn seeds_differ_and_repeat() {
        assert_eq!(run(1).1, run(1).1);
        assert_ne!(run(1).1, run(2).1);
    }

    #[test]
    fn wrong_numbers_are_named() {
        let params = PostmarkParams { min_bytes: 10, max_bytes: 9, ..small() };
        let error = Postmark::new(&params, 1).unwrap_err().to_string();
        assert_eq!(error, "postmark.min_bytes = 10: must be from 1 to 9");
    }
}
