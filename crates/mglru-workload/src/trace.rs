//! Traces: reference strings recorded elsewhere, read as a stream and replayed as a workload.
//!
//! [`TraceReader`] turns a file of any [`Format`], plain or compressed, into blocks of
//! [`Request`]s; [`TraceFile`] gives such readers again and again, of a pipe too. [`DenseReader`]
//! and [`Dense`] number the pages densely for caches that index arrays, [`Summary`] counts, and
//! [`TraceWorkload`] makes a trace a workload like any other.

mod anonymize;
mod compact;
mod container;
mod csv;
mod cursor;
mod dense;
mod error;
mod event;
mod format;
mod import;
mod input;
mod line_ends;
mod lines;
#[cfg(test)]
mod mutation_tests;
#[cfg(test)]
mod packed_tests;
mod raw;
mod reader;
mod record;
mod replay;
mod source;
#[cfg(test)]
mod tests;
mod unpack;

pub use anonymize::Anonymizer;
pub use compact::{EventReader, EventWriter};
pub use dense::{Dense, DenseReader, Numbering, Summary, TooManyPages};
pub use error::TraceError;
pub use event::{Event, Head, Operation, TimeUnit};
pub use format::{Format, Guess, UnknownFormatName, trace_name};
pub use import::{BadColumns, Columns, Delimiter, Importer, Source, TimeScale, UnknownSource};
pub use reader::TraceReader;
pub use record::{PAGE_SHIFT, Request, View};
pub use replay::{Access, TraceSpec, TraceWorkload};
pub use source::{TraceFile, is_pipe, unpacked};
