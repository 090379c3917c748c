//! A class in Python that chooses victims in the simulated machine.

use std::sync::Arc;

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use mglru::types::LruType;
use mglru_lab::custom;
use mglru_sim::custom::{CustomPolicy, ListId, PolicyFactory};

/// Adds the class as a variant of the model; the name of the variant.
///
/// `source` is the text of the class, by which records of two states of it are distinguished.
#[pyfunction]
pub fn register_policy(name: &str, source: &str, class: Py<PyAny>) -> PyResult<String> {
    let class_name = name.to_string();
    let make = move |list: ListId| {
        Python::attach(|py| Object::new(class.bind(py), list, &class_name))
            .map(|object| Box::new(object) as Box<dyn CustomPolicy>)
    };
    let factory: PolicyFactory = Arc::new(make);
    custom::register(name, source, factory).map_err(crate::raised)
}

/// Holds the methods of one object; those that may be left out are `None`.
struct Object {
    name: String,
    inserted: Py<PyAny>,
    removed: Py<PyAny>,
    victims: Py<PyAny>,
    accessed: Option<Py<PyAny>>,
    returned: Option<Py<PyAny>>,
    cold: Option<Py<PyAny>>,
    evicted: Option<Py<PyAny>>,
}

impl Object {
    fn new(class: &Bound<'_, PyAny>, list: ListId, name: &str) -> Result<Self, String> {
        let memory = if list.lru_type == LruType::Anon { "anon" } else { "file" };
        let object = class.call1((memory,)).map_err(|e| format!("{name}({memory:?}): {e}"))?;
        let method = |method: &str| object.getattr(method).map(Bound::unbind);
        let needed = |text: &str| method(text).map_err(|_| format!("{name} has no {text}()"));
        Ok(Self {
            name: name.to_string(),
            inserted: needed("inserted")?,
            removed: needed("removed")?,
            victims: needed("victims")?,
            accessed: method("accessed").ok(),
            returned: method("returned").ok(),
            cold: method("cold").ok(),
            evicted: method("evicted").ok(),
        })
    }

    fn call<A>(&self, name: &str, method: &Py<PyAny>, args: A) -> Result<(), String>
    where
        A: for<'py> PyCallArgs<'py>,
    {
        let called = Python::attach(|py| method.call1(py, args).map(drop));
        called.map_err(|e| self.failed(name, &e))
    }

    fn failed(&self, method: &str, error: &PyErr) -> String {
        format!("{}.{method}: {error}", self.name)
    }
}

impl CustomPolicy for Object {
    fn inserted(&mut self, page: u64, accessed: bool) -> Result<(), String> {
        self.call("inserted", &self.inserted, (page, accessed))
    }

    fn accessed(&mut self, page: u64) -> Result<(), String> {
        self.accessed.as_ref().map_or(Ok(()), |method| self.call("accessed", method, (page,)))
    }

    fn removed(&mut self, page: u64) -> Result<(), String> {
        self.call("removed", &self.removed, (page,))
    }

    fn returned(&mut self, page: u64, accessed: bool) -> Result<(), String> {
        match &self.returned {
            Some(method) => self.call("returned", method, (page, accessed)),
            None => self.inserted(page, accessed),
        }
    }

    fn cold(&mut self, page: u64) -> Result<(), String> {
        if let Some(method) = &self.cold {
            return self.call("cold", method, (page,));
        }
        self.removed(page)?;
        self.inserted(page, false)
    }

    fn evicted(&mut self, page: u64) -> Result<(), String> {
        self.evicted.as_ref().map_or(Ok(()), |method| self.call("evicted", method, (page,)))
    }

    fn victims(&mut self, count: u64, out: &mut Vec<u64>) -> Result<(), String> {
        let named = Python::attach(|py| {
            let named = self.victims.bind(py).call1((count,))?;
            named.try_iter()?.map(|page| page?.extract::<u64>()).collect::<PyResult<Vec<u64>>>()
        });
        out.extend(named.map_err(|e| self.failed("victims", &e))?);
        Ok(())
    }
}
