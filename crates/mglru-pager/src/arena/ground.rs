//! The memory of an arena: a memfd with a view of it, or a reserve of private memory with staging.

use std::io;
use std::sync::Arc;

use crate::frames::Frames;
use crate::sys::PAGE;
use crate::sys::heap::Staging;
use crate::sys::memory::{Memory, View};
use crate::sys::uffd::Uffd;

/// The memory of an arena, and where the program sees it.
pub(super) struct Ground {
    pub(super) memory: Arc<dyn Frames>,
    pub(super) staging: Option<Arc<Staging>>,
    pub(super) view: View,
}

impl Ground {
    /// A memfd, whose first entries are protected (invariant I).
    pub(super) fn shared(
        len: usize,
        held: usize,
        over: Option<usize>,
        uffd: &Uffd,
    ) -> io::Result<Self> {
        let memory = Memory::new(len as u64)?;
        let view = match over {
            // SAFETY: whoever wants it there gave up what is there.
            #[allow(unsafe_code)]
            Some(start) => unsafe { View::over(start, &memory, len) },
            None => View::new(&memory, len),
        }?;
        uffd.register(view.span())?;
        if held > 0 {
            uffd.protect(view.pages(0, (held / PAGE) as u32))?;
        }
        Ok(Self { memory: Arc::new(memory), staging: None, view })
    }

    /// A reserve; what is opened of it is registered then.
    pub(super) fn private(len: usize) -> io::Result<Self> {
        let staging = Arc::new(Staging::new(len)?);
        Ok(Self { memory: staging.clone(), staging: Some(staging), view: View::reserved(len)? })
    }
}
