//! The camera: opened, it takes much memory at once, most of it for good until it is closed.

use super::{Android, PHOTO, SETUP};
use crate::op::{Op, TaskId};
use crate::pages::PAGE_BYTES;
use crate::ycsb::share;

/// Pages a thread takes at a time.
const BURST: u32 = 64;
/// Processor time of a burst, ns: 1.2 GB in 700 ms by 4 threads, half of it in the processor.
const BURST_NS: u64 = 300_000;

impl Android {
    /// A thread's part of the camera's buffers, memory and code.
    pub(super) fn open_camera(&self, task: TaskId, out: &mut Vec<Op>) {
        let thread = task - self.params.apps;
        if thread == 0 {
            out.push(Op::End { class: SETUP });
        }
        let sizes = [
            (self.params.camera_buffer_pages, true),
            (self.params.camera_pages / 2, true),
            (self.params.camera_file_pages, false),
        ];
        for (at, (pages, write)) in (0..).zip(sizes) {
            self.take(self.shared_region(at), pages, thread, write, out);
        }
    }

    /// A thread's part of a region, burst by burst.
    fn take(&self, region: u32, pages: u32, thread: u32, write: bool, out: &mut Vec<Op>) {
        let threads = self.params.camera_threads;
        // Mapping what is mapped already changes nothing.
        out.push(Op::Map { region });
        let first = (0..thread).map(|t| share(u64::from(pages), threads, t)).sum::<u64>() as u32;
        let end = first + share(u64::from(pages), threads, thread) as u32;
        for from in (first..end).step_by(BURST as usize) {
            let burst = from..(from + BURST).min(end);
            out.extend(burst.map(|page| Op::Touch { region, page, write }));
            out.push(Op::Compute { ns: BURST_NS });
        }
    }

    /// A photo is taken and written; then the camera is closed.
    pub(super) fn take_photo(&self, out: &mut Vec<Op>) {
        let region = self.shared_region(1);
        let pages = self.params.camera_pages / 2..self.params.camera_pages;
        out.extend(pages.map(|page| Op::Touch { region, page, write: true }));
        let len = self.params.photo_pages * PAGE_BYTES as u32;
        out.extend((len > 0).then_some(Op::Write { file: PHOTO, off: 0, len }));
        out.push(Op::Think { ns: self.params.second_ns });
        out.extend((0..3).map(|at| Op::Unmap { region: self.shared_region(at) }));
        out.push(Op::End { class: SETUP });
    }
}
