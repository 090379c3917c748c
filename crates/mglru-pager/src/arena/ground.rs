//! The memory of an arena: a memfd with a view of it, or a reserve of private memory with staging.

use std::io;
use std::sync::Arc;

use super::{Backing, Place};
use crate::frames::Frames;
use crate::sys::PAGE;
use crate::sys::heap::Staging;
use crate::sys::memory::{Memory, View};
use crate::sys::uffd::Uffd;

/// The memory of an arena, where the program sees it, and the source of its faults. Nothing of it
/// is replaced while the arena lives.
pub(super) struct Ground {
    pub(super) memory: Arc<dyn Frames>,
    pub(super) staging: Option<Arc<Staging>>,
    /// Closed before the view is unmapped: of that nobody reads any more.
    pub(super) uffd: Uffd,
    pub(super) view: View,
}

impl Ground {
    /// The memory of `len` bytes that suits the backing. The entries of the first `held` bytes are
    /// protected from the start (invariant I).
    pub(super) fn new(
        backing: &Backing,
        place: Place,
        len: usize,
        held: usize,
        uffd: Uffd,
    ) -> io::Result<Self> {
        match backing {
            Backing::Heap(_) => Self::private(len, uffd),
            _ => Self::shared(len, held, place, uffd),
        }
    }

    /// A memfd.
    fn shared(len: usize, held: usize, place: Place, uffd: Uffd) -> io::Result<Self> {
        let memory = Memory::new(len as u64)?;
        let view = match place.0 {
            // SAFETY: `Place::over` was promised that nobody uses what is there.
            #[allow(unsafe_code)]
            Some(start) => unsafe { View::over(start, &memory, len) },
            None => View::new(&memory, len),
        }?;
        view.register(&uffd, view.span())?;
        if held > 0 {
            uffd.protect(view.pages(0, (held / PAGE) as u32))?;
        }
        Ok(Self { memory: Arc::new(memory), staging: None, uffd, view })
    }

    /// A reserve; what is opened of it is registered then.
    fn private(len: usize, uffd: Uffd) -> io::Result<Self> {
        let staging = Arc::new(Staging::new(len)?);
        let view = View::reserved(len)?;
        Ok(Self { memory: staging.clone(), staging: Some(staging), uffd, view })
    }
}
