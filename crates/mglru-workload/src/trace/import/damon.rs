//! `damo report raw`: snapshots of regions with how often each was found accessed. Every page of a
//! region that was, counts as read once, at the end of the snapshot.

use super::fields::{Spaces, hexadecimal, number, time, words};
use super::{Found, Parser};
use crate::trace::event::{Event, Head, Operation, TimeUnit};
use crate::trace::record::{PAGE_SHIFT, RUN_MAX, Run};

/// Lines that say nothing of a region, and whose times are not those of events.
const PASSED: [&[u8]; 6] = [
    b"base_time_absolute",
    b"monitoring_start",
    b"monitoring_duration",
    b"nr_regions",
    b"intervals",
    b"nr_snapshots",
];

/// The snapshot that is being read.
#[derive(Default)]
pub(super) struct Damon {
    targets: Spaces,
    target: u32,
    end: u64,
}

impl Parser for Damon {
    fn head(&self) -> Head {
        Head { page_shift: PAGE_SHIFT as u8, time: TimeUnit::Nanosecond, spaces: true }
    }

    fn line(&mut self, line: &[u8], found: &mut Found) -> Result<(), String> {
        const EXPECTED: &str = "a region START-END(SIZE): ACCESSES, monitoring_end or target_id";
        let colon = line.iter().position(|&b| b == b':').ok_or(EXPECTED)?;
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        match name {
            b"monitoring_end" => self.end = duration(value).ok_or("a time such as 104.599 ms")?,
            b"target_id" => self.target = self.targets.number(value)?,
            _ if PASSED.contains(&name) => {}
            _ => {
                let run = region(name).ok_or(EXPECTED)?;
                let run = run.ok_or_else(|| format!("a region of at most {RUN_MAX} pages"))?;
                let accesses = words(value).next().and_then(plain).ok_or(EXPECTED)?;
                let (time, space) = (self.end, self.target);
                let event =
                    Event { time, operation: Operation::Read, space, page: run.first, nr: run.nr };
                found.extend((accesses > 0).then_some((event, 1)));
            }
        }
        Ok(())
    }

    fn names(&mut self) -> Vec<(u32, String)> {
        self.targets.names()
    }
}

/// Reads `563ebaa00000-563ebc99e000(  31.617 MiB)`; `Some(None)` for one that is too large.
fn region(text: &[u8]) -> Option<Option<Run>> {
    let end = text.iter().position(|&b| b == b'(').unwrap_or(text.len());
    let bounds = text[..end].trim_ascii();
    let dash = bounds.iter().position(|&b| b == b'-')?;
    let (start, end) = (hexadecimal(&bounds[..dash])?, hexadecimal(&bounds[dash + 1..])?);
    let bytes = end.checked_sub(start).filter(|&bytes| bytes > 0)?;
    Some(Run::covering(start, 0, bytes.into(), false))
}

/// Reads a number with or without commas between thousands.
fn plain(text: &[u8]) -> Option<u64> {
    let digits: Vec<u8> = text.iter().copied().filter(|&b| b != b',').collect();
    number(&digits)
}

/// Reads `8 m 59.809 s`.
fn duration(text: &[u8]) -> Option<u64> {
    const UNITS: [(&[u8], u64); 7] = [
        (b"ns", 1),
        (b"us", 1000),
        (b"ms", 1_000_000),
        (b"s", 1_000_000_000),
        (b"m", 60_000_000_000),
        (b"h", 3_600_000_000_000),
        (b"d", 86_400_000_000_000),
    ];
    let all: Vec<&[u8]> = words(text).collect();
    let one = |pair: &[&[u8]]| {
        let [value, unit] = pair else { return None };
        let (_, scale) = UNITS.iter().find(|(name, _)| name == unit)?;
        let digits: Vec<u8> = value.iter().copied().filter(|&b| b != b',').collect();
        time(&digits, *scale)
    };
    let parts = all.chunks(2).map(one).collect::<Option<Vec<u64>>>()?;
    (!parts.is_empty()).then_some(())?;
    parts.iter().try_fold(0u64, |sum, part| sum.checked_add(*part))
}
