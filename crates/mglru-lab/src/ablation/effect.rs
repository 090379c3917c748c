//! The effect of one patch on one figure: two cells of records, and what they say of a prediction.

use serde::Serialize;

use super::predictions::Expected;
use crate::compare::{self, Table};
use crate::record::Record;
use crate::stats::{self, DIRECTION, Paired};

/// Says whether a prediction was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Says that the 95 % interval lies on the predicted side.
    Confirmed,
    /// Says that the interval lies on the other side; or that something changed where nothing
    /// should.
    Contradicted,
    /// Says that the interval holds both, or nothing moved: not seen at this scale.
    NotSeen,
    /// Says that one comparison confirms and another contradicts.
    Mixed,
    /// Says that there are fewer than two seeds, or that the records do not have the figure.
    NotJudged,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Confirmed => "confirmed",
            Self::Contradicted => "contradicted",
            Self::NotSeen => "not seen",
            Self::Mixed => "mixed",
            Self::NotJudged => "not judged",
        })
    }
}

impl Finding {
    /// Joins the findings of all comparisons.
    pub fn together(all: &[Self]) -> Self {
        let found = |finding| all.contains(&finding);
        match (found(Self::Confirmed), found(Self::Contradicted)) {
            (true, true) => Self::Mixed,
            (true, false) => Self::Confirmed,
            (false, true) => Self::Contradicted,
            (false, false) if found(Self::NotSeen) => Self::NotSeen,
            (false, false) => Self::NotJudged,
        }
    }
}

/// Holds a figure without a patch and with it, paired by seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Holds the mean without the patch.
    pub without: f64,
    /// Holds the mean with it.
    pub with: f64,
    /// Holds the geometric mean of with/without and its 95 % interval; absent where a value is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Holds the mean difference.
    pub difference: f64,
    /// Holds the 95 % interval of the ratio, or of the difference where there is no ratio.
    pub interval: Option<[f64; 2]>,
    /// Counts the pairs.
    pub n: usize,
    /// Holds the finding of the comparison.
    pub finding: Finding,
}

/// Compares a metric of a variant with a variant that lacks the patch; `None`: no pair has it.
pub fn of_metric(
    table: &Table,
    metric: &str,
    expected: Expected,
    [without, with]: [&str; 2],
    point: &str,
) -> Option<Effect> {
    let pairs = compare::pairs(metric, table.cell(without, point), table.cell(with, point));
    (!pairs.is_empty()).then(|| from_pairs(&pairs, expected))
}

/// Compares the second value of each pair with the first where nothing was predicted.
pub fn unpredicted(pairs: &[(f64, f64)]) -> Effect {
    from_pairs(pairs, Expected::Same)
}

fn from_pairs(pairs: &[(f64, f64)], expected: Expected) -> Effect {
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
    let paired = Paired::new(pairs);
    let ratios = paired.as_ref().and_then(|p| p.interval(DIRECTION));
    let (interval, nothing) = match ratios {
        Some(ratios) => (Some(ratios), 1.0),
        None => (stats::interval(&differences, DIRECTION), 0.0),
    };
    Effect {
        without: stats::mean(&before),
        with: stats::mean(&after),
        ratio: paired.map(|p| p.ratio()),
        difference: stats::mean(&differences),
        interval,
        n: pairs.len(),
        finding: interval.map_or(Finding::NotJudged, |i| finding(expected, i, nothing)),
    }
}

/// On which side of `nothing`, the value that says "no effect", the interval lies.
fn finding(expected: Expected, [low, high]: [f64; 2], nothing: f64) -> Finding {
    let (up, down) = (low > nothing, high < nothing);
    match expected {
        Expected::Up if up => Finding::Confirmed,
        Expected::Down if down => Finding::Confirmed,
        Expected::Same if !up && !down => Finding::Confirmed,
        _ if up || down => Finding::Contradicted,
        _ => Finding::NotSeen,
    }
}

/// Compares all figures of a variant with one that lacks the patch; names the first that differs.
pub fn of_all(
    table: &Table,
    [without, with]: [&str; 2],
    point: &str,
) -> Option<(Finding, Option<String>)> {
    let (before, after) = (table.cell(without, point), table.cell(with, point));
    let mut pairs: Vec<(&Record, &Record)> = Vec::new();
    for a in before {
        pairs.extend(after.iter().find(|b| b.seed == a.seed).map(|b| (*a, *b)));
    }
    let moved = pairs.iter().find_map(|(a, b)| first_difference(a, b));
    match (pairs.is_empty(), moved) {
        (true, _) => None,
        (false, None) => Some((Finding::Confirmed, None)),
        (false, moved) => Some((Finding::Contradicted, moved)),
    }
}

/// The first counter that two records do not share.
fn first_difference(a: &Record, b: &Record) -> Option<String> {
    let differs = |(name, value): (&String, &u64)| b.counters.get(name) != Some(value);
    let counter = a.counters.iter().find(|&(name, value)| differs((name, value)));
    let other = || (a.metrics != b.metrics).then(|| "metrics".to_string());
    counter.map(|(name, _)| name.clone()).or_else(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    #[test]
    fn an_interval_on_one_side_confirms_or_contradicts() {
        let rising = [(10.0, 11.0), (10.0, 12.0), (10.0, 11.5)];
        assert_eq!(from_pairs(&rising, Expected::Up).finding, Finding::Confirmed);
        assert_eq!(from_pairs(&rising, Expected::Down).finding, Finding::Contradicted);
        assert_eq!(from_pairs(&rising, Expected::Same).finding, Finding::Contradicted);
        let noisy = [(10.0, 11.0), (10.0, 9.0), (10.0, 10.2)];
        assert_eq!(from_pairs(&noisy, Expected::Up).finding, Finding::NotSeen);
    }

    #[test]
    fn what_is_zero_is_judged_by_differences() {
        let from_nothing = [(0.0, 5.0), (0.0, 6.0), (0.0, 5.5)];
        let effect = from_pairs(&from_nothing, Expected::Up);
        assert_eq!((effect.ratio, effect.finding), (None, Finding::Confirmed));
        let still = from_pairs(&[(0.0, 0.0), (0.0, 0.0)], Expected::Down);
        assert_eq!((still.interval, still.finding), (Some([0.0, 0.0]), Finding::NotSeen));
    }

    #[test]
    fn one_seed_judges_nothing() {
        assert_eq!(from_pairs(&[(1.0, 2.0)], Expected::Up).finding, Finding::NotJudged);
    }

    #[test]
    fn comparisons_that_disagree_are_mixed() {
        use Finding::{Confirmed, Contradicted, Mixed, NotJudged, NotSeen};
        assert_eq!(Finding::together(&[Confirmed, NotSeen]), Confirmed);
        assert_eq!(Finding::together(&[Confirmed, Contradicted]), Mixed);
        assert_eq!(Finding::together(&[NotJudged, NotSeen]), NotSeen);
        assert_eq!(Finding::together(&[]), NotJudged);
    }

    #[test]
    fn equal_runs_are_the_same_and_a_counter_that_moved_is_named() {
        let mut moved = example("c", 1, 1.0);
        moved.counters.insert("pgpgin".to_string(), 41);
        let records = [example("a", 1, 1.0), example("b", 1, 1.0), moved];
        let table = Table::new(&records);
        assert_eq!(of_all(&table, ["a", "b"], ""), Some((Finding::Confirmed, None)));
        let counter = Some("pgpgin".to_string());
        assert_eq!(of_all(&table, ["a", "c"], ""), Some((Finding::Contradicted, counter)));
        assert_eq!(of_all(&table, ["a", "d"], ""), None);
    }
}
