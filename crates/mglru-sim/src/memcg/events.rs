//! Counts events of a group as `memory.events` and `memory.events.local` do.

/// Names an event that happens to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Reclaimed although below `memory.low`.
    Low,
    /// Reclaimed for being above `memory.high`.
    High,
    /// A charge met `memory.max`.
    Max,
    /// Reclaim could not bring it below its limit.
    Oom,
    /// A task was killed for it.
    OomKill,
}

/// Counts how often each event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// [`Event::Low`]
    pub low: u64,
    /// [`Event::High`]
    pub high: u64,
    /// [`Event::Max`]
    pub max: u64,
    /// [`Event::Oom`]
    pub oom: u64,
    /// [`Event::OomKill`]
    pub oom_kill: u64,
}

impl EventCounts {
    /// Lists names and values, as `memory.events` does.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("low", self.low),
            ("high", self.high),
            ("max", self.max),
            ("oom", self.oom),
            ("oom_kill", self.oom_kill),
        ]
    }

    pub(super) fn add(&mut self, event: Event) {
        *match event {
            Event::Low => &mut self.low,
            Event::High => &mut self.high,
            Event::Max => &mut self.max,
            Event::Oom => &mut self.oom,
            Event::OomKill => &mut self.oom_kill,
        } += 1;
    }
}

/// Counts the events of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Its own (`memory.events.local`).
    pub local: EventCounts,
    /// Its own and its descendants' (`memory.events`).
    pub hierarchical: EventCounts,
}
