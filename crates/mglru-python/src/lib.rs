//! The extension module of the Python package `mglru`. Requests come as JSON and answers go as
//! JSON, in the shapes of the program's own; page numbers go as numpy arrays, without a copy. The
//! package around it (`python/mglru`) makes classes of them.

#![forbid(clippy::undocumented_unsafe_blocks)]

mod asked;
mod interrupt;
mod lab;
mod machine_policy;
mod pages;
mod policy;
mod replay;
mod sweep;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(mglru, Error, PyException, "A request that mglru refuses, in one line.");

/// Raises what the program would print after `mglru: error: `.
fn raised(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string().replace('\n', " "))
}

#[pymodule]
fn _mglru(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add_class::<sweep::Sweep>()?;
    module.add_function(wrap_pyfunction!(machine_policy::register_policy, module)?)?;
    module.add_function(wrap_pyfunction!(lab::run, module)?)?;
    module.add_function(wrap_pyfunction!(lab::ablate, module)?)?;
    module.add_function(wrap_pyfunction!(lab::validate, module)?)?;
    module.add_function(wrap_pyfunction!(lab::compare, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_task, module)?)?;
    module.add_function(wrap_pyfunction!(pages::read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(pages::mrc_of_file, module)?)?;
    module.add_function(wrap_pyfunction!(pages::mrc_of_pages, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay_file, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay_pages, module)?)
}
