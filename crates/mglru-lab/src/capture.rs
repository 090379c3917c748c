//! Captures: counters as people post them (`/proc/vmstat`, `memory.stat`, `memory.pressure`,
//! `lru_gen`, `lru_gen_full`), one sample or a series, and as `mglru capture` takes them.

mod generations;
mod host;
mod kinds;
mod sections;
mod side;
mod text;

use std::io::Read;
use std::path::Path;

use indexmap::IndexMap;

use mglru_error::Error;
use mglru_workload::trace::unpacked;

pub use host::{Host, Taken, take};
pub use side::{Side, compare, is_capture, remark};

/// Holds the counters of one moment, by name: `pgscan_direct`, `memory.stat.anon`,
/// `pressure.memory.some.total` (µs), `lru_gen./job.anon.youngest` (pages).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Holds the time of the sample, seconds; absent where the text does not say.
    pub at_s: Option<f64>,
    /// Holds the values in the order of the text.
    pub values: IndexMap<String, f64>,
}

/// Holds samples in the order they were read; one at least.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    samples: Vec<Sample>,
}

impl Capture {
    /// Reads a file, compressed or not, that holds one sample or several.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is no counter: names file and line.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let read = unpacked(path).and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(|e| Error::io(path, e))?;
        let wrong = |problem: String| Error::Request(format!("{}{problem}", path.display()));
        let text = std::str::from_utf8(&bytes).map_err(|e| {
            let line = 1 + bytes[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
            wrong(format!(":{line}: is not text"))
        })?;
        let samples =
            text::samples(text).map_err(|(line, what)| wrong(format!(":{line}: {what}")))?;
        match samples.is_empty() {
            true => Err(wrong(": holds no counter".to_string())),
            false => Ok(Self { samples }),
        }
    }

    /// Tells each figure of the whole capture: what a counter grew by from the first sample to the
    /// last, a gauge's mean; of a single sample the values themselves. A counter that fell has no
    /// figure: its group or its machine was made anew in between.
    pub fn figures(&self) -> IndexMap<String, f64> {
        let first = &self.samples[0];
        let figure = |name: &String| match (self.samples.len(), kinds::is_gauge(name)) {
            (1, _) => first.values.get(name).copied(),
            (_, true) => self.mean(name),
            (_, false) => self.growth(name).filter(|grown| *grown >= 0.0),
        };
        let names = first.values.keys().map(|name| Some((name.clone(), figure(name)?)));
        self.seconds().into_iter().chain(names.flatten()).collect()
    }

    /// Names the counters that have no figure since they fell.
    pub fn fallen(&self) -> impl Iterator<Item = &str> {
        let names = self.samples[0].values.keys().map(String::as_str);
        names.filter(|&name| {
            !kinds::is_gauge(name) && self.growth(name).is_some_and(|grown| grown < 0.0)
        })
    }

    /// Tells how much a value grew by from the first sample to the last.
    fn growth(&self, name: &str) -> Option<f64> {
        Some(self.last().values.get(name)? - self.samples[0].values.get(name)?)
    }

    /// Tells whether it is one reading with counters, which are totals since boot then.
    pub fn is_one_reading(&self) -> bool {
        let has_counters = || self.last().values.keys().any(|name| !kinds::is_gauge(name));
        self.samples.len() == 1 && has_counters()
    }

    /// Returns the last sample.
    pub fn last(&self) -> &Sample {
        &self.samples[self.samples.len() - 1]
    }

    fn mean(&self, name: &str) -> Option<f64> {
        let all: Vec<f64> =
            self.samples.iter().filter_map(|s| s.values.get(name).copied()).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// Tells how long it took, where both ends say when they were read.
    fn seconds(&self) -> Option<(String, f64)> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let seconds = last.at_s? - first.at_s?;
        (seconds > 0.0).then(|| ("seconds".to_string(), seconds))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn capture(text: &str) -> Capture {
        Capture { samples: text::samples(text).unwrap() }
    }

    #[test]
    fn counters_grow_and_gauges_have_a_mean() {
        let found = capture("time: 10\npgscan 5\nnr_dirty 2\ntime: 14\npgscan 9\nnr_dirty 4\n");
        let want = [("seconds", 4.0), ("pgscan", 4.0), ("nr_dirty", 3.0)];
        assert_eq!(found.figures(), want.map(|(name, x)| (name.to_string(), x)).into());
    }

    #[test]
    fn one_sample_is_taken_as_it_is_and_a_counter_that_fell_is_left_out() {
        assert_eq!(capture("pgscan 5\n").figures()["pgscan"], 5.0);
        let fell = capture("pgscan 5\npgsteal 1\npgscan 4\npgsteal 3\n").figures();
        assert_eq!(fell, [("pgsteal".to_string(), 2.0)].into());
        let names = capture("pgscan 5\npgsteal 1\npgscan 4\npgsteal 3\n");
        assert_eq!(names.fallen().collect::<Vec<_>>(), ["pgscan"]);
    }

    #[test]
    fn a_line_that_is_no_counter_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.vmstat");
        let message = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let error = Capture::load(&path).unwrap_err().to_string();
            error.replace(&path.display().to_string(), "F")
        };
        assert_eq!(message(b"pgscan 1\nhello\n"), "F:2: `hello` is no counter");
        assert_eq!(message(b"pgscan 1\n\xff\xfe\n"), "F:2: is not text");
        assert_eq!(message(b"\n# nothing\n"), "F: holds no counter");
        assert_eq!(message(b""), "F: holds no counter");
        assert_eq!(
            message(b"pgscan 99999999999999999999999\n"),
            "F:1: `pgscan`: the value is too large"
        );
    }
}
