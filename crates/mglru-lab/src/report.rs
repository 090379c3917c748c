//! Everything a run has to say, as one value; `render` turns it into text.

use serde::Serialize;

use crate::absent;
use crate::compare::{self, Comparison, Table};
use crate::fit::Notes;
use crate::indicator::{self, IndicatorResult};
use crate::judge::{self, ControlResult, PublishedResult, Verdict};
use crate::pace;
use crate::plan::Plan;
use crate::record::Record;

/// Holds the result of `mglru run`, in the shape of its JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Names the plan.
    pub plan: String,
    /// Names the backend.
    pub backend: String,
    /// Holds all selected records, in run order.
    pub records: Vec<Record>,
    /// Lists variants of the plan that do not run as they stand, and why.
    #[serde(flatten)]
    pub notes: Notes,
    /// Compares every metric of every variant with the base.
    pub comparisons: Vec<Comparison>,
    /// Sets published figures beside ours.
    pub published: Vec<PublishedResult>,
    /// Lists the controls.
    pub controls: Vec<ControlResult>,
    /// Holds neutral expectations.
    pub neutral: Vec<ControlResult>,
    /// Lists invariants and rates that may give a faulty variant away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indicators: Vec<IndicatorResult>,
    /// Holds the verdict of the whole.
    pub verdict: Verdict,
    /// Says why published figures are missed, as the plan states it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gap: String,
    /// Names metrics of the plan that no record has, a line each.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub absent: String,
}

impl Report {
    /// Judges records against their plan.
    pub fn new(plan: &Plan, backend: &str, records: Vec<Record>) -> Self {
        let table = Table::new(&records);
        let comparisons = compare::all(plan, &table);
        let published = judge::published(plan, &table);
        let indicators = indicator::all(plan, &table);
        let mut controls = judge::controls(plan, &table);
        controls.extend(indicator::checks(plan, &indicators));
        let neutral = judge::neutral(plan, &table);
        let mut report = Self {
            plan: plan.name.clone(),
            backend: backend.to_string(),
            notes: records.first().map(|record| Notes::of(&record.custom)).unwrap_or_default(),
            comparisons,
            published,
            controls,
            neutral,
            indicators,
            verdict: Verdict::NotJudged,
            gap: plan.gap.clone(),
            absent: absent::lines(plan, &records),
            records,
        };
        report.verdict = judge::overall(report.verdicts());
        report
    }

    /// Returns the verdict on each expectation of the plan.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let checks = self.controls.iter().chain(&self.neutral).map(|c| c.verdict);
        self.published.iter().map(|p| p.verdict).chain(checks)
    }

    /// Returns remarks on the run: variants left out or replaced, what decided its pace, and
    /// metrics that no record has.
    pub fn remarks(&self) -> String {
        let customs = self.records.iter().map(|record| &record.custom);
        self.notes.lines(&self.backend) + &pace::line(customs).unwrap_or_default() + &self.absent
    }

    /// Returns `mglru run`'s exit status: 1 when an expectation was missed or a control failed.
    pub fn exit_status(&self) -> u8 {
        u8::from(self.verdict == Verdict::Missed)
    }
}
