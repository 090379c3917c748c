//! Groups of running pagers over a stretch of time: rates, sizes, pressure, generations.

use serde::Serialize;

use super::sample::{Generation, Sample};

/// Describes one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Numbers the process of its pager.
    pub pid: Option<u32>,
    /// Names the process.
    pub program: String,
    /// Holds the group's path.
    pub group: String,
    /// Holds `memory.current`, bytes.
    pub current: u64,
    /// Holds `memory.max`, bytes.
    pub max: Option<u64>,
    /// Holds `memory.swap.current`, bytes.
    pub swap: u64,
    /// Counts resident bytes of the process that no budget covers, where they are counted.
    pub outside: Option<u64>,
    /// Counts faults a second that read nothing.
    pub minor_per_s: f64,
    /// Counts faults a second that read or unpacked something.
    pub major_per_s: f64,
    /// Counts pages a second that came back after they were evicted.
    pub refaults_per_s: f64,
    /// Holds `memory.pressure`, some, percent of the last 10 s.
    pub some_avg10: f64,
    /// Lists generations, the oldest first, pages.
    pub generations: Vec<Generation>,
}

impl Row {
    /// Describes a group now, with what happened since `before`.
    pub fn new(
        pid: Option<u32>,
        program: &str,
        before: &Sample,
        now: &Sample,
        seconds: f64,
    ) -> Self {
        let rate = |read: &dyn Fn(&Sample) -> u64| {
            read(now).saturating_sub(read(before)) as f64 / seconds.max(1e-9)
        };
        let major = |sample: &Sample| sample.stat("pgmajfault");
        Self {
            pid,
            program: program.to_string(),
            group: now.group.clone(),
            current: now.current,
            max: now.max,
            swap: now.swap,
            outside: now.unmanaged.as_ref().and_then(|keys| keys.get("total").copied()),
            minor_per_s: rate(&|sample| sample.stat("pgfault") - major(sample)),
            major_per_s: rate(&major),
            refaults_per_s: rate(&Sample::refaults),
            some_avg10: now.some.avg10,
            generations: now.generations.clone(),
        }
    }

    /// Returns its cells, in the order of [`HEAD`].
    pub fn cells(&self) -> Vec<String> {
        let pages = |generation: &Generation| bytes((generation.anon + generation.file) * 4096);
        let generations: Vec<String> = self.generations.iter().rev().map(pages).collect();
        vec![
            self.pid.map_or_else(String::new, |pid| pid.to_string()),
            self.program.clone(),
            self.group.clone(),
            bytes(self.current),
            self.max.map_or_else(|| "max".into(), bytes),
            bytes(self.swap),
            self.outside.map_or_else(String::new, bytes),
            format!("{:.0}", self.minor_per_s),
            format!("{:.0}", self.major_per_s),
            format!("{:.0}", self.refaults_per_s),
            format!("{:.2}", self.some_avg10),
            generations.join(" "),
        ]
    }
}

/// Lists the heads of the columns.
pub const HEAD: [&str; 12] = [
    "pid",
    "program",
    "group",
    "current",
    "max",
    "swap",
    "outside",
    "minor/s",
    "major/s",
    "refault/s",
    "some10 %",
    "generations, young to old",
];

/// Formats bytes for people, four characters and a letter at most.
pub fn bytes(n: u64) -> String {
    in_units(n, ["", "K", "M", "G", "T"])
}

/// Writes bytes with the unit that leaves one to four digits before the point; the units are 1,
/// 1024 and its powers, with whatever stands between number and unit.
pub fn in_units(n: u64, units: [&str; 5]) -> String {
    let steps = (n.max(1).ilog2() / 10).min(4);
    let scaled = n as f64 / (1u64 << (10 * steps)) as f64;
    let digits = usize::from(steps > 0 && scaled < 100.0);
    format!("{scaled:.digits$}{}", units[steps as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_what_happened_a_second() {
        let sample = |fault, major, refault| Sample {
            group: "/a".into(),
            current: 3 << 20,
            stat: [("pgfault", fault), ("pgmajfault", major), ("workingset_refault_anon", refault)]
                .map(|(key, value)| (key.to_string(), value))
                .into(),
            generations: vec![
                Generation { seq: 1, anon: 256, file: 0 },
                Generation { seq: 2, anon: 0, file: 1 },
            ],
            unmanaged: Some([("total".to_string(), 5 << 20)].into()),
            ..Sample::default()
        };
        let row = Row::new(Some(7), "x", &sample(10, 4, 2), &sample(110, 24, 12), 2.0);
        assert_eq!([row.minor_per_s, row.major_per_s, row.refaults_per_s], [40.0, 10.0, 5.0]);
        let cells = row.cells();
        assert_eq!(cells.len(), HEAD.len());
        assert_eq!(cells[2..7].join(" "), "/a 3.0M max 0 5.0M");
        assert_eq!(cells[11], "4.0K 1.0M");
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 1023, 1024, 150 << 20, 5 << 40].map(bytes);
        assert_eq!(sizes, ["0", "1023", "1.0K", "150M", "5.0T"]);
    }
}
