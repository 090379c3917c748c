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

/// Lists the pairs to compare.
///
/// # Errors
/// When a variant is unknown, when the two do not differ in a patch, or when `to` lacks one of
/// `from`.
pub fn arms(modes: &[Mode], from: &str, to: &str) -> Result<Vec<Arm>, KeyError> {
    let patches = added(from, to)?;
    let all = modes.iter().flat_map(|&mode| patches.iter().map(move |patch| (mode, patch)));
    Ok(all.filter_map(|(mode, patch)| arm(mode, patch, &patches, from, to)).collect())
}

fn arm(mode: Mode, patch: &str, patches: &[String], from: &str, to: &str) -> Option<Arm> {
    let plus = |keep: &dyn Fn(&str) -> bool| {
        let kept = patches.iter().filter(|p| keep(p));
        kept.fold(from.to_string(), |name, patch| format!("{name}+{patch}"))
    };
    let place = |name: &str| patches.iter().position(|p| p == name);
    let (without, with, along) = match mode {
        Mode::Cumulative => {
            let without = plus(&|name| place(name) < place(patch));
            (without, plus(&|name| place(name) <= place(patch)), Vec::new())
        }
        Mode::OneIn => {
            let without = plus(&|name| graph::needs(patch, name));
            (without, plus(&|name| name == patch || graph::needs(patch, name)), Vec::new())
        }
        Mode::LeaveOneOut => {
            let goes = |name: &&String| graph::needs(name, patch);
            let along: Vec<String> = patches.iter().filter(goes).cloned().collect();
            let out = patches.iter().filter(|name| *name == patch || along.contains(name));
            let without = out.fold(to.to_string(), |name, out| format!("{name}+{out}=false"));
            (without, to.to_string(), along)
        }
        Mode::Versions => return None,
    };
    Some(Arm { patch: patch.to_string(), mode, without, with, along })
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

/// Patches that `to` has on top of `from`, in the order of the series.
fn added(from: &str, to: &str) -> Result<Vec<String>, KeyError> {
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
    let differ = || before.iter().zip(&after).filter(|(b, a)| b.1 != a.1).map(|(_, a)| *a);
    if let Some((lacks, _)) = differ().find(|(_, on)| !on) {
        return Err(KeyError::value("--to", to, format!("lacks {lacks}, which {from} has")));
    }
    let added: Vec<String> = differ().map(|(name, _)| name.to_string()).collect();
    match added.is_empty() {
        true => Err(KeyError::value("--to", to, format!("no patch distinguishes it from {from}"))),
        false => Ok(added),
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
