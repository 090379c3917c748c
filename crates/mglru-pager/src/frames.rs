//! The two engines that hold resident pages: a memfd, whose pages are taken away by punching
//! holes, and private memory, whose pages are moved to staging first.
//!
//! The memfd can be seen through several views and sampled without a fault; private memory keeps
//! its meaning across a fork and refuses to give up a page that a device or a child holds.

use std::io;

use crate::sys::PAGE;
use crate::sys::heap::Staging;
use crate::sys::memory::Memory;
use crate::sys::uffd::Span;

/// Holds an arena's resident pages. Offsets are bytes from the arena's start; the caller
/// holds the locks of the pages, and no store reaches them: they are protected or staged.
pub trait Frames: Send + Sync {
    /// Copies resident pages.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;

    /// Makes pages resident without mapping them, if it can.
    fn fill(&self, offset: u64, content: &[u8]) -> io::Result<()>;

    /// It would have to wait to do that.
    fn is_changing(&self) -> bool;

    /// Gives pages back to the system.
    fn release(&self, span: Span) -> io::Result<()>;

    /// Bytes that are resident, as the kernel counts them, if it does.
    fn resident(&self) -> io::Result<u64>;
}

impl Frames for Memory {
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read(offset, out)
    }

    fn fill(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        self.write(offset, content)
    }

    fn is_changing(&self) -> bool {
        self.is_changing()
    }

    fn release(&self, span: Span) -> io::Result<()> {
        self.punch(span)
    }

    fn resident(&self) -> io::Result<u64> {
        self.resident()
    }
}

impl Frames for Staging {
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let pages = out.chunks_mut(PAGE).zip(0..);
        pages.for_each(|(page, nth)| self.read(offset + nth * PAGE as u64, page));
        Ok(())
    }

    /// An unmapped page would only be staged: nothing is gained.
    fn fill(&self, _offset: u64, _content: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_changing(&self) -> bool {
        false
    }

    fn release(&self, span: Span) -> io::Result<()> {
        self.release(span)
    }

    fn resident(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
