//! Lets somebody drive a run of the model: event by event, up to a condition, or to its end. The
//! record is the same as without.

use std::fmt;
use std::str::FromStr;

use mglru_sim::counted;
use mglru_sim::live::Live;

/// Drives runs and looks at them.
pub trait Watcher {
    /// Learns which run comes next: its name, and the how-many-th of how many it is, from 1.
    fn next(&mut self, run: &str, nth: usize, of: usize);

    /// Drives a run to its end; `false`: the watcher left before. `total`: accesses to come, where
    /// the workload knows.
    ///
    /// # Errors
    /// The machine fails, or the watcher's terminal does.
    fn drive(&mut self, live: &mut Live, total: Option<u64>) -> Result<bool, String>;
}

/// Names a condition that stops a run where it begins to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Break {
    /// Stops when an invariant of the lists is broken.
    Invariants,
    /// Stops when a figure passes a bound.
    Figure {
        /// Path of a group whose `memory.stat` has the figure; none: the machine's counters.
        group: Option<String>,
        /// Name of the figure.
        name: String,
        /// How it is compared.
        is: Comparison,
        /// Holds the value with which it is compared.
        bound: u64,
    },
}

/// Says how a figure is compared with a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Compares with `>=`.
    AtLeast,
    /// Compares with `<=`.
    AtMost,
    /// Compares with `>`.
    Above,
    /// Compares with `<`.
    Below,
    /// Compares with `=`.
    Equal,
}

/// Signs of comparisons, those that begin like others first.
const SIGNS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("==", Comparison::Equal),
    (">", Comparison::Above),
    ("<", Comparison::Below),
    ("=", Comparison::Equal),
];

impl Comparison {
    fn holds(self, value: u64, bound: u64) -> bool {
        match self {
            Self::AtLeast => value >= bound,
            Self::AtMost => value <= bound,
            Self::Above => value > bound,
            Self::Below => value < bound,
            Self::Equal => value == bound,
        }
    }

    fn sign(self) -> &'static str {
        SIGNS.iter().find(|(_, is)| *is == self).expect("each has a sign").0
    }
}

impl FromStr for Break {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WANTED: &str = "want COUNTER>N, GROUP:FIGURE<=N or invariants";
        let text = text.trim();
        if text == "invariants" {
            return Ok(Self::Invariants);
        }
        let begin = text.find(['<', '>', '=']).ok_or(WANTED)?;
        let (what, rest) = text.split_at(begin);
        let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)).ok_or(WANTED)?;
        let bound = rest[sign.0.len()..].trim();
        let bound = bound.parse().map_err(|_| format!("{bound:?} is no whole number; {WANTED}"))?;
        let (group, name) = match what.rsplit_once(':') {
            Some((group, name)) => (Some(group.trim().to_string()), name),
            None => (None, what),
        };
        let name = name.trim().to_string();
        known(group.is_some(), &name)?;
        Ok(Self::Figure { group, name, is: sign.1, bound })
    }
}

/// Refuses a name that no machine and no group has.
fn known(is_of_group: bool, name: &str) -> Result<(), String> {
    let names: Vec<&str> = match is_of_group {
        false => counted::described().map(|(name, _)| name).collect(),
        true => mglru_sim::outcome::stat_names().collect(),
    };
    if names.contains(&name) {
        return Ok(());
    }
    let near = mglru_error::did_you_mean(name, names);
    Err(format!("{name}: no such counter{near}; `mglru list counters` has them"))
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invariants => f.write_str("invariants"),
            Self::Figure { group, name, is, bound } => {
                let group = group.iter().map(|group| format!("{group}:")).collect::<String>();
                write!(f, "{group}{name}{}{bound}", is.sign())
            }
        }
    }
}

impl Break {
    /// Tells whether a look takes so long that it is not taken after every event.
    pub fn is_dear(&self) -> bool {
        *self == Self::Invariants
    }

    /// Tells why the run stops here; none: the condition does not hold.
    ///
    /// # Errors
    /// Names a group that the workload lacks.
    pub fn reached(&self, live: &Live) -> Result<Option<String>, String> {
        let Self::Figure { group, name, is, bound } = self else {
            return Ok(live.invariants().err().map(|broken| format!("invariant broken: {broken}")));
        };
        let figures = match group {
            None => live.counters(),
            Some(path) => live.stat(index(live, path)?),
        };
        let value = figures.iter().find(|(n, _)| n == name).map_or(0, |(_, value)| *value);
        Ok(is.holds(value, *bound).then(|| format!("{self}: {name} is {value}")))
    }
}

fn index(live: &Live, path: &str) -> Result<usize, String> {
    let groups = live.groups();
    groups.iter().position(|group| group == path).ok_or_else(|| {
        let known: Vec<&str> = groups.iter().take(8).map(String::as_str).collect();
        format!("--break {path}: the workload has no such group (it has: {})", known.join(", "))
    })
}

#[cfg(test)]
mod tests;
