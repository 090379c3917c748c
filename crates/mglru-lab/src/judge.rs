//! Verdicts (experiments §0.7). A published change is reproduced when the 95 % paired interval
//! excludes 1 on the right side and the point estimate lies in its band; a neutral one when the
//! 90 % interval lies inside the band (two one-sided tests). One pair has no interval: then the
//! point estimate alone decides and the result says n=1.

use serde::Serialize;

use crate::compare::{Comparison, Table};
use crate::plan::Plan;
use crate::plan::expect::{Direction, Expect, NEUTRAL_BAND, Neutral, Published};
use crate::stats;

/// Names the outcome of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Moves as published, or is a control that held.
    Reproduced,
    /// Does not move as published.
    Missed,
    /// Stays equal within the band.
    Neutral,
    /// Has no expectation, or lacks a variant or counter that it needs.
    NotJudged,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::Missed => "missed",
            Self::Neutral => "neutral",
            Self::NotJudged => "not-judged",
        })
    }
}

/// Sets a published figure beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedResult {
    /// Names the metric.
    pub metric: String,
    /// Names the document that reports it.
    pub seed_document: String,
    /// Names the variant of the published "after".
    #[serde(skip)]
    pub variant: String,
    /// Names the sweep point; absent without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Holds the published figure before.
    pub before: f64,
    /// Holds the published figure after.
    pub after: f64,
    /// Holds the published after/before.
    pub ratio: f64,
    /// Holds the band in which our ratio must lie.
    pub band: [f64; 2],
    /// Holds our ratio; null when it could not be measured.
    pub ours: Option<f64>,
    /// Holds the 95 % interval of our ratio, 90 % where equality is tested; none for one pair.
    #[serde(skip)]
    pub interval: Option<[f64; 2]>,
    /// Counts the pairs behind `ours`.
    pub n: usize,
    /// Holds the verdict.
    pub verdict: Verdict,
}

/// Holds a control or neutral expectation and what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControlResult {
    /// Holds the title of the check.
    pub name: String,
    /// Names the metric.
    pub metric: String,
    /// Names the variant under test.
    pub variant: String,
    /// Names the sweep point; absent without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Holds the band in which the figure must lie.
    pub band: [f64; 2],
    /// Holds our figure: a ratio, a mean or a share; null when it could not be measured.
    pub ours: Option<f64>,
    /// Holds the 90 % interval, where equality is tested.
    #[serde(skip)]
    pub interval: Option<[f64; 2]>,
    /// Holds the verdict.
    pub verdict: Verdict,
}

/// Judges every published figure at every sweep point.
pub fn published(plan: &Plan, table: &Table) -> Vec<PublishedResult> {
    each(&plan.published, table, |p, point| {
        let base = p.base.as_ref().unwrap_or(&plan.base);
        let found = table.compare(&p.metric, base, &p.variant, point);
        PublishedResult {
            metric: p.metric.clone(),
            seed_document: p.document.clone(),
            variant: p.variant.clone(),
            point: point.to_string(),
            before: p.before,
            after: p.after,
            ratio: p.ratio(),
            band: p.band(),
            ours: found.as_ref().and_then(|c| c.ratio),
            interval: found.as_ref().and_then(|c| match p.direction() {
                Direction::None => c.ci90,
                _ => c.ci95,
            }),
            n: found.as_ref().map_or(0, |c| c.n),
            verdict: found.map_or(Verdict::NotJudged, |c| change(p, &c)),
        }
    })
}

/// Judges every control.
pub fn controls(plan: &Plan, table: &Table) -> Vec<ControlResult> {
    each(&plan.expects, table, |c, point| {
        let base = c.base.as_ref().unwrap_or(&plan.base);
        let (band, ours) = control(c, base, table, point);
        ControlResult {
            name: c.name.clone(),
            metric: c.metric.clone(),
            variant: c.variant.clone(),
            point: point.to_string(),
            band,
            ours,
            interval: None,
            verdict: match ours {
                None => Verdict::NotJudged,
                Some(x) if within(band, x) => Verdict::Reproduced,
                Some(_) => Verdict::Missed,
            },
        }
    })
}

/// Judges every neutral expectation.
pub fn neutral(plan: &Plan, table: &Table) -> Vec<ControlResult> {
    each(&plan.neutral, table, |expected, point| {
        let base = expected.base.as_ref().unwrap_or(&plan.base);
        let found = table.compare(&expected.metric, base, &expected.variant, point);
        ControlResult {
            name: format!("{} unchanged", expected.metric),
            metric: expected.metric.clone(),
            variant: expected.variant.clone(),
            point: point.to_string(),
            band: expected.band,
            ours: found.as_ref().and_then(|c| c.ratio),
            interval: found.as_ref().and_then(|c| c.ci90),
            verdict: found.map_or(Verdict::NotJudged, |c| equal(expected.band, &c)),
        }
    })
}

/// Sets the verdict of a comparison: the plan's own expectation comes first.
pub fn comparison(plan: &Plan, mut found: Comparison) -> Comparison {
    let about = |metric: &str, base: &Option<String>, variant: &str| {
        let base = base.as_ref().unwrap_or(&plan.base);
        *metric == found.metric && *base == found.base && *variant == found.variant
    };
    let published = |p: &&Published| about(&p.metric, &p.base, &p.variant);
    let neutral = |n: &&Neutral| about(&n.metric, &n.base, &n.variant);
    let verdict = match (plan.published.iter().find(published), plan.neutral.iter().find(neutral)) {
        (Some(p), _) => change(p, &found),
        (None, Some(n)) => equal(n.band, &found),
        (None, None) => unexpected(&found),
    };
    found.verdict = verdict;
    found
}

/// Judges a comparison for which nothing was expected: `neutral` when equal within the default
/// band.
pub fn unexpected(found: &Comparison) -> Verdict {
    match equal(NEUTRAL_BAND, found) {
        Verdict::Neutral => Verdict::Neutral,
        _ => Verdict::NotJudged,
    }
}

/// Returns one verdict for the whole run: a miss anywhere is a miss.
pub fn overall(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let all: Vec<Verdict> = verdicts.into_iter().collect();
    let order = [Verdict::Missed, Verdict::Reproduced, Verdict::Neutral];
    order.into_iter().find(|v| all.contains(v)).unwrap_or(Verdict::NotJudged)
}

fn change(expected: &Published, found: &Comparison) -> Verdict {
    let Some(ratio) = found.ratio else { return Verdict::NotJudged };
    let [low, high] = found.ci95.unwrap_or([ratio, ratio]);
    let right_side = match expected.direction() {
        Direction::Up => low > 1.0,
        Direction::Down => high < 1.0,
        Direction::None => return equal(expected.band(), found),
    };
    match right_side && within(expected.band(), ratio) {
        true => Verdict::Reproduced,
        false => Verdict::Missed,
    }
}

fn equal(band: [f64; 2], found: &Comparison) -> Verdict {
    if found.base_mean == 0.0 && found.mean == 0.0 {
        return Verdict::Neutral;
    }
    let Some(ratio) = found.ratio else { return Verdict::NotJudged };
    let [low, high] = found.ci90.unwrap_or([ratio, ratio]);
    match within(band, low) && within(band, high) {
        true => Verdict::Neutral,
        false => Verdict::Missed,
    }
}

/// The band of a control and what was found.
fn control(c: &Expect, base: &str, table: &Table, point: &str) -> ([f64; 2], Option<f64>) {
    let log = |variant: &str| table.compare(&c.metric, base, variant, point)?.ratio.map(f64::ln);
    match (c.ratio, c.value, c.share) {
        (Some(band), ..) => (band, log(&c.variant).map(f64::exp)),
        (_, Some(band), _) => {
            let cell = table.cell(&c.variant, point).iter();
            let values: Vec<f64> = cell.filter_map(|r| r.metric(&c.metric)).collect();
            (band, (!values.is_empty()).then(|| stats::mean(&values)))
        }
        (_, _, share) => {
            let whole = c.of.as_deref().and_then(log).filter(|log| *log != 0.0);
            let part = log(&c.variant);
            (share.unwrap_or_default(), part.zip(whole).map(|(part, whole)| part / whole))
        }
    }
}

fn each<T, R>(list: &[T], table: &Table, judge: impl Fn(&T, &str) -> R) -> Vec<R> {
    let points = table.points();
    points.iter().flat_map(|point| list.iter().map(|item| judge(item, point))).collect()
}

fn within([low, high]: [f64; 2], value: f64) -> bool {
    low <= value && value <= high
}

#[cfg(test)]
mod tests;
