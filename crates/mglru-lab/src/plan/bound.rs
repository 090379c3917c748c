//! Bounds a plan sets on every single run, for `mglru check`: a regression test needs no second
//! variant to compare with.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::Value;

use mglru_error::KeyError;

/// States a condition that must hold on every run of every variant.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bound {
    /// Gives a title for people; made of the other keys when absent.
    pub name: Option<String>,
    /// Names the figure that is looked at, as in the plan's `metrics`; `a / b` is a quotient.
    pub metric: Option<String>,
    /// Names the phase of the workload whose counters are meant; the whole run when absent.
    pub phase: Option<String>,
    /// Names the variant that it is said of; every variant when absent.
    pub variant: Option<String>,
    /// Sets the largest value that holds.
    pub at_most: Option<f64>,
    /// Sets the smallest value that holds.
    pub at_least: Option<f64>,
    /// Names a file of records; the figure is compared with that of the same seed there.
    pub record: Option<PathBuf>,
    /// A kernel without the figure is not judged; else the figure's name is taken for a mistake.
    pub optional: bool,
    /// Limits how far it may be from the record's, such as "5%".
    #[serde(deserialize_with = "share")]
    pub within: Option<f64>,
    /// Nobody is killed for want of memory, and the machine does not stop for it.
    pub no_oom_kill: bool,
    /// The table of generations at the end is one that can be.
    pub sound_generations: bool,
}

/// Names the figure that a bound judges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule<'a> {
    /// Requires that the figure lies between two values.
    Between(&'a str, f64, f64),
    /// Requires that the figure is that of a record, but for a share of it.
    Near(&'a str, &'a PathBuf, f64),
    /// Requires that nobody is killed for want of memory.
    NoOomKill,
    /// Requires that generations are sound.
    Generations,
}

impl Bound {
    /// Says what is judged.
    pub fn rule(&self) -> Rule<'_> {
        match (&self.metric, &self.record) {
            (Some(metric), Some(record)) => {
                Rule::Near(metric, record, self.within.unwrap_or_default())
            }
            (Some(metric), None) => {
                let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
                Rule::Between(metric, self.at_least.unwrap_or(low), self.at_most.unwrap_or(high))
            }
            (None, _) if self.no_oom_kill => Rule::NoOomKill,
            _ => Rule::Generations,
        }
    }

    /// Writes the condition that must hold.
    pub fn condition(&self) -> String {
        match self.rule() {
            Rule::Between(_, low, high) if low == f64::NEG_INFINITY => format!("at most {high}"),
            Rule::Between(_, low, high) if high == f64::INFINITY => format!("at least {low}"),
            Rule::Between(_, low, high) => format!("{low} to {high}"),
            Rule::Near(_, record, share) => {
                // Written as a share, read as per cent: what is left of the product is no digit.
                let percent = (share * 1e8).round() / 1e6;
                format!("within {percent}% of {}", record.display())
            }
            Rule::NoOomKill => "nobody is killed for want of memory".to_string(),
            Rule::Generations => "1 to 4 generations in order, no size below 0".to_string(),
        }
    }

    /// Names the bound for people.
    pub fn title(&self) -> String {
        let phase = self.phase.iter().map(|phase| format!(" in phase {phase}"));
        let made = match self.rule() {
            Rule::Between(metric, ..) | Rule::Near(metric, ..) => {
                format!("{metric}{}", phase.collect::<String>())
            }
            Rule::NoOomKill => "no_oom_kill".to_string(),
            Rule::Generations => "sound_generations".to_string(),
        };
        self.name.clone().unwrap_or(made)
    }

    pub(super) fn check(&self) -> Result<(), KeyError> {
        let kinds = [self.metric.is_some(), self.no_oom_kill, self.sound_generations];
        if kinds.iter().filter(|is| **is).count() != 1 {
            let problem = "needs exactly one of metric, no_oom_kill = true, \
                           sound_generations = true";
            return Err(KeyError::key("", problem));
        }
        self.check_keys()?;
        for (key, value) in [("at_most", self.at_most), ("at_least", self.at_least)] {
            if value.is_some_and(|value| !value.is_finite()) {
                return Err(KeyError::key(key, "must be a finite number"));
            }
        }
        match (self.at_least, self.at_most) {
            (Some(low), Some(high)) if low > high => {
                Err(KeyError::value("at_least", low, format!("is above at_most = {high}")))
            }
            _ => Ok(()),
        }
    }

    /// Keys that only mean something beside others.
    fn check_keys(&self) -> Result<(), KeyError> {
        let limited = self.at_most.is_some() || self.at_least.is_some();
        let given = [
            ("phase", self.phase.is_some()),
            ("at_most", self.at_most.is_some()),
            ("at_least", self.at_least.is_some()),
            ("record", self.record.is_some()),
            ("within", self.within.is_some()),
            ("optional", self.optional),
        ];
        let alone = given.into_iter().find(|(_, is)| *is && self.metric.is_none());
        if let Some((key, _)) = alone {
            return Err(KeyError::key(key, "goes with metric"));
        }
        let metric = self.metric.as_deref().unwrap_or_default();
        if self.phase.is_some() && metric.contains("latency_us") {
            return Err(KeyError::value("metric", metric, "a phase has no latencies"));
        }
        let near = self.record.is_some();
        match self.within {
            None if near => Err(KeyError::key("within", "is missing (such as \"5%\")")),
            Some(_) if !near => Err(KeyError::key("within", "goes with record")),
            _ if self.metric.is_some() && near == limited => {
                let problem = "needs at_most or at_least, or else record and within";
                Err(KeyError::key("metric", problem))
            }
            _ => Ok(()),
        }
    }
}

/// `"5%"` or 0.05.
fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let value = Value::deserialize(from)?;
    let share = match &value {
        Value::String(text) => {
            let percent = text.strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
            percent.map(|percent| percent / 100.0)
        }
        Value::Float(share) => Some(*share),
        Value::Integer(share) => Some(*share as f64),
        _ => None,
    };
    let share = share.filter(|share| share.is_finite() && *share >= 0.0);
    share.map(Some).ok_or_else(|| D::Error::custom("must be a share such as \"5%\" or 0.05"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typed;

    fn bound(text: &str) -> Result<Bound, KeyError> {
        let bound: Bound = typed::from_table(text.parse().unwrap())?;
        bound.check().map(|()| bound)
    }

    fn error(text: &str) -> String {
        bound(text).unwrap_err().to_string()
    }

    #[test]
    fn every_form_says_what_it_judges() {
        let condition = |text: &str| {
            let bound = bound(text).unwrap();
            format!("{}: {}", bound.title(), bound.condition())
        };
        assert_eq!(condition("metric = \"a / b\"\nat_most = 2"), "a / b: at most 2");
        let text = "metric = \"a\"\nat_least = 0.5\nat_most = 2\nphase = \"p\"";
        assert_eq!(condition(text), "a in phase p: 0.5 to 2");
        let text = "name = \"n\"\nmetric = \"a\"\nrecord = \"r.jsonl\"\nwithin = \"5%\"";
        assert_eq!(condition(text), "n: within 5% of r.jsonl");
        let text = "metric = \"a\"\nrecord = \"r.jsonl\"\nwithin = 0.007";
        assert_eq!(condition(text), "a: within 0.7% of r.jsonl");
        assert!(condition("no_oom_kill = true").starts_with("no_oom_kill: nobody"));
        assert!(condition("sound_generations = true").contains("1 to 4 generations"));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(error("metrc = \"a\""), "metrc: unknown key (did you mean metric?)");
        assert!(error("name = \"n\"").contains("needs exactly one of metric"));
        assert!(error("metric = \"a\"\nno_oom_kill = true").contains("exactly one"));
        assert!(error("metric = \"a\"").starts_with("metric: needs at_most or at_least"));
        let both = "metric = \"a\"\nat_most = 1\nrecord = \"r\"\nwithin = \"1%\"";
        assert!(error(both).starts_with("metric: needs at_most or at_least, or else"));
        assert!(error("metric = \"a\"\nrecord = \"r\"").starts_with("within: is missing"));
        assert!(error("metric = \"a\"\nwithin = \"1%\"\nat_most = 1").starts_with("within: goes"));
        assert_eq!(error("no_oom_kill = true\nat_most = 1"), "at_most: goes with metric");
        assert_eq!(error("no_oom_kill = true\noptional = true"), "optional: goes with metric");
        let text = "metric = \"latency_us.p99\"\nat_most = 1\nphase = \"p\"";
        assert_eq!(error(text), "metric = latency_us.p99: a phase has no latencies");
        let text = "metric = \"a\"\nat_least = 2\nat_most = 1";
        assert_eq!(error(text), "at_least = 2: is above at_most = 1");
        assert!(error("metric = \"a\"\nrecord = \"r\"\nwithin = \"x\"").contains("share such as"));
        assert!(error("metric = \"a\"\nrecord = \"r\"\nwithin = \"-1%\"").contains("share"));
        assert!(error("metric = \"a\"\nat_most = nan").contains("finite"));
    }
}
