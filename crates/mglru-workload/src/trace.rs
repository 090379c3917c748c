//! Traces: reference strings recorded elsewhere, read as a stream and replayed as a workload.
//!
//! [`TraceReader`] turns a file of any [`Format`], plain or compressed with zstd or gzip, into
//! blocks of [`Request`]s. [`DenseReader`] and [`Dense`] number the pages densely for caches that
//! index arrays, [`Summary`] counts, and [`TraceWorkload`] makes a trace a workload like any other.

mod csv;
mod cursor;
mod dense;
mod error;
mod format;
mod input;
mod lines;
mod reader;
mod record;
mod replay;
#[cfg(test)]
mod tests;

pub use dense::{Dense, DenseReader, Numbering, Summary, TooManyPages};
pub use error::TraceError;
pub use format::{Format, UnknownFormatName, trace_name};
pub use reader::TraceReader;
pub use record::{PAGE_SHIFT, Request, View};
pub use replay::{Access, TraceSpec, TraceWorkload};
