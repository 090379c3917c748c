//! dd (experiments E15): one task writes a file many times as large as memory, copies it and
//! deletes the copy.

use serde::Deserialize;

use crate::error::{WorkloadError, in_range};
use crate::op::{FileSpec, Layout, Op, TaskId};
use crate::pages::{CALL_BYTES, add_task, calls};
use crate::script::Script;
use crate::string_hash::{StringHash, access};

/// Calls handed out at once.
const BATCH: u64 = 32;
const SOURCE: u32 = 0;
const COPY: u32 = 1;
const SETUP: u8 = 1;

/// Describes a dd run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DdParams {
    /// Sets the size of the file, bytes.
    pub bytes: u64,
    /// Names the group it runs in by its path; empty: the root.
    pub group: String,
}

impl Default for DdParams {
    /// Eight times the memory of a machine with 7.5 GiB.
    fn default() -> Self {
        Self { bytes: 60 << 30, group: String::new() }
    }
}

impl DdParams {
    /// Returns the parameters with the file's size multiplied by `scale`.
    pub fn scaled(&self, scale: f64) -> Self {
        let bytes = ((self.bytes as f64 * scale).round() as u64).max(1);
        Self { bytes, ..self.clone() }
    }

    /// Checks the range of the file's size.
    ///
    /// # Errors
    /// Fails if a number is out of range; the error names its key.
    pub fn check(&self) -> Result<(), WorkloadError> {
        in_range("dd.bytes", self.bytes, 1, 1 << 44).map(drop)
    }
}

/// Holds the state of a dd run.
#[derive(Debug)]
pub struct Dd {
    params: DdParams,
    stage: Stage,
    done: u64,
    hash: StringHash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Write,
    Copy,
    Delete,
}

impl Dd {
    /// Creates a run that has not begun.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn new(params: &DdParams) -> Result<Self, WorkloadError> {
        params.check()?;
        let hash = StringHash::new(1);
        Ok(Self { params: params.clone(), stage: Stage::Write, done: 0, hash })
    }

    /// The next part of the file: its first byte and one past its last.
    fn part(&mut self) -> (u64, u64) {
        let from = self.done;
        self.done = self.params.bytes.min(from + BATCH * CALL_BYTES);
        self.hash.add(0, access(self.stage as u32, self.done, true));
        (from, self.done)
    }

    fn write(&mut self, out: &mut Vec<Op>) {
        out.extend((self.done == 0).then_some(Op::Truncate { file: SOURCE, len: 0 }));
        let (from, to) = self.part();
        calls(from, to, |off, len| out.push(Op::Write { file: SOURCE, off, len }));
        if to == self.params.bytes {
            (self.stage, self.done) = (Stage::Copy, 0);
            out.extend([Op::Truncate { file: COPY, len: 0 }, Op::Mark { phase: 1 }]);
            out.push(Op::End { class: SETUP });
        }
    }

    fn copy(&mut self, out: &mut Vec<Op>) {
        let (from, to) = self.part();
        calls(from, to, |off, len| {
            out.push(Op::Read { file: SOURCE, off, len });
            out.push(Op::Write { file: COPY, off, len });
        });
        if to == self.params.bytes {
            self.stage = Stage::Delete;
            out.push(Op::End { class: 0 });
        }
    }
}

impl Script for Dd {
    fn layout(&self) -> Layout {
        let mut layout = Layout {
            classes: ["copy", "setup"].map(str::to_owned).to_vec(),
            phases: ["write", "run"].map(str::to_owned).to_vec(),
            ..Layout::default()
        };
        add_task(&mut layout, 0, &self.params.group);
        let file = |name: &str| FileSpec { name: name.to_owned(), bytes: self.params.bytes };
        layout.files = ["source", "copy"].map(file).to_vec();
        layout
    }

    fn step(&mut self, _: TaskId, out: &mut Vec<Op>) {
        match self.stage {
            Stage::Write => self.write(out),
            Stage::Copy => self.copy(out),
            Stage::Delete => out.extend([Op::Truncate { file: COPY, len: 0 }, Op::Done]),
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> u64 {
        3 * self.params.bytes.div_ceil(CALL_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Scripted;
    use crate::script::tests::strings;

    #[test]
    fn dd_writes_copies_and_deletes() {
        let params = DdParams { bytes: 5_000_000, ..DdParams::default() };
        let mut workload = Scripted::new(Dd::new(&params).unwrap());
        let ops = &strings(&mut workload)[0];
        let bytes = |file: u32| {
            let len = |op: &Op| match *op {
                Op::Write { file: f, len, .. } if f == file => u64::from(len),
                _ => 0,
            };
            ops.iter().map(len).sum::<u64>()
        };
        assert_eq!((bytes(SOURCE), bytes(COPY)), (5_000_000, 5_000_000));
        let read = |op: &&Op| matches!(op, Op::Read { file: SOURCE, .. });
        assert_eq!(ops.iter().filter(read).count(), 153);
        assert_eq!(ops[ops.len() - 2], Op::Truncate { file: COPY, len: 0 });
    }

    #[test]
    fn wrong_numbers_are_named() {
        let error = Dd::new(&DdParams { bytes: 0, ..DdParams::default() }).unwrap_err();
        assert_eq!(error.to_string(), "dd.bytes = 0: must be from 1 to 17592186044416");
    }
}
