//! Counts events of a group as `memory.events` and `memory.events.local` do.

/// Names an event that happens to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Counts reclaims of the group although it was below `memory.low`.
    Low,
    /// Counts reclaims of the group for being above `memory.high`.
    High,
    /// Counts charges that met `memory.max`.
    Max,
    /// Counts failures of reclaim to bring the group below its limit.
    Oom,
    /// Counts tasks killed in the group.
    OomKill,
}

/// Counts how often each event happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Counts [`Event::Low`].
    pub low: u64,
    /// Counts [`Event::High`].
    pub high: u64,
    /// Counts [`Event::Max`].
    pub max: u64,
    /// Counts [`Event::Oom`].
    pub oom: u64,
    /// Counts [`Event::OomKill`].
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
    /// Counts events of the group alone (`memory.events.local`).
    pub local: EventCounts,
    /// Counts events of the group and its descendants (`memory.events`).
    pub hierarchical: EventCounts,
}
