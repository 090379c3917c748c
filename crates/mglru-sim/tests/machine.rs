//! The machine as a whole, under small workloads written out in the tests.

#[path = "machine/advice.rs"]
mod advice;
#[path = "machine/anonymous.rs"]
mod anonymous;
#[path = "machine/basics.rs"]
mod basics;
#[path = "machine/blocks.rs"]
mod blocks;
#[path = "machine/custom.rs"]
mod custom;
#[path = "machine/descriptors.rs"]
mod descriptors;
#[path = "machine/explain.rs"]
mod explain;
#[path = "machine/groups.rs"]
mod groups;
#[path = "machine/journal.rs"]
mod journal;
#[path = "machine/large_folios.rs"]
mod large_folios;
#[path = "machine/live.rs"]
mod live;
#[path = "machine/read_around.rs"]
mod read_around;
#[path = "machine/removal.rs"]
mod removal;
#[path = "machine/reproducers.rs"]
mod reproducers;
#[path = "machine/script.rs"]
mod script;
#[path = "machine/shadows.rs"]
mod shadows;
#[path = "machine/shares.rs"]
mod shares;
#[path = "machine/tiers.rs"]
mod tiers;
#[path = "machine/trace_events.rs"]
mod trace_events;
#[path = "machine/writeback.rs"]
mod writeback;
