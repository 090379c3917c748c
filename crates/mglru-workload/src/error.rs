//! Names the faults of a workload's description: one enum, every message names the key.

use std::path::PathBuf;

use crate::job::JobError;
use crate::trace::{TraceError, UnknownFormatName};

/// Tells why a workload cannot be built from its description.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Refuses a number outside the range that its key allows.
    #[error("{key} = {got}: must be from {min} to {max}")]
    OutOfRange {
        /// The offending key, such as `fio.jobs`.
        key: &'static str,
        /// The value found.
        got: String,
        /// Smallest allowed value.
        min: String,
        /// Largest allowed value.
        max: String,
    },
    /// Refuses keys that are each fine but do not go together.
    #[error("{key}: {reason}")]
    Conflict {
        /// The offending key.
        key: &'static str,
        /// The key that it conflicts with.
        reason: String,
    },
    /// Reports a fault of one workload among several.
    #[error("parts.{name}: {source}")]
    Part {
        /// The workload's name.
        name: String,
        /// Its fault.
        source: Box<WorkloadError>,
    },
    /// Reports a job text that does not parse.
    #[error("job: {0}")]
    Job(#[from] JobError),
    /// Reports a file that a workload is made from and that cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's own error.
        source: std::io::Error,
    },
    /// Reports a trace that cannot be opened or understood.
    #[error("trace: {0}")]
    Trace(#[from] TraceError),
    /// Reports a name that no trace format has.
    #[error("trace.format: {0}")]
    TraceFormat(#[from] UnknownFormatName),
}

impl WorkloadError {
    /// Says whose fault it is among several workloads.
    pub(crate) fn of_part(self, name: &str) -> Self {
        Self::Part { name: name.to_owned(), source: Box::new(self) }
    }
}

/// Passes a number on if it lies in `min..=max`.
///
/// # Errors
/// [`WorkloadError::OutOfRange`], naming `key`.
pub fn in_range<T>(key: &'static str, got: T, min: T, max: T) -> Result<T, WorkloadError>
where
    T: PartialOrd + ToString,
{
    // Written so that a NaN is out of every range.
    if got >= min && got <= max {
        return Ok(got);
    }
    let (got, min, max) = (got.to_string(), min.to_string(), max.to_string());
    Err(WorkloadError::OutOfRange { key, got, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_key_value_and_range() {
        let error = in_range("fio.jobs", 0, 1, 4096).unwrap_err();
        assert_eq!(error.to_string(), "fio.jobs = 0: must be from 1 to 4096");
    }

    #[test]
    fn nan_is_refused() {
        assert!(in_range("x", f64::NAN, 0.0, 1.0).is_err());
        assert!(in_range("x", 1.0, 0.0, 1.0).is_ok());
    }
}
