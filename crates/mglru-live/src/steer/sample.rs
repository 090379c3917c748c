//! A group at one moment, read from its files.

use std::collections::BTreeMap;

use mglru_pager::control::{Client, ControlError};

/// Counts faults of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Counts faults.
    pub count: u64,
    /// Sums up their durations, ns.
    pub ns: u64,
    /// Counts those below 1 µs, below 2 µs and so on, each class without those before.
    pub classes: Vec<u64>,
}

/// Holds one line of `memory.pressure`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stalled {
    /// Holds the share of the last 10 s, percent.
    pub avg10: f64,
    /// Holds the share of the last 60 s, percent.
    pub avg60: f64,
    /// Holds the share of the last 300 s, percent.
    pub avg300: f64,
    /// Counts time since the start, µs.
    pub total: u64,
}

/// Counts the pages of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Generation {
    /// Holds its number.
    pub seq: u64,
    /// Counts anonymous pages.
    pub anon: u64,
    /// Counts file pages.
    pub file: u64,
}

/// Counts refaults of one tier of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Names the type: `anon` or `file`.
    pub kind: String,
    /// Numbers the tier.
    pub tier: u64,
    /// Counts pages that came back.
    pub refaulted: u64,
    /// Counts pages evicted or spared.
    pub total: u64,
}

/// Says how far away pages were that came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distances {
    /// Counts bytes in memory.
    pub resident: u64,
    /// Counts major faults so far.
    pub major: u64,
    /// Counts pages that came back from up to so many bytes, each class without those before.
    pub classes: Vec<(u64, u64)>,
}

/// Holds all that is read of one group.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Holds its path.
    pub group: String,
    /// Holds `memory.stat`.
    pub stat: BTreeMap<String, u64>,
    /// Holds `memory.current`, bytes.
    pub current: u64,
    /// Holds `memory.max`, bytes; `None` is `max`.
    pub max: Option<u64>,
    /// Holds `memory.swap.current`, bytes.
    pub swap: u64,
    /// Holds `memory.pressure`, some.
    pub some: Stalled,
    /// Holds `memory.pressure`, full.
    pub full: Stalled,
    /// Holds faults by kind.
    pub faults: Vec<(String, Faults)>,
    /// Lists generations, the oldest first.
    pub generations: Vec<Generation>,
    /// Lists tiers of both types.
    pub tiers: Vec<Tier>,
    /// Holds refault distances.
    pub distances: Distances,
    /// Holds counters of `memory.unmanaged`, which only the root group has.
    pub unmanaged: Option<BTreeMap<String, u64>>,
}

impl Sample {
    /// Reads a group.
    ///
    /// # Errors
    /// It is gone, or its pager.
    pub fn read(client: &mut Client, group: &str) -> Result<Self, ControlError> {
        let mut get = |file: &str| client.get(group, file);
        let (some, full) = pressure(&get("memory.pressure")?);
        Ok(Self {
            group: group.to_string(),
            stat: flat(&get("memory.stat")?),
            current: number(&get("memory.current")?).unwrap_or(0),
            max: number(&get("memory.max")?),
            swap: number(&get("memory.swap.current")?).unwrap_or(0),
            some,
            full,
            faults: faults(&get("mglru.faults")?),
            generations: generations(&get("lru_gen")?),
            tiers: tiers(&get("mglru.tiers")?),
            distances: distances(&get("mglru.distances")?),
            unmanaged: unmanaged(client, group)?,
        })
    }

    /// Reads a group and all below it. A group that goes meanwhile is left out.
    ///
    /// # Errors
    /// The group is not there, or the pager is gone.
    pub fn read_all(client: &mut Client, group: &str) -> Result<Vec<Self>, ControlError> {
        let mut samples = Vec::new();
        for path in client.subtree(group)? {
            match Self::read(client, &path) {
                Err(ControlError::Refused { .. }) if path != group => {}
                sample => samples.push(sample?),
            }
        }
        Ok(samples)
    }

    /// Returns the value of a key of `memory.stat`.
    pub fn stat(&self, key: &str) -> u64 {
        self.stat.get(key).copied().unwrap_or(0)
    }

    /// Counts pages that came back after they were evicted.
    pub fn refaults(&self) -> u64 {
        self.stat("workingset_refault_anon") + self.stat("workingset_refault_file")
    }
}

/// Reads memory that no budget covers; it belongs to a process, and only `mglru exec` knows it.
fn unmanaged(
    client: &mut Client,
    group: &str,
) -> Result<Option<BTreeMap<String, u64>>, ControlError> {
    if group != "/" {
        return Ok(None);
    }
    match client.get(group, "memory.unmanaged") {
        Err(ControlError::Refused { .. }) => Ok(None),
        text => Ok(Some(flat(&text?))),
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn flat(text: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| line.split_once(' ').map(|(k, v)| (k.to_string(), number(v)));
    text.lines().filter_map(pair).filter_map(|(key, value)| Some((key, value?))).collect()
}

/// The lines of numbers of a text, each with the words before them.
fn rows(text: &str) -> impl Iterator<Item = (Vec<&str>, Vec<u64>)> {
    text.lines().map(|line| {
        let fields = line.split_whitespace();
        let (numbers, words): (Vec<&str>, Vec<&str>) =
            fields.partition(|field| field.bytes().all(|b| b.is_ascii_digit()));
        (words, numbers.iter().filter_map(|n| n.parse().ok()).collect())
    })
}

fn pressure(text: &str) -> (Stalled, Stalled) {
    let line = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let field = |key: &str| rest.split_whitespace().find_map(|f| f.strip_prefix(key));
        let average = |key: &str| field(key).and_then(|v| v.parse().ok()).unwrap_or(0.0);
        Stalled {
            avg10: average("avg10="),
            avg60: average("avg60="),
            avg300: average("avg300="),
            total: field("total=").and_then(number).unwrap_or(0),
        }
    };
    (line("some "), line("full "))
}

fn faults(text: &str) -> Vec<(String, Faults)> {
    let row = |(words, numbers): (Vec<&str>, Vec<u64>)| {
        let (&[count, ns], classes) = numbers.split_first_chunk()?;
        Some((words.first()?.to_string(), Faults { count, ns, classes: classes.to_vec() }))
    };
    rows(text).filter_map(row).collect()
}

fn generations(text: &str) -> Vec<Generation> {
    let row = |(words, numbers): (Vec<&str>, Vec<u64>)| match (&words[..], &numbers[..]) {
        ([], &[seq, _, anon, file]) => Some(Generation { seq, anon, file }),
        _ => None,
    };
    rows(text).filter_map(row).collect()
}

fn tiers(text: &str) -> Vec<Tier> {
    let row = |(words, numbers): (Vec<&str>, Vec<u64>)| match (&words[..], &numbers[..]) {
        ([kind], &[tier, refaulted, total]) => {
            Some(Tier { kind: kind.to_string(), tier, refaulted, total })
        }
        _ => None,
    };
    rows(text).filter_map(row).collect()
}

/// Reads `mglru.distances`.
pub fn distances(text: &str) -> Distances {
    let mut distances = Distances::default();
    for (words, numbers) in rows(text) {
        match (&words[..], &numbers[..]) {
            (["resident"], &[bytes]) => distances.resident = bytes,
            (["major"], &[count]) => distances.major = count,
            ([], &[bound, count]) => distances.classes.push((bound, count)),
            _ => {}
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_they_are_written() {
        let text = "some avg10=1.50 avg60=0.25 avg300=0.00 total=77\nfull avg10=0.10 total=5\n";
        let (some, full) = pressure(text);
        assert_eq!((some.avg10, some.avg60, some.total), (1.5, 0.25, 77));
        assert_eq!((full.avg10, full.total), (0.1, 5));
        let text =
            "memcg     1 /app\n node     0\n          4      12034          1        3512 \n";
        assert_eq!(generations(text), [Generation { seq: 4, anon: 1, file: 3512 }]);
        let got = faults("major 3 5000 1 2\nwp 0 0 0 0\n");
        assert_eq!(got[0], ("major".into(), Faults { count: 3, ns: 5000, classes: vec![1, 2] }));
        let tier = Tier { kind: "file".into(), tier: 1, refaulted: 2, total: 9 };
        assert_eq!(tiers("file 1 2 9\n"), [tier]);
        let got = distances("resident 8192\nmajor 4\n4096 1\n5120 3\n");
        assert_eq!((got.resident, got.major, got.classes), (8192, 4, vec![(4096, 1), (5120, 3)]));
        assert_eq!(flat("anon 5\nfile 6\n")["file"], 6);
        assert_eq!(number("max\n"), None);
    }
}
