//! One line of a job: a verb, bare words and `key=value` pairs; and what can be wrong with it.

/// Describes a line of a job that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {key}: {reason}")]
pub struct JobError {
    /// Numbers the line, from 1 (0: the job as a whole).
    pub line: usize,
    /// Holds the offending verb, key or word.
    pub key: String,
    /// Says what is wrong with it.
    pub reason: String,
}

pub(super) type Result<T> = std::result::Result<T, JobError>;

/// A line split into its parts.
pub(super) struct Line<'a> {
    number: usize,
    pub(super) verb: &'a str,
    pub(super) words: Vec<&'a str>,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    /// `None` for an empty line or a comment.
    pub(super) fn split(number: usize, text: &'a str) -> Option<Self> {
        let mut parts = text.split_whitespace();
        let verb = parts.next().filter(|verb| !verb.starts_with('#'))?;
        let mut line = Self { number, verb, words: Vec::new(), pairs: Vec::new() };
        for part in parts {
            match part.split_once('=') {
                Some(pair) => line.pairs.push(pair),
                None => line.words.push(part),
            }
        }
        Some(line)
    }

    pub(super) fn error(&self, key: &str, reason: impl Into<String>) -> JobError {
        JobError { line: self.number, key: key.to_owned(), reason: reason.into() }
    }

    /// A word that names nothing, and the words that would.
    pub(super) fn unknown(&self, word: &str, what: &str, known: &[&str]) -> JobError {
        self.error(word, format!("no such {what} (known: {})", known.join(", ")))
    }

    /// Checks the number of bare words and that each key is one of `keys` and given once.
    pub(super) fn expect(&self, words: &[&str], optional: usize, keys: &[&str]) -> Result<()> {
        if let Some(extra) = self.words.get(words.len()) {
            return Err(self.error(extra, format!("unexpected in `{}`", self.verb)));
        }
        if self.words.len() + optional < words.len() {
            return Err(self.error(words[self.words.len()], "missing"));
        }
        for (at, (key, _)) in self.pairs.iter().enumerate() {
            if !keys.contains(key) {
                let problem = match keys.is_empty() {
                    true => format!("`{}` takes no keys", self.verb),
                    false => format!("no such key of `{}` (known: {})", self.verb, keys.join(", ")),
                };
                return Err(self.error(key, problem));
            }
            if self.pairs[..at].iter().any(|(other, _)| other == key) {
                return Err(self.error(key, "given twice"));
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(name, _)| *name == key).map(|&(_, value)| value)
    }

    pub(super) fn need(&self, key: &str) -> Result<&'a str> {
        self.get(key).ok_or_else(|| self.error(key, "missing"))
    }

    /// A number in `min..=max`.
    pub(super) fn number(&self, key: &str, text: &str, min: u64, max: u64) -> Result<u64> {
        match text.parse::<u64>() {
            Ok(n) if (min..=max).contains(&n) => Ok(n),
            Ok(n) => Err(self.error(key, format!("{n}: must be from {min} to {max}"))),
            Err(_) => Err(self.error(key, format!("`{text}` is not a whole number"))),
        }
    }

    /// The number behind a key that must be given.
    pub(super) fn need_number(&self, key: &str, min: u64, max: u64) -> Result<u64> {
        self.number(key, self.need(key)?, min, max)
    }

    /// The number behind a key that may be left out.
    pub(super) fn number_or(&self, key: &str, default: u64, max: u64) -> Result<u64> {
        self.get(key).map_or(Ok(default), |text| self.number(key, text, 0, max))
    }

    /// The bare word `at` as a number.
    pub(super) fn word_number(&self, at: usize, key: &str, max: u64) -> Result<u64> {
        self.number(key, self.words[at], 0, max)
    }

    /// A number of bytes, with an optional suffix `K`, `M` or `G`.
    pub(super) fn bytes(&self, key: &str, text: &str) -> Result<u64> {
        let (digits, shift) = match text.as_bytes().last() {
            Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
            Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
            Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
            _ => (text, 0),
        };
        Ok(self.number(key, digits, 0, u64::MAX >> shift)? << shift)
    }
}
