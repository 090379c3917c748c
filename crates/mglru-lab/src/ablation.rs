//! Ablations: which patch of the 2026 series does what (spec §10.3). Each patch is compared with
//! its absence in up to three ways, patches that it needs and that need it going along, and each
//! prediction of the specification is confirmed, contradicted or not seen at this scale.
//!
//! [`arms`] says what to compare, [`Ablation::new`] what records say about it.

mod effect;
mod graph;
pub mod mechanisms;
mod predictions;
mod span;

use serde::Serialize;

pub use effect::{Effect, Finding};
pub use graph::{dependents, needed};
pub use predictions::{ALL_COUNTERS, Expected, PREDICTIONS, Prediction};
pub use span::Span;

use crate::compare::Table;
use crate::plan::Plan;
use crate::policy;
use crate::record::Record;
use crate::variant::Variant;
use mglru_error::KeyError;

/// Says how a patch is set against its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Adds one more after the other, from the first variant to the second
    Cumulative,
    /// Runs the first variant and what a patch needs, without and with it
    OneIn,
    /// Runs the second variant without a patch and what needs it
    LeaveOneOut,
    /// Sets versions 2, 4, 5 and 7 of the series side by side
    Versions,
}

impl Mode {
    /// Lists all of them.
    pub const ALL: [Mode; 4] = [Mode::Cumulative, Mode::OneIn, Mode::LeaveOneOut, Mode::Versions];

    /// Returns the name that the command line takes.
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self).expect("none is hidden");
        value.get_name().to_string()
    }
}

/// Names versions of the series and the variants that stand for them; the last is the base.
pub const VERSIONS: [(&str, &str); 4] = [("v2", "v2"), ("v4", "v4"), ("v5", "v5"), ("v7", "after")];

/// Describes two variants that differ by one patch, and by the patches that go along with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Names the patch.
    pub patch: String,
    /// Names the way in which the two come about.
    pub mode: Mode,
    /// Names the variant without the patch.
    pub without: String,
    /// Names the variant with it.
    pub with: String,
    /// Names the patches that go along with it: it cannot be left out alone.
    pub along: Vec<String>,
}

/// Describes a patch, or rule, that one of two variants has.
#[derive(Clone, Debug)]
struct Step {
    name: String,
    /// The second variant has it, and not the first.
    is_added: bool,
}

/// Lists the pairs to compare.
///
/// # Errors
/// When a variant is unknown, when the two do not differ in a patch, or have another LRU.
pub fn arms(modes: &[Mode], from: &str, to: &str) -> Result<Vec<Arm>, KeyError> {
    let steps = steps(from, to)?;
    let all = modes.iter().flat_map(|&mode| steps.iter().map(move |step| (mode, step)));
    Ok(all.filter_map(|(mode, step)| arm(mode, step, &steps, from, to)).collect())
}

/// Sets a patch against its absence. One that only the first variant has is looked at the same way:
/// what it does, not what its going does.
fn arm(mode: Mode, step: &Step, steps: &[Step], from: &str, to: &str) -> Option<Arm> {
    let place = |s: &Step| steps.iter().position(|other| other.name == s.name);
    let takes = |of: &dyn Fn(&Step) -> bool, end: &str, towards: bool| {
        let taken = steps.iter().filter(|s| of(s));
        taken.fold(end.to_string(), |name, s| name + &s.switch(towards))
    };
    let on = |of: &dyn Fn(&Step) -> bool| takes(of, from, true);
    let back = |of: &dyn Fn(&Step) -> bool| takes(of, to, false);
    let is_it = |s: &Step| s.name == step.name;
    let needs = |s: &Step| s.is_added == step.is_added && graph::needs(&step.name, &s.name);
    let goes = |s: &Step| s.is_added == step.is_added && graph::needs(&s.name, &step.name);
    let along = || steps.iter().filter(|s| goes(s)).map(|s| s.name.clone()).collect();
    let [without, with] = match (mode, step.is_added) {
        (Mode::Cumulative, true) => {
            [on(&|s| place(s) < place(step)), on(&|s| place(s) <= place(step))]
        }
        (Mode::Cumulative, false) => {
            [on(&|s| place(s) <= place(step)), on(&|s| place(s) < place(step))]
        }
        (Mode::OneIn, true) => [on(&needs), on(&|s| is_it(s) || needs(s))],
        (Mode::OneIn, false) => [on(&|s| is_it(s) || goes(s)), from.to_string()],
        (Mode::LeaveOneOut, true) => [back(&|s| is_it(s) || goes(s)), to.to_string()],
        (Mode::LeaveOneOut, false) => [back(&needs), back(&|s| is_it(s) || needs(s))],
        (Mode::Versions, _) => return None,
    };
    // Where a variant loses it, what needs it goes with it.
    let is_lost = matches!((mode, step.is_added), (Mode::OneIn, false) | (Mode::LeaveOneOut, true));
    let along = if is_lost { along() } else { Vec::new() };
    Some(Arm { patch: step.name.clone(), mode, without, with, along })
}

impl Step {
    /// Writes the switch that takes a variant on to the second one, or back to the first.
    fn switch(&self, towards: bool) -> String {
        let off = if self.is_added == towards { "" } else { "=false" };
        format!("+{}{off}", self.name)
    }
}

/// Returns the names of all variants to run, each once.
pub fn variants(arms: &[Arm], modes: &[Mode]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let versions = modes.contains(&Mode::Versions).then_some(VERSIONS.iter());
    let versions = versions.into_iter().flatten().map(|(_, variant)| variant.to_string());
    let of_arms = arms.iter().flat_map(|arm| [arm.without.clone(), arm.with.clone()]);
    for name in of_arms.chain(versions) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Lists the steps from a variant to another: what the second has besides, in the order of the
/// series, then what it lacks, the last of the series first.
fn steps(from: &str, to: &str) -> Result<Vec<Step>, KeyError> {
    let config = |name: &str| {
        let variant = Variant::parse(name).map_err(|e| KeyError::value("variant", name, e))?;
        policy::config(&toml::Table::new(), &variant)
    };
    let (before, after) = (config(from)?, config(to)?);
    if before.lru != after.lru {
        let problem = format!("is another LRU than {from}: no patch makes one the other");
        return Err(KeyError::value("--to", to, problem));
    }
    let states = |of: &mglru::Config| [of.patches.states(), of.releases.states()].concat();
    let (before, after) = (states(&before), states(&after));
    let differ = before.iter().zip(&after).filter(|(b, a)| b.1 != a.1);
    let step = |(_, (name, on)): (_, &(&str, bool))| Step { name: name.to_string(), is_added: *on };
    let (added, mut gone): (Vec<Step>, Vec<Step>) = differ.map(step).partition(|s| s.is_added);
    gone.reverse();
    match added.is_empty() && gone.is_empty() {
        true => Err(KeyError::value("--to", to, format!("no patch distinguishes it from {from}"))),
        false => Ok([added, gone].concat()),
    }
}

/// Holds the findings of an ablation, in the shape of its JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct Ablation {
    /// Names the plan.
    pub plan: String,
    /// Names the variant without the patches.
    pub from: String,
    /// Names the variant with them.
    pub to: String,
    /// Holds one row per prediction and sweep point.
    pub predictions: Vec<Row>,
    /// Holds the plan's figures under each version of the series.
    pub versions: Vec<VersionRow>,
}

/// Holds one prediction and what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Names the patch.
    pub patch: String,
    /// Names the patches that it needs.
    pub needs: Vec<&'static str>,
    /// Names the figure that it is said to move.
    pub metric: &'static str,
    /// Holds the predicted direction.
    pub expected: Expected,
    /// Names the sweep point; absent without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Holds the result of each comparison.
    pub cells: Vec<Cell>,
    /// Holds the joint result; a comparison that other patches went along with does not count.
    pub finding: Finding,
}

/// Holds the result of a prediction in one comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Names the way in which the patch was set against its absence.
    pub mode: Mode,
    /// Names the patches that went along with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<String>,
    /// Holds the figure on both sides, where it is one figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Names the first counter that moved where nothing should change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<String>,
    /// Holds the result of the comparison.
    pub finding: Finding,
}

/// Holds a figure under each version of the series.
#[derive(Clone, Debug, Serialize)]
pub struct VersionRow {
    /// Names the figure.
    pub metric: String,
    /// Names the sweep point; absent without a sweep.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Holds per version its name, and the figure beside that of version 7.
    pub versions: Vec<(&'static str, Option<Effect>)>,
}

impl Ablation {
    /// Judges the records of `arms`.
    pub fn new(plan: &Plan, arms: &[Arm], ends: [&str; 2], records: &[Record]) -> Self {
        let table = Table::new(records);
        let points = table.points();
        let rows = |point: &String| rows(arms, &table, point);
        let versions = |point: &String| versions(plan, &table, point);
        Self {
            plan: plan.name.clone(),
            from: ends[0].to_string(),
            to: ends[1].to_string(),
            predictions: points.iter().flat_map(rows).collect(),
            versions: points.iter().flat_map(versions).collect(),
        }
    }
}

fn rows(arms: &[Arm], table: &Table, point: &str) -> Vec<Row> {
    let about = |p: &&Prediction| arms.iter().any(|arm| arm.patch == p.patch);
    PREDICTIONS.iter().filter(about).map(|prediction| row(prediction, arms, table, point)).collect()
}

fn row(prediction: &Prediction, arms: &[Arm], table: &Table, point: &str) -> Row {
    let of_patch = arms.iter().filter(|arm| arm.patch == prediction.patch);
    let cells: Vec<Cell> = of_patch.map(|arm| cell(prediction, arm, table, point)).collect();
    let alone = cells.iter().filter(|cell| cell.along.is_empty());
    let findings: Vec<Finding> = alone.map(|cell| cell.finding).collect();
    Row {
        patch: prediction.patch.to_string(),
        needs: needed(prediction.patch),
        metric: prediction.metric,
        expected: prediction.expected,
        point: point.to_string(),
        cells,
        finding: Finding::together(&findings),
    }
}

fn cell(prediction: &Prediction, arm: &Arm, table: &Table, point: &str) -> Cell {
    let sides = [arm.without.as_str(), arm.with.as_str()];
    let cell = Cell {
        mode: arm.mode,
        along: arm.along.clone(),
        effect: None,
        moved: None,
        finding: Finding::NotJudged,
    };
    if prediction.metric == ALL_COUNTERS {
        let found = effect::of_all(table, sides, point);
        let (finding, moved) = found.unwrap_or((Finding::NotJudged, None));
        return Cell { moved, finding, ..cell };
    }
    let effect = effect::of_metric(table, prediction.metric, prediction.expected, sides, point);
    let finding = effect.as_ref().map_or(Finding::NotJudged, |effect| effect.finding);
    Cell { effect, finding, ..cell }
}

/// The plan's metrics, and how reclaim went about it.
fn versions(plan: &Plan, table: &Table, point: &str) -> Vec<VersionRow> {
    const HOW: [&str; 3] = ["aging_passes", "reclaim_passes", "slabs_scanned"];
    let base = VERSIONS[VERSIONS.len() - 1].1;
    let effect = |metric: &str, variant: &str| {
        effect::of_metric(table, metric, Expected::Same, [base, variant], point)
    };
    let more = HOW.into_iter().filter(|more| !plan.metrics.iter().any(|m| m == more));
    let metrics = plan.metrics.iter().map(String::as_str).chain(more);
    let row = |metric: &str| VersionRow {
        metric: metric.to_string(),
        point: point.to_string(),
        versions: VERSIONS.map(|(name, variant)| (name, effect(metric, variant))).to_vec(),
    };
    let ran = |row: &VersionRow| row.versions.iter().any(|(_, effect)| effect.is_some());
    let named = VERSIONS.iter().any(|(_, v)| *v != base && !table.cell(v, point).is_empty());
    metrics.filter(|_| named).map(row).filter(ran).collect()
}

#[cfg(test)]
#[path = "ablation/tests.rs"]
mod tests;
