//! How far is the model from the real kernel? Jobs measured on a booted Linux are replayed page by
//! page under the same kernel's rules, and each counter is set beside the measured one.
//!
//! [`texts`] and [`truth`] read what was measured,
//! [`replay`] runs it in the model as an experiment like any other (resumable, several at a time),
//! [`counts`] names what is compared, [`verdict`] compares one version, [`report`] puts versions
//! together, [`bounds`] judges them, [`text`] and [`page`] print them.

pub mod answers;
pub mod bounds;
pub mod causes;
pub mod counts;
pub mod generations;
mod paced;
pub mod page;
pub mod program;
pub mod replay;
pub mod report;
pub mod text;
pub mod texts;
pub mod truth;
pub mod verdict;
