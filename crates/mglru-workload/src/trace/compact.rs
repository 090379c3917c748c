//! The compact format of traces: blocks of columns, each compressed by zstd, under a checksum.
//! `docs/reference/compact-trace.md` defines it byte by byte.
//!
//! Pages are coded relative to earlier events: the page behind a recent event's, the page that
//! followed this one when both were new, or its number in the order of first appearance. What is
//! left is a byte or two that zstd's entropy coder makes small.

mod ahead;
mod decode;
mod encode;
mod layout;
mod place;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use layout::MAGIC;
pub(super) use reader::CompactReader;
pub use reader::EventReader;
pub use writer::EventWriter;
