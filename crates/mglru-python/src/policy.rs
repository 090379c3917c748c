//! A policy written in Python: `access(page) -> bool`, true for a hit.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use mglru_workload::trace::Dense;

/// Replays a trace through `factory(size_pages)`; counts the misses that it reports.
pub fn misses(factory: &Bound<'_, PyAny>, trace: &Dense, size_pages: u64) -> PyResult<u64> {
    let name = name(factory);
    let policy = factory.call1((size_pages,))?;
    let access = policy.getattr("access")?;
    let (mut misses, mut seen) = (0, 0);
    for &page in &trace.ids {
        let answer = access.call1((page,))?;
        let answer = answer.cast::<PyBool>().map_err(|_| {
            let want = "want True for a hit, False for a miss";
            PyTypeError::new_err(format!("{name}.access({page}) returned {answer}; {want}"))
        })?;
        let is_first = page == seen;
        seen += u32::from(is_first);
        match (answer.is_true(), is_first) {
            (true, true) => {
                let problem = "is a hit, but nobody has asked for that page before";
                return Err(crate::raised(format!("{name}.access({page}) {problem}")));
            }
            (hit, _) => misses += u64::from(!hit),
        }
    }
    Ok(misses)
}

/// Returns the name of a class or function.
pub fn name(factory: &Bound<'_, PyAny>) -> String {
    let name = factory.getattr("__name__").and_then(|name| name.extract());
    name.unwrap_or_else(|_| factory.to_string())
}
