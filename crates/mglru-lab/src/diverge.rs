//! `mglru diverge`: finds the first access after which two booted kernels, or a kernel and the
//! model, are not in the same state, under the same load.
//!
//! Both kernels stop after the same accesses and report their state. The first pass looks at some
//! hundred stops over the whole run; each further pass looks at the window between the last equal
//! and the first unequal stop, until the window is one access. Runs repeat to the byte, so that
//! each pass meets the same run; the stops themselves take a little virtual time.

mod fields;
mod pages;
mod search;
mod text;
mod tolerance;
mod window;

pub use self::fields::{FIELDS, Field};
pub use self::pages::Pages;
pub use self::search::{DECISIVE, Found, Moment, Request, find};
pub use self::text::text;
pub use self::tolerance::Tolerance;
pub use self::window::{Parting, Series};
