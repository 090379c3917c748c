//! Stores that change behind a mapping's back: a program writes to a file that it has mapped.
//!
//! Meanwhile nothing of the range is written back, or a snapshot from before could land on what the
//! program wrote. Afterwards what is resident of it is dropped, but for pages that were stored to
//! meanwhile and changed in part: those take over what changed and stay dirty.

use std::ops::Range;

use super::Policy;
use super::attach::lock;
use super::evict::unlock;
use crate::arena::{Arena, Backing};
use crate::error::PagerError;
use crate::pages::Presence;
use crate::sys::PAGE;

impl Policy {
    /// Nothing of these pages is written back from when this returns until [`Self::changed`].
    pub(crate) fn hold(&mut self, id: u32, pages: Range<u32>) {
        self.world.held.push((id, pages));
        self.wait_for_writes(id);
    }

    /// Lets go of held pages; loads see that these bytes changed in the store.
    ///
    /// # Errors
    /// A page could not be given back, or what changed could not be read.
    pub(crate) fn changed(
        &mut self,
        id: u32,
        pages: Range<u32>,
        bytes: Range<usize>,
    ) -> Result<(), PagerError> {
        let held = self.world.held.iter().position(|held| *held == (id, pages.clone()));
        self.world.held.swap_remove(held.expect("the pages are held"));
        let arena = self.world.attached(id).arena.clone();
        for page in arena.filled_pages(pages) {
            let start = page as usize * PAGE;
            let clip = |at: usize| at.clamp(start, start + PAGE) - start;
            let within = clip(bytes.start)..clip(bytes.end);
            if !within.is_empty() {
                self.take_over(&arena, page, within)?;
            }
        }
        Ok(())
    }

    fn take_over(
        &mut self,
        arena: &Arena,
        page: u32,
        within: Range<usize>,
    ) -> Result<(), PagerError> {
        let presence = lock(arena, page);
        if presence != Presence::Dirty || within.len() == PAGE {
            return self.discard_locked(arena, page, presence);
        }
        let Backing::Store(store) = arena.backing() else { unreachable!("only stores change") };
        let (offset, buffer) = (arena.offset(page), &mut self.world.page);
        let read = store.read_at(offset, buffer);
        let (at, new) = (offset + within.start as u64, &buffer[within]);
        let done = read.and_then(|()| arena.memory().fill(at, new));
        unlock(arena, page, presence);
        Ok(done?)
    }
}
