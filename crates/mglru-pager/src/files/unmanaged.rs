//! `memory.unmanaged`: memory of the process that no budget covers. The pager does not know it;
//! the library that loaded the pager does (under `mglru exec` the preload library).

use std::sync::OnceLock;

use crate::error::PagerError;

/// Returns the text of the file: lines of a key and a number.
pub type Source = fn() -> String;

static SOURCE: OnceLock<Source> = OnceLock::new();

/// Sets the source of the root group's `memory.unmanaged`. Only the first call counts.
pub fn set_unmanaged_source(source: Source) {
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
