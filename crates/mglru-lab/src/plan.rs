//! A plan as typed: one TOML file that says what to run and which published figures it answers to.
//! Reading it checks every key and value that does not depend on a backend; the four sections a
//! backend understands (`machine`, `groups`, `workload`, `reclaim`) stay tables until
//! [`crate::spec`] hands each point of the sweep to it.

pub mod bound;
pub mod expect;
mod read;

use indexmap::IndexMap;
use serde::Deserialize;
use toml::{Table, Value};

pub use bound::Bound;
pub use expect::{Expect, Indicator, Neutral, Published, Watch};

use crate::scale;
use crate::variant::Variant;

/// Bounds the number of seeds that a plan may ask for.
pub const MAX_SEEDS: u64 = 10_000;

/// Holds a plan with its own keys checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Says where it was read from, for messages.
    pub file: String,
    /// Holds the plan as TOML with every `--set` applied, kept beside the records.
    pub source: String,
    /// Names the plan and its output folder.
    pub name: String,
    /// Describes the plan in one line, for lists.
    pub title: String,
    /// Describes the plan in a paragraph, for `mglru show`.
    pub about: String,
    /// Lists backends to use unless the command line names some; several are set side by side.
    pub backends: Vec<String>,
    /// Holds the sections that differ on a backend, by its name (`[on.sim.workload]`).
    pub on: IndexMap<String, Table>,
    /// Names the variant all others are compared with.
    pub base: String,
    /// Lists the variants, in the order they run and are shown.
    pub variants: Vec<Variant>,
    /// Lists the workload's seeds; runs of the same seed are paired.
    pub seeds: Vec<u64>,
    /// Scales machine, limits and workload; 1 is the published size.
    pub scale: f64,
    /// Lists the metrics to compare: counters, metrics, `custom.x`, or quotients such as
    /// `pgpgin/ops`.
    pub metrics: Vec<String>,
    /// Holds the sections `machine`, `groups`, `workload`, `reclaim`.
    pub sections: Table,
    /// Lists the published before/after figures.
    pub published: Vec<Published>,
    /// Lists quantities that must or must not move.
    pub expects: Vec<Expect>,
    /// Lists quantities expected to stay equal.
    pub neutral: Vec<Neutral>,
    /// Lists invariants and rates that give faulty variants away.
    pub indicators: Vec<Indicator>,
    /// Says which variants they must flag.
    pub watch: Watch,
    /// Lists conditions that must hold on every run, for `mglru check`.
    pub bounds: Vec<Bound>,
    /// Says why published figures are missed, where they are.
    pub gap: String,
    /// Says which part a bare `mglru run` makes.
    pub quick: Brief,
    /// Says how `mglru run all` runs it.
    pub all: Brief,
}

/// Selects a part of a plan.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Brief {
    /// Sets the number of seeds; the plan's own when absent.
    pub seeds: Option<u64>,
    /// Sets the scale; the plan's own when absent.
    #[serde(deserialize_with = "scale::deserialize")]
    pub scale: Option<f64>,
    /// Selects variants by name; all when empty.
    pub variants: Vec<String>,
}

impl Brief {
    /// Describes the part for people: `variants before, after, 3 seeds`.
    pub fn text(&self) -> String {
        let variants = self.variants.join(", ");
        let variants = (!variants.is_empty()).then(|| format!("variants {variants}"));
        let seeds = self.seeds.map(|n| format!("{n} {}", if n == 1 { "seed" } else { "seeds" }));
        let scale = self.scale.map(|scale| format!("scale {scale}"));
        [variants, seeds, scale].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Plan {
    /// Returns the plan as it is on a backend: keys of `[on.NAME.SECTION]` in place of the
    /// section's keys; a workload of another kind in place of the whole workload.
    #[must_use]
    pub fn on(mut self, backend: &str) -> Self {
        for (name, changed) in self.on.get(backend).into_iter().flatten() {
            let (section, changed) = (self.sections.get_mut(name), changed.as_table());
            let section = section.and_then(Value::as_table_mut);
            if let (Some(section), Some(changed)) = (section, changed) {
                if name == "workload" && changed.contains_key("kind") {
                    section.clear();
                }
                section.extend(changed.clone());
            }
        }
        self
    }

    /// Tells whether a bare run makes a part of it only.
    pub fn has_quick(&self) -> bool {
        self.quick != Brief::default()
    }

    /// Does it answer to what somebody published: figures, or a failure that comes and goes?
    pub fn is_judged(&self) -> bool {
        let figures = !self.published.is_empty() || !self.neutral.is_empty();
        figures || self.all != Brief::default()
    }
}
