//! Turns the looks at one run into curves: rates between looks, sizes at them.

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::facts::STALLS;
use crate::record::Record;
use crate::samples::{GroupSeries, Series};

/// So many points a curve has at most.
const POINTS: usize = 160;

const MIB: f64 = 1_048_576.0;

/// Holds the samples of one run.
#[derive(Clone, Debug)]
pub struct Curve {
    variant: String,
    series: Series,
}

/// Holds one point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Names the variant.
    pub v: String,
    /// Names the panel, with its unit.
    pub p: &'static str,
    /// Holds the time, seconds.
    pub t: f64,
    /// Holds the value.
    pub y: f64,
}

impl Curve {
    /// Takes the looks of a record: those kept beside it, or in it where a kernel was booted.
    pub fn new(record: &Record, kept: Option<Series>) -> Option<Self> {
        let series = kept.or_else(|| of_kernel(record.custom.get("series")?))?;
        (series.at_ns.len() > 1).then(|| Self { variant: record.variant.clone(), series })
    }

    /// Names the group that is drawn: of those below the root the one that was scanned most.
    fn group(&self) -> Option<&GroupSeries> {
        let scanned = |group: &GroupSeries| {
            group.columns.get("pgscan").and_then(|all| all.last().copied()).unwrap_or(0)
        };
        let below = self.series.groups.iter().filter(|(name, _)| *name != "/");
        let most = below.max_by_key(|(_, group)| scanned(group)).map(|(_, group)| group);
        most.filter(|group| scanned(group) > 0).or_else(|| self.series.groups.get("/"))
    }

    /// Finds the group whose generations are drawn: of those with pages, the one with most. A group
    /// above others may be scanned most and hold none itself.
    fn holder(&self) -> Option<&GroupSeries> {
        let rows = |group: &GroupSeries| {
            group.generations.iter().flatten().map(|[_, _, anon, file]| anon + file).sum::<u64>()
        };
        let most = self.series.groups.values().rev().max_by_key(|group| rows(group));
        most.filter(|group| rows(group) > 0)
    }

    /// Lists the points of all curves; a panel in which nothing happens is left out.
    pub fn rows(&self) -> Vec<Row> {
        let s = &self.series;
        let counter = |name: &str| s.counters.get(name).map_or(&[][..], Vec::as_slice);
        let column = |name: &str| self.group().and_then(|group| group.columns.get(name));
        let sizes = |name: &str| column(name).map_or(&[][..], Vec::as_slice);
        let refaults = sum(counter("workingset_refault_anon"), counter("workingset_refault_file"));
        let swap = sum(counter("pswpin"), counter("pswpout"));
        let rates: [(&str, &[u64], f64); 8] = [
            ("operations / s", &s.ops, 1.0),
            ("refaults / s", &refaults, 1.0),
            ("read, MiB / s", counter("pgpgin"), 1.0 / 1024.0),
            ("written, MiB / s", counter("pgpgout"), 1.0 / 1024.0),
            ("swapped in and out, pages / s", &swap, 1.0),
            ("writers paused, ms / s", counter("dirty_paused_us"), 1e-3),
            ("scanned, pages / s", sizes("pgscan"), 1.0),
            ("reclaimed, pages / s", sizes("pgsteal"), 1.0),
        ];
        let levels = [
            ("file, MiB", sizes("file")),
            ("anon, MiB", sizes("anon")),
            ("dirty, MiB", sizes("dirty")),
            ("writeback, MiB", sizes("writeback")),
            ("swap, MiB", sizes("swap")),
        ];
        let rates = rates.into_iter().flat_map(|(p, all, unit)| self.rate(p, all, unit));
        let levels = levels.into_iter().flat_map(|(p, all)| self.level(p, all));
        rates.chain(levels).collect()
    }

    fn steps(&self) -> impl Iterator<Item = usize> + Clone {
        (0..self.series.at_ns.len()).step_by(self.step())
    }

    /// Pairs each drawn look with the next one, as far as a column reaches.
    fn pairs(&self, all: &[u64]) -> impl Iterator<Item = (usize, usize)> + use<> {
        self.pairs_of(all.len())
    }

    /// Pairs the same of the first `n` looks.
    fn pairs_of(&self, n: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (n, step) = (n.min(self.series.at_ns.len()), self.step());
        (0..n).step_by(step).zip((0..n).step_by(step).skip(1))
    }

    fn step(&self) -> usize {
        self.series.at_ns.len().div_ceil(POINTS).max(1)
    }

    fn rate(&self, panel: &'static str, all: &[u64], unit: f64) -> Vec<Row> {
        if all.iter().all(|&x| x == 0) {
            return Vec::new();
        }
        let row = |(from, to): (usize, usize)| {
            let took = (self.series.at_ns[to] - self.series.at_ns[from]) as f64 / 1e9;
            let y = all[to].saturating_sub(all[from]) as f64 * unit / took;
            self.row(panel, to, y)
        };
        self.pairs(all).map(row).collect()
    }

    fn level(&self, panel: &'static str, all: &[u64]) -> Vec<Row> {
        if all.iter().all(|&x| x == 0) {
            return Vec::new();
        }
        let looks = self.steps().filter_map(|at| Some((at, *all.get(at)?)));
        looks.map(|(at, bytes)| self.row(panel, at, bytes as f64 / MIB)).collect()
    }

    fn row(&self, p: &'static str, at: usize, y: f64) -> Row {
        Row { v: self.variant.clone(), p, t: self.seconds(at), y: rounded(y) }
    }

    fn seconds(&self, at: usize) -> f64 {
        rounded(self.series.at_ns[at] as f64 / 1e9)
    }

    /// Lists the pages of each generation by rank, the youngest 0.
    pub fn heat(&self) -> Vec<Json> {
        let Some(group) = self.holder() else { return Vec::new() };
        let mut rows = Vec::new();
        for (at, next) in self.pairs_of(group.generations.len()) {
            for (rank, [_, _, anon, file]) in group.generations[at].iter().rev().enumerate() {
                for (kind, pages) in [("anon", anon), ("file", file)] {
                    rows.push(json!({
                        "v": self.variant, "type": kind, "t": self.seconds(at),
                        "to": self.seconds(next), "rank": rank, "pages": pages,
                    }));
                }
            }
        }
        rows
    }

    /// Lists how many pages of each tier came back, at the end, and which tiers are evicted.
    pub fn tiers(&self) -> Vec<Json> {
        // A booted kernel's samples, and a pager's, have no tiers.
        let last = self.holder().filter(|g| g.generations.last().is_some_and(|g| !g.is_empty()));
        let Some((group, at)) = last.and_then(|g| Some((g, g.limits.len().checked_sub(1)?))) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        for (t, kind) in ["anon", "file"].into_iter().enumerate() {
            for tier in 0..4 {
                let (back, of) = (group.refaulted[at][t][tier], group.judged[at][t][tier]);
                if of > 0 {
                    rows.push(json!({
                        "v": self.variant, "type": kind, "tier": tier, "back": back, "of": of,
                        "evicted": tier <= usize::from(group.limits[at][t]),
                    }));
                }
            }
        }
        rows
    }

    /// Lists the moments at which tasks were killed or made to wait.
    pub fn events(&self) -> Vec<Json> {
        let mut rows = Vec::new();
        for kind in ["oom_kill"].into_iter().chain(STALLS).chain(["flusher_wakeups"]) {
            let Some(all) = self.series.counters.get(kind) else { continue };
            for (from, to) in self.pairs(all).filter(|&(from, to)| all[to] > all[from]) {
                let times = all[to] - all[from];
                let t = self.seconds(to);
                rows.push(json!({ "v": self.variant, "kind": kind, "t": t, "times": times }));
            }
        }
        rows
    }
}

fn sum(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Keeps four digits: a page holds thousands of points.
fn rounded(x: f64) -> f64 {
    let digits = 3 - x.abs().max(1e-6).log10().floor() as i32;
    let unit = 10f64.powi(digits);
    (x * unit).round() / unit
}

/// Reads the table of a booted kernel's samples.
fn of_kernel(table: &Json) -> Option<Series> {
    let cols: Vec<&str> = table["cols"].as_array()?.iter().filter_map(Json::as_str).collect();
    let mut series = Series::default();
    for (name, rows) in table["rows"].as_object()? {
        let rows: Vec<&Vec<Json>> = rows.as_array()?.iter().filter_map(Json::as_array).collect();
        let ns = |row: &&Vec<Json>| row.first().and_then(Json::as_f64).unwrap_or(0.0) * 1e9;
        if series.at_ns.len() < rows.len() {
            series.at_ns = rows.iter().map(|row| ns(row) as u64).collect();
        }
        let column = |at: usize| rows.iter().filter_map(|row| row.get(at)?.as_u64()).collect();
        let columns = cols.iter().enumerate().skip(1);
        let columns = columns.map(|(at, name)| (name.to_string(), column(at))).collect();
        series.groups.insert(name.clone(), GroupSeries { columns, ..GroupSeries::default() });
    }
    Some(series)
}

#[cfg(test)]
mod tests;
