//! Trace events of a pager: what reclaim has just done, for a reader of the trace (`mglru exec
//! --trace-events`). The policy thread writes them to a ring of fixed size; a reader that
//! is too slow loses events, which are counted, and the pager never waits.
//!
//! ```no_run
//! use mglru_pager::{PagerOptions, events};
//!
//! let pager = PagerOptions::new().memory_max(64 << 20).open()?;
//! let (sender, mut reader) = events::channel(events::SLOTS)?;
//! pager.trace_events(sender)?;
//! let mut recorded = Vec::new();
//! reader.read(&mut recorded);
//! println!("{} events, {} lost", recorded.len(), reader.lost());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod ring;
mod slot;

pub use call::{Call, Caller, Listener, Ring, State};
pub use ring::{EventReader, EventSender, Recorded, SLOTS, channel};

use mglru::host::TraceEvent;

/// Tells what happened in a pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Reports a step that reclaim has just taken.
    Reclaim(TraceEvent),
    /// Reports that a use brought a page; only rings made for faults have these. The time is that
    /// at which the policy learned of it.
    Fault {
        /// Holds the page's address in the program.
        address: u64,
        /// Says that the use was a store.
        write: bool,
    },
}

/// Names the thread whose doing all events are.
pub const THREAD: &str = "mglru-policy";

/// Returns the time by the clock of events.
pub fn now() -> u64 {
    crate::sys::clock::monotonic()
}
