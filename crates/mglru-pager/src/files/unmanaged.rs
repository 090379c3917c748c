//! `memory.unmanaged`: what of its process's memory no budget covers. The pager does not know;
//! whoever brought it into the process does (under `mglru exec` the preload library).

use std::sync::OnceLock;

use crate::error::PagerError;

/// Answers for the file, in lines of a key and a number.
pub type Source = fn() -> String;

static SOURCE: OnceLock<Source> = OnceLock::new();

/// Sets the source of the root group's `memory.unmanaged`. Only the first call counts.
pub fn tell_unmanaged(source: Source) {
    let _ = SOURCE.set(source);
}

/// Reads the file.
///
/// # Errors
/// Nothing in this process counts such memory: a file of zeros would be untrue.
pub fn read() -> Result<String, PagerError> {
    let source = SOURCE.get().ok_or_else(|| PagerError::NoFile("memory.unmanaged".into()))?;
    Ok(source())
}
