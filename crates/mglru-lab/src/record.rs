//! One line of `records.jsonl`, schema 1. Keys keep this order; a counter a backend cannot know is
//! absent. Wall-clock facts are not here, so equal plans, seeds and versions give equal bytes.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Gives the version of the record layout.
pub const SCHEMA: u32 = 1;

/// Gives the version of the program, part of every record.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Names the key in `custom` that names the point of a sweep.
pub const POINT: &str = "point";

/// Holds the result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Holds [`SCHEMA`].
    pub schema: u32,
    /// Names the plan.
    pub plan: String,
    /// Holds the hash of what the plan asks for.
    pub plan_hash: String,
    /// Holds the [`VERSION`] of the program that ran it.
    pub mglru: String,
    /// Names the backend.
    pub backend: String,
    /// Names the variant.
    pub variant: String,
    /// Holds the switches in force.
    pub switches: IndexMap<String, Json>,
    /// Holds the workload's seed.
    pub seed: u64,
    /// Holds the scale of the run.
    pub scale: f64,
    /// Holds operations, rates, latency and virtual time.
    pub metrics: Metrics,
    /// Holds kernel counters: pages, except `pgpgin` and `pgpgout` (KiB).
    pub counters: IndexMap<String, u64>,
    /// Holds figures per group.
    pub groups: IndexMap<String, Group>,
    /// Holds figures that only this workload has, and the sweep point under `point`.
    pub custom: IndexMap<String, Json>,
}

/// Holds figures that every backend gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Counts application operations.
    pub ops: u64,
    /// Holds operations per second of the backend's time.
    pub ops_per_s: f64,
    /// Holds the latency of an operation; absent when the workload has no operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    /// Holds the duration in the backend's time, seconds.
    pub virtual_s: f64,
}

/// Holds the latency of application operations, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// Holds a group's figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Holds the group's `memory.stat`.
    #[serde(rename = "memory.stat")]
    pub memory_stat: IndexMap<String, u64>,
}

impl Group {
    /// Returns a counter of the group. Kernels print `pgscan` and `pgsteal` as totals, the model
    /// by type alone: the total is their sum.
    pub fn counter(&self, name: &str) -> Option<u64> {
        let of = |name: &str| self.memory_stat.get(name).copied();
        let total = || Some(of(&format!("{name}_anon"))? + of(&format!("{name}_file"))?);
        of(name).or_else(|| matches!(name, "pgscan" | "pgsteal").then(total).flatten())
    }
}

impl Record {
    /// Reads one line.
    ///
    /// # Errors
    /// Returns serde's message, or names a schema that this program does not read.
    pub fn parse(line: &str) -> Result<Self, String> {
        let record: Self = serde_json::from_str(line).map_err(|e| e.to_string())?;
        match record.schema {
            SCHEMA => Ok(record),
            other => Err(format!("schema {other}, this program reads {SCHEMA}")),
        }
    }

    /// Returns the record as one line, newline included.
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("records have string keys only");
        line.push('\n');
        line
    }

    /// Returns the name of the sweep point; empty without a sweep.
    pub fn point(&self) -> &str {
        self.custom.get(POINT).and_then(Json::as_str).unwrap_or_default()
    }

    /// Returns the name that the run's files have.
    pub fn run_id(&self) -> String {
        crate::spec::run_id(&self.plan_hash, &self.variant, self.seed, self.point())
    }

    /// Returns the key that distinguishes runs of one plan.
    pub fn key(&self) -> (&str, u64, &str) {
        (&self.variant, self.seed, self.point())
    }

    /// Returns a metric by name: a figure of `metrics` (`latency_us.p99`), a counter, `custom.x`,
    /// `/group:counter`, a counter of a phase (`pgpgin@scan`), or a quotient `a/b` of two of them.
    /// `None` when the record has no such figure or the divisor is 0.
    pub fn metric(&self, name: &str) -> Option<f64> {
        if let Some(value) = self.figure(name) {
            return Some(value);
        }
        let quotient = |(at, _)| {
            let over = self.figure(&name[..at])?;
            let under = self.figure(&name[at + 1..])?;
            (under != 0.0).then(|| over / under)
        };
        name.match_indices('/').find_map(quotient)
    }

    /// A counter, `ops`, `accesses` or `seconds` of a phase: of all that bear its name together.
    fn figure_of_phase(&self, name: &str, phase: &str) -> Option<f64> {
        let phases = self.custom.get("phases")?.as_array()?.iter();
        let of = |of: &Json| of["counters"].get(name).or_else(|| of.get(name))?.as_f64();
        let values: Vec<f64> = phases.filter(|of| of["name"] == phase).filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    fn figure(&self, name: &str) -> Option<f64> {
        if let Some((name, phase)) = name.rsplit_once('@') {
            return self.figure_of_phase(name, phase);
        }
        if let Some(value) = self.counters.get(name) {
            return Some(*value as f64);
        }
        if let Some(custom) = name.strip_prefix("custom.") {
            return self.custom.get(custom)?.as_f64();
        }
        if let Some((group, counter)) = name.split_once(':') {
            return self.groups.get(group)?.counter(counter).map(|v| v as f64);
        }
        self.metrics.figure(name)
    }
}

impl Metrics {
    fn figure(&self, name: &str) -> Option<f64> {
        let latency = self.latency_us.as_ref();
        // Where no time passes (a flat cache) there is no rate.
        let timed = |figure| (self.virtual_s > 0.0).then_some(figure);
        match name {
            "ops" => Some(self.ops as f64),
            "ops_per_s" => timed(self.ops_per_s),
            "virtual_s" => timed(self.virtual_s),
            "latency_us.mean" => latency.map(|l| l.mean),
            "latency_us.p50" => latency.map(|l| l.p50),
            "latency_us.p90" => latency.map(|l| l.p90),
            "latency_us.p95" => latency.map(|l| l.p95),
            "latency_us.p99" => latency.map(|l| l.p99),
            "latency_us.max" => latency.map(|l| l.max),
            _ => None,
        }
    }

    /// JSON has no infinity: a rate that is not finite must not reach a record.
    pub(crate) fn all_finite(&self) -> bool {
        let latency = self.latency_us.as_ref();
        let latency = latency.map_or([0.0; 6], |l| [l.mean, l.p50, l.p90, l.p95, l.p99, l.max]);
        let all = latency.into_iter().chain([self.ops_per_s, self.virtual_s]);
        all.into_iter().all(f64::is_finite)
    }
}

/// Makes a record that tests fill in.
#[doc(hidden)]
pub fn example(variant: &str, seed: u64, ops_per_s: f64) -> Record {
    Record {
        schema: SCHEMA,
        plan: "t".into(),
        plan_hash: "h".into(),
        mglru: VERSION.into(),
        backend: "mock".into(),
        variant: variant.into(),
        switches: IndexMap::new(),
        seed,
        scale: 1.0,
        metrics: Metrics { ops: 10, ops_per_s, latency_us: None, virtual_s: 1.0 },
        counters: IndexMap::from([("pgpgin".to_string(), 40), ("zero".to_string(), 0)]),
        groups: IndexMap::from([(
            "/a".to_string(),
            Group { memory_stat: IndexMap::from([("anon".to_string(), 7)]) },
        )]),
        custom: IndexMap::from([("wt".to_string(), Json::from(2.5))]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_the_published_key_order() {
        let line = example("after", 1, 2.0).line();
        assert!(line.starts_with(
            "{\"schema\":1,\"plan\":\"t\",\"plan_hash\":\"h\",\"mglru\":\"0.1.0\",\"backend\":"
        ));
        assert!(line.contains("\"groups\":{\"/a\":{\"memory.stat\":{\"anon\":7}}}"));
        assert_eq!(Record::parse(&line).unwrap(), example("after", 1, 2.0));
    }

    #[test]
    fn refuses_other_schemas() {
        let line = example("a", 1, 1.0).line().replace("\"schema\":1", "\"schema\":2");
        assert_eq!(Record::parse(&line).unwrap_err(), "schema 2, this program reads 1");
    }

    #[test]
    fn metrics_by_name() {
        let mut r = example("a", 1, 5.0);
        assert_eq!(r.metric("pgpgin"), Some(40.0));
        assert_eq!(r.metric("pgpgin/ops"), Some(4.0));
        assert_eq!(r.metric("custom.wt/ops"), Some(0.25));
        assert_eq!(r.metric("/a:anon"), Some(7.0));
        assert_eq!(r.metric("/a:anon/ops"), Some(0.7));
        assert_eq!(r.metric("/a:pgsteal"), None);
        let by_type = [("pgsteal_anon", 1), ("pgsteal_file", 2)].map(|(n, v)| (n.to_string(), v));
        r.groups["/a"].memory_stat.extend(by_type);
        assert_eq!(r.metric("/a:pgsteal"), Some(3.0));
        assert_eq!(r.metric("ops/zero"), None);
        assert_eq!(r.metric("pswpin"), None);
    }
}
