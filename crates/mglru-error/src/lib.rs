//! Every way a command can be refused, each printed as one line that names the file, key or option.

use std::path::{Path, PathBuf};

use mglru_workload::trace::TraceError;

/// Tells why a command stopped. The program prints it as `mglru: error: …` and exits with status 2.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reports a file that could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Reports a file that is not valid TOML.
    #[error("{file}:{line}:{column}: {problem}")]
    Syntax {
        /// The plan file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Message of the parser.
        problem: String,
    },
    /// Reports a wrong key of a plan, or a wrong value.
    #[error("{file}: {at}")]
    Key {
        /// The plan file.
        file: String,
        /// Names the key, and the reason.
        at: KeyError,
    },
    /// Reports a request that no file is to blame for: an option, a name, a missing ability.
    #[error("{0}")]
    Request(String),
    /// Reports a booted machine that gave no result: its kernel is to blame, or may be.
    #[error("{0}")]
    Machine(String),
}

impl Error {
    /// Creates an input or output error at `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), source }
    }

    /// Tells whether the reader of our output has gone away, which is no error for a filter.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        Self::Request(match error.doubts_format() {
            true => format!("{error}; --trace-format NAME chooses"),
            false => error.to_string(),
        })
    }
}

/// Describes a wrong key or value inside a plan, before the file's name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// Holds the dotted key, such as `workload.theta`.
    pub key: String,
    /// Holds the offending value as written, when there is one.
    pub value: Option<String>,
    /// Says why it is refused, with the allowed range where there is one.
    pub problem: String,
}

impl KeyError {
    /// Refuses the value of a key.
    pub fn value(key: impl Into<String>, value: impl ToString, problem: impl ToString) -> Self {
        Self { key: key.into(), value: Some(value.to_string()), problem: problem.to_string() }
    }

    /// Refuses a key that is itself the problem.
    pub fn key(key: impl Into<String>, problem: impl ToString) -> Self {
        Self { key: key.into(), value: None, problem: problem.to_string() }
    }

    /// Refuses an unknown key, with the nearest known ones, or all of them where none is near.
    pub fn unknown<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let last = key.rsplit_once('.').map_or(key, |(_, last)| last);
        let known: Vec<&str> = known.into_iter().collect();
        let near = match did_you_mean(last, known.iter().copied()) {
            none if none.is_empty() => {
                format!(" (known: {}; mglru help keys explains them)", known.join(", "))
            }
            near => near,
        };
        Self::key(key, format!("unknown key{near}"))
    }

    /// Puts the key one level further out: `theta` inside `workload` becomes `workload.theta`.
    pub fn within(mut self, section: &str) -> Self {
        self.key = match self.key.is_empty() {
            true => section.to_string(),
            false => format!("{section}.{}", self.key),
        };
        self
    }

    /// Names the file the key stands in.
    pub fn in_file(self, file: &str) -> Error {
        Error::Key { file: file.to_string(), at: self }
    }
}

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value}: {}", self.key, self.problem),
            None => write!(f, "{}: {}", self.key, self.problem),
        }
    }
}

impl std::error::Error for KeyError {}

/// Writes what [`did_you_mean`] does; where that is nothing, the command that lists all names.
pub fn did_you_mean_or_list<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    command: &str,
) -> String {
    match did_you_mean(name, known) {
        near if near.is_empty() => format!("; {command} names all"),
        near => near,
    }
}

/// Writes ` (did you mean a, b?)` for the known names near `name`; all names when there are few.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let mut near: Vec<(f64, &str)> = known
        .iter()
        .map(|k| (strsim::jaro_winkler(name, k), *k))
        .filter(|(score, _)| *score >= 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let names: Vec<&str> = near.into_iter().take(3).map(|(_, k)| k).collect();
    match (names.is_empty(), known.len()) {
        (false, _) => format!(" (did you mean {}?)", names.join(", ")),
        (true, 1..=12) => format!(" (known: {})", known.join(", ")),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_key_lists_near_names() {
        let e = KeyError::unknown("workload.thtea", ["theta", "operations", "records"]);
        assert_eq!(e.to_string(), "workload.thtea: unknown key (did you mean theta?)");
    }

    #[test]
    fn unknown_key_lists_all_of_few() {
        let e = KeyError::unknown("x", ["memory", "cpus"]);
        assert_eq!(e.to_string(), "x: unknown key (known: memory, cpus)");
    }

    #[test]
    fn unknown_key_lists_all_of_many_where_none_is_near() {
        let many: Vec<String> = (10..25).map(|n| format!("key{n}")).collect();
        let e = KeyError::unknown("a.zzz", many.iter().map(String::as_str));
        assert!(e.problem.starts_with("unknown key (known: key10, key11, "), "{e}");
        assert!(e.problem.ends_with(", key24; mglru help keys explains them)"), "{e}");
    }

    #[test]
    fn value_errors_name_key_value_and_range() {
        let e = KeyError::value("swappiness", 250, "must be 0..200").within("reclaim");
        let e = e.in_file("p.toml");
        assert_eq!(e.to_string(), "p.toml: reclaim.swappiness = 250: must be 0..200");
    }
}
