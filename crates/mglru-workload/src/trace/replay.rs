//! A trace as a workload: one task of one group asks for the pages of one file, by `pread` and
//! `pwrite` or through a shared mapping.
//!
//! Opening reads the trace once: its counts size the file, and a damaged trace is refused before
//! the run. The run reads it again as a stream.

use super::dense::{Numbering, Summary};
use super::error::TraceError;
use super::format::{Format, trace_name};
use super::reader::TraceReader;
use super::record::{PAGE_SHIFT, Request, View};
use super::source::TraceFile;
use crate::op::{
    FileSpec, GroupSpec, Layout, Op, RegionKind, RegionSpec, TaskId, TaskSpec, Workload,
};
use crate::string_hash::{StringHash, access};

const PAGE_BYTES: u32 = 1 << PAGE_SHIFT;
const CLASSES: [&str; 2] = ["read", "write"];

/// Tells how the task reaches its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads one page at a time through a file descriptor.
    #[default]
    Pread,
    /// Loads and stores in a shared mapping of the file.
    Mmap,
}

/// Describes a trace and how to replay it.
#[derive(Clone, Debug)]
pub struct TraceSpec {
    /// Names the trace.
    pub file: TraceFile,
    /// Names its format; taken from name or content where absent.
    pub format: Option<Format>,
    /// Chooses the unit that counts as a request; [`View::Pages`] for page caches.
    pub view: View,
    /// Chooses how pages are reached.
    pub access: Access,
    /// Lays pages in the file in the order of their first appearance, without holes. Otherwise
    /// they lie at their own numbers.
    pub dense: bool,
    /// Names the group of the task, such as `/trace`.
    pub group: String,
}

/// Replays a trace as a [`Workload`].
pub struct TraceWorkload {
    spec: TraceSpec,
    summary: Summary,
    pages: u64,
    reader: TraceReader,
    numbering: Numbering,
    block: Vec<Request>,
    at: usize,
    served: u64,
    ending: Option<u8>,
    hash: StringHash,
    failure: Option<TraceError>,
}

impl TraceWorkload {
    /// Reads the trace once for its counts and starts again for the run.
    ///
    /// # Errors
    /// The trace is missing, truncated, corrupt or empty, or its pages do not fit into a file
    /// (2^51 pages) or, mapped, into a region (2^32 - 1 pages).
    pub fn open(spec: TraceSpec) -> Result<Self, TraceError> {
        let reader = || spec.file.reader(spec.format, spec.view);
        let summary = Summary::of(reader()?)?;
        let last = if spec.dense { u64::from(summary.unique) - 1 } else { summary.highest };
        let limit = match spec.access {
            Access::Pread => 1 << 51,
            Access::Mmap => u64::from(u32::MAX),
        };
        if last >= limit {
            let what = "pages in one file (dense = true leaves no holes)";
            return Err(TraceError::too_large(spec.file.path(), what, limit));
        }
        Ok(TraceWorkload {
            reader: reader()?,
            spec,
            summary,
            pages: last + 1,
            numbering: Numbering::new(),
            block: Vec::new(),
            at: 0,
            served: 0,
            ending: None,
            hash: StringHash::new(1),
            failure: None,
        })
    }

    /// Counts of the trace.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Tells why the trace ended early, if it did: the file changed after it was opened. The runner
    /// must look at it when the run is over and discard the run.
    pub fn failure(&self) -> Option<&TraceError> {
        self.failure.as_ref()
    }

    fn next_request(&mut self) -> Result<Option<Request>, TraceError> {
        if self.at == self.block.len() {
            self.at = 0;
            self.reader.read_block(&mut self.block)?;
        }
        let Some(&request) = self.block.get(self.at) else {
            return if self.served == self.summary.requests {
                Ok(None)
            } else {
                Err(self.changed())
            };
        };
        let page = self.place(request.page).ok_or_else(|| self.changed())?;
        self.at += 1;
        self.served += 1;
        Ok(Some(Request { page, ..request }))
    }

    /// Page of the file that a page of the trace lies in; `None` if the file has no such page.
    fn place(&mut self, page: u64) -> Option<u64> {
        let place = match self.spec.dense {
            true => self.numbering.number(page).ok()?.into(),
            false => page,
        };
        (place < self.pages).then_some(place)
    }

    fn changed(&self) -> TraceError {
        TraceError::Changed {
            path: self.spec.file.path().to_path_buf(),
            at: self.served,
            expected: self.summary.requests,
        }
    }

    fn operation(&self, request: Request) -> Op {
        let off = request.page << PAGE_SHIFT;
        match (self.spec.access, request.write) {
            (Access::Mmap, write) => Op::Touch { region: 0, page: request.page as u32, write },
            (Access::Pread, false) => Op::Read { file: 0, off, len: PAGE_BYTES },
            (Access::Pread, true) => Op::Write { file: 0, off, len: PAGE_BYTES },
        }
    }

    fn region(&self) -> RegionSpec {
        let file = RegionKind::File { file: 0, first_page: 0 };
        RegionSpec::plain(0, file, self.pages as u32)
    }
}

impl Workload for TraceWorkload {
    fn layout(&self) -> Layout {
        let mapped = self.spec.access == Access::Mmap;
        Layout {
            groups: vec![GroupSpec { name: self.spec.group.clone(), parent: None }],
            files: vec![FileSpec {
                name: trace_name(self.spec.file.path()),
                bytes: self.pages << PAGE_SHIFT,
            }],
            regions: mapped.then(|| self.region()).into_iter().collect(),
            tasks: vec![TaskSpec { mm: 0, group: Some(0), node: None, background: false }],
            classes: CLASSES.map(String::from).to_vec(),
            ..Layout::default()
        }
    }

    fn next(&mut self, task: TaskId) -> Op {
        if let Some(class) = self.ending.take() {
            return Op::End { class };
        }
        match self.next_request() {
            Ok(Some(request)) => {
                self.hash.add(task, access(0, request.page, request.write));
                self.ending = Some(request.write.into());
                self.operation(request)
            }
            Ok(None) => Op::Done,
            Err(failure) => {
                self.failure = Some(failure);
                Op::Done
            }
        }
    }

    fn string_hash(&self) -> u64 {
        self.hash.finish()
    }

    fn total_ops(&self) -> Option<u64> {
        Some(self.summary.requests)
    }
}
