//! Verdicts of all versions, and the JSON document that scripts read.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answers::{Answer, Moved};
use super::bounds::{self, Bound};
use super::generations::Windows;
use super::replay::{Measured, Prepared};
use super::verdict::{Compared, Direction, Summary, Verdicts, summaries};
use mglru_lab::backend::kernel::version;
use mglru_lab::record::Record;

/// Sets one version of the kernel beside the model.
#[derive(Clone, Debug)]
pub struct Release {
    /// Names the version.
    pub version: String,
    /// Names the variant of the model that has its rules; `None`: none has.
    pub rules: Option<&'static str>,
    /// Tells how they compare.
    pub verdicts: Verdicts,
}

/// Puts all versions together, in their order.
#[derive(Clone, Debug)]
pub struct Report {
    /// Holds the versions.
    pub releases: Vec<Release>,
    /// Says whether errors are within bounds.
    pub bounds: Vec<Bound>,
    /// Says what each release changes.
    pub steps: Vec<bounds::Moved>,
}

/// Sums up, by counter, the runs with the multi-gen LRU on and off.
#[derive(Serialize)]
struct Lrus {
    on: BTreeMap<String, Summary>,
    off: BTreeMap<String, Summary>,
}

/// Says which version a finding is about.
#[derive(Serialize)]
struct Of<'a, T> {
    version: &'a str,
    #[serde(flatten)]
    found: &'a T,
}

#[derive(Serialize)]
struct Document<'a> {
    runs: Vec<&'a Compared>,
    summary: BTreeMap<String, Summary>,
    versions: BTreeMap<&'a str, Lrus>,
    bounds: &'a [Bound],
    steps: &'a [bounds::Moved],
    directions: Vec<Of<'a, Direction>>,
    answers: Vec<Of<'a, Answer>>,
    moved: Vec<Of<'a, Moved>>,
    windows: Vec<Of<'a, Windows>>,
    left_out: BTreeMap<&'a str, &'a BTreeMap<String, String>>,
}

impl Report {
    /// Compares the records of the model with what was measured, version by version.
    pub fn new(prepared: &Prepared, records: &[Record]) -> Self {
        let of = |m: &Measured| (version::numbers(&m.version), m.version.clone());
        let left_out = prepared.left_out.iter().map(|(measured, _)| measured);
        let mut versions: Vec<_> = prepared.jobs.iter().chain(left_out).map(of).collect();
        versions.sort();
        versions.dedup();
        let releases = versions.into_iter().map(|(_, v)| Release::new(v, prepared, records));
        Self::of(releases.collect())
    }

    /// Judges versions together.
    pub fn of(mut releases: Vec<Release>) -> Self {
        bounds::leave_out_chance(&mut releases);
        let (bounds, steps) = (bounds::bounds(&releases), bounds::moved(&releases));
        Self { releases, bounds, steps }
    }

    /// Tells whether the model moves a counter the wrong way, or is out of bounds.
    pub fn is_wrong(&self) -> bool {
        let out = self.bounds.iter().any(|bound| !bound.holds);
        let back = self.steps.iter().any(|step| !step.right);
        out || back || self.releases.iter().any(|r| r.verdicts.wrong().next().is_some())
    }

    /// Writes one JSON document.
    pub fn json(&self) -> String {
        mglru_lab::render::json(&self.document())
    }

    fn document(&self) -> Document<'_> {
        let runs: Vec<&Compared> = self.releases.iter().flat_map(|r| &r.verdicts.runs).collect();
        let lrus = |v: &Verdicts| Lrus { on: v.with_lru(true), off: v.with_lru(false) };
        let all = || self.releases.iter().map(|r| (r.version.as_str(), &r.verdicts));
        Document {
            summary: summaries(runs.iter().copied()),
            versions: all().map(|(version, verdicts)| (version, lrus(verdicts))).collect(),
            bounds: &self.bounds,
            steps: &self.steps,
            directions: self.each(|v| &v.directions),
            answers: self.each(|v| &v.answers),
            moved: self.each(|v| &v.moved),
            windows: self.each(|v| &v.windows),
            left_out: all().map(|(version, verdicts)| (version, &verdicts.left_out)).collect(),
            runs,
        }
    }

    fn each<'a, T: 'a>(&'a self, of: fn(&'a Verdicts) -> &'a Vec<T>) -> Vec<Of<'a, T>> {
        let found = |release: &'a Release| {
            let version = release.version.as_str();
            of(&release.verdicts).iter().map(move |found| Of { version, found })
        };
        self.releases.iter().flat_map(found).collect()
    }
}

impl Release {
    fn new(version: String, prepared: &Prepared, records: &[Record]) -> Self {
        let pairs = prepared.jobs.iter().zip(records);
        let (jobs, records): (Vec<_>, Vec<_>) = pairs
            .filter(|(m, _)| m.version == version)
            .map(|(m, r)| (m.clone(), r.clone()))
            .unzip();
        let left_out = prepared.left_out.iter().filter(|(m, _)| m.version == version);
        let left_out: Vec<_> = left_out.cloned().collect();
        let rules = version::rules(&version).ok();
        Self { rules, verdicts: Verdicts::new(&jobs, &records, &left_out), version }
    }

    /// Titles the version: `Linux 7.1.13 in the model as k7.1`.
    pub fn title(&self) -> String {
        match self.rules {
            Some(rules) => format!("Linux {} in the model as {rules}", self.version),
            None => format!("Linux {}: not in the model", self.version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{measured, prepare};
    use crate::truth::load;
    use crate::{text, texts::Text};
    use indexmap::IndexMap;

    fn prepared() -> Prepared {
        let line = |kernel: &str, lru: u8, faults: u64| {
            format!(
                "{{\"id\":\"x.loop.{}.s1.r0\",\"exp\":\"x\",\"variant\":\"loop\",\"mglru\":{lru},\
                 \"seed\":1,\"mem_mb\":64,\"kernel\":\"{kernel}\",\"spec\":\"seed 1\\nregion \
                 kind=mmap path=/f pages=64\\nstream region=0 gen=seq n=64 base=0 start=0 wr=0\\n\
                 phase main ops=64 mix=0:1\\n\",\"steps\":[{{\"ops\":64,\"sec\":0.1,\"d\":\
                 {{\"pgmajfault\":{faults}}},\"vm\":{{\"pgpgin\":800}}}}]}}\n",
                if lru == 1 { "on" } else { "off" }
            )
        };
        let kernels = ["7.2.12+deb", "7.1.13+deb", "5.4.1"];
        let lines = kernels.map(|kernel| line(kernel, 1, 1000) + &line(kernel, 0, 500));
        let text = Text { name: "t".into(), text: lines.concat() };
        prepare(measured(load(&[text]).unwrap()))
    }

    fn report() -> Report {
        let prepared = prepared();
        let record = |at: usize| {
            let mut record = mglru_lab::record::example("x", 1, 1.0);
            let faults = [1000, 500, 900, 250][at];
            record.counters = IndexMap::from([("pgmajfault".to_string(), faults)]);
            record.counters.insert("pgpgin".to_string(), 840);
            record
        };
        let records: Vec<Record> = (0..prepared.jobs.len()).map(record).collect();
        Report::new(&prepared, &records)
    }

    #[test]
    fn every_version_is_judged_by_itself() {
        let document = serde_json::to_value(report().document()).unwrap();
        let run = &document["runs"][0];
        assert_eq!((&run["version"], &run["mglru"]), (&"7.1.13".into(), &true.into()));
        let error = |version: &str, lru: &str, counter: &str| {
            document["versions"][version][lru][counter]["median_abs_rel_error"].as_f64()
        };
        assert_eq!(error("7.1.13", "on", "pgmajfault"), Some(0.0));
        assert_eq!(error("7.2.12", "on", "pgmajfault"), Some(0.1));
        assert_eq!(error("7.2.12", "off", "all"), Some(0.5));
        assert_eq!(error("7.2.12", "off", "reads"), Some(0.05));
        assert_eq!(document["summary"]["all"]["n"], 4);
        assert_eq!(document["directions"][1]["version"], "7.2.12");
        let unknown = "no variant of the model has the rules of Linux 5.4.1";
        assert_eq!(document["left_out"]["5.4.1"]["x.loop"], unknown);
    }

    #[test]
    fn each_version_has_a_table_that_names_its_rules() {
        let table = text::table(&report());
        let titles: Vec<&str> = table.lines().filter(|line| line.starts_with("Linux ")).collect();
        let want = [
            "Linux 5.4.1: not in the model",
            "Linux 7.1.13 in the model as k7.1",
            "Linux 7.2.12 in the model as k7.2",
        ];
        assert_eq!(titles, want);
        assert!(table.contains("no variant of the model has the rules of Linux 5.4.1: x.loop"));
    }
}
