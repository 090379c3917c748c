//! A backend whose result is written in its spec: it tests everything above the seam with figures
//! a reader can check by hand. `--backend mock` needs `workload.kind = "mock"`.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value as Json;
use toml::Table;

use super::{Backend, Failure, Job, Outcome, Progress, Sections};
use crate::record::{Group, Latency, Metrics};
use crate::typed;
use crate::variant::Variant;
use mglru_error::{KeyError, did_you_mean};

/// Answers each run with the result written in its spec.
pub struct Mock;

/// `[workload]` of a mock plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    #[allow(dead_code)]
    kind: Kind,
    /// Operations of a run.
    ops: u64,
    /// Rate of the variant the plan's factors are relative to.
    ops_per_s: f64,
    /// Counters at factor 1.
    #[serde(default)]
    counters: IndexMap<String, u64>,
    /// By variant: factor of the rate, and its inverse for counters.
    #[serde(default)]
    factor: IndexMap<String, f64>,
    /// Relative deviation of the rate by seed: entry `seed mod len`.
    #[serde(default)]
    noise: Vec<f64>,
    /// A free parameter for sweeps; multiplies the rate.
    #[serde(default = "one")]
    load: f64,
    /// The run fails with this message.
    fail: Option<String>,
    /// The machine does, as one that does not boot.
    unbooted: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Mock,
}

struct MockJob {
    spec: Spec,
    variant: Variant,
    groups: Vec<String>,
}

impl Backend for Mock {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn variants(&self) -> Vec<(String, String)> {
        let named = |name: &str| (name.to_string(), "mock variant".to_string());
        ["classic", "before", "after"].map(named).to_vec()
    }

    fn switches(&self) -> Vec<(String, String)> {
        vec![("p10".to_string(), "mock switch".to_string())]
    }

    fn workloads(&self) -> Vec<(String, String)> {
        vec![("mock".to_string(), "answers what its spec says".to_string())]
    }

    fn prepare(&self, sections: &Sections, variant: &Variant) -> Result<Arc<dyn Job>, KeyError> {
        known_keys("machine", &sections.machine, &["memory"])?;
        known_keys("reclaim", &sections.reclaim, &["swappiness"])?;
        let names = self.variants();
        if !names.iter().any(|(name, _)| *name == variant.base) {
            let near = did_you_mean(&variant.base, names.iter().map(|(n, _)| n.as_str()));
            return Err(KeyError::value("variant", &variant.base, format!("unknown{near}")));
        }
        let spec: Result<Spec, KeyError> = typed::from_table(sections.workload.clone());
        let mut spec = spec.map_err(|e| e.within("workload"))?;
        spec.ops = (spec.ops as f64 * sections.scale).round() as u64;
        let groups = sections.groups.keys().cloned().collect();
        Ok(Arc::new(MockJob { spec, variant: variant.clone(), groups }))
    }
}

impl Job for MockJob {
    fn switches(&self) -> IndexMap<String, Json> {
        let json = |v: &toml::Value| serde_json::to_value(v).unwrap_or(Json::Null);
        self.variant.set.iter().map(|(key, value)| (key.clone(), json(value))).collect()
    }

    fn run(&self, seed: u64, progress: Progress) -> Result<Outcome, String> {
        if let Some(message) = self.spec.fail.as_ref().or(self.spec.unbooted.as_ref()) {
            return Err(message.clone());
        }
        progress(0.5);
        let factor = self.spec.factor.get(&self.variant.name).copied().unwrap_or(1.0);
        let noise = match self.spec.noise.len() {
            0 => 0.0,
            len => self.spec.noise[(seed % len as u64) as usize],
        };
        let rate = self.spec.ops_per_s * self.spec.load * factor * (1.0 + noise);
        let us = 1e6 / rate;
        let scaled = |(name, value): (&String, &u64)| {
            (name.clone(), (*value as f64 / factor).round() as u64)
        };
        Ok(Outcome {
            metrics: Metrics {
                ops: self.spec.ops,
                ops_per_s: rate,
                latency_us: Some(Latency { mean: us, p50: us, p90: us, p95: us, p99: us, max: us }),
                virtual_s: self.spec.ops as f64 / rate,
            },
            counters: self.spec.counters.iter().map(scaled).collect(),
            groups: self.groups.iter().map(|g| (g.clone(), Group::default())).collect(),
            custom: IndexMap::from([("load".to_string(), Json::from(self.spec.load))]),
        })
    }

    fn run_keeping(&self, seed: u64, progress: Progress, _: &Path) -> Result<Outcome, Failure> {
        let blamed = match self.spec.unbooted {
            Some(_) => Failure::Machine,
            None => Failure::Input,
        };
        self.run(seed, progress).map_err(blamed)
    }
}

fn known_keys(section: &str, table: &Table, known: &[&str]) -> Result<(), KeyError> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(KeyError::unknown(key, known.iter().copied()).within(section)),
        None => Ok(()),
    }
}

fn one() -> f64 {
    1.0
}
