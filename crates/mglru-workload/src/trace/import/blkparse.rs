//! Text of `blkparse`: `8,0 3 1 0.000000000 697 Q W 223490 + 8 [kjournald]`. A request shows up in
//! many lines; those by which it was queued (`Q`) count.

use super::fields::{Spaces, number, time, words};
use super::{Found, Parser};
use crate::trace::event::{Event, Head, Operation, TimeUnit};
use crate::trace::record::{PAGE_SHIFT, Run, SECTOR_SHIFT};

const NANOSECONDS: u64 = 1_000_000_000;
/// Beginnings of lines of the summary.
const SUMMARY: [&[u8]; 13] = [
    b"CPU",
    b"Total",
    b"Reads",
    b"Read ",
    b"Writes",
    b"IO ",
    b"Allocation",
    b"Merges",
    b"Throughput",
    b"Events",
    b"Skips",
    b"PC ",
    b"Writes",
];
const EXPECTED: &str = "a line of blkparse: device, cpu, number, time, pid, action, kind, \
    sector + sectors";

/// Tells devices apart.
#[derive(Default)]
pub(super) struct Blkparse {
    devices: Spaces,
    /// Lines of other actions, and one of them.
    others: Option<(u64, String)>,
}

impl Parser for Blkparse {
    fn head(&self) -> Head {
        Head { page_shift: PAGE_SHIFT as u8, time: TimeUnit::Nanosecond, spaces: true }
    }

    fn line(&mut self, line: &[u8], found: &mut Found) -> Result<(), String> {
        let text = line.trim_ascii_start();
        if SUMMARY.iter().any(|word| text.starts_with(word)) {
            return Ok(());
        }
        let fields: Vec<&[u8]> = words(line).collect();
        let [device, cpu, sequence, when, pid, action, kind, rest @ ..] = fields.as_slice() else {
            return Err(EXPECTED.to_string());
        };
        let is_device = device.contains(&b',') && device.split(|b| *b == b',').all(is_number);
        let when = time(when, NANOSECONDS).ok_or(EXPECTED)?;
        if !is_device || ![cpu, sequence, pid].into_iter().all(|field| is_number(field)) {
            return Err(EXPECTED.to_string());
        }
        let Some(operation) = kind_of(kind) else { return Ok(()) };
        if *action != b"Q" {
            let name = || String::from_utf8_lossy(action).into_owned();
            self.others.get_or_insert_with(|| (0, name())).0 += 1;
            return Ok(());
        }
        let [sector, b"+", sectors, ..] = rest else {
            // A flush has no sectors.
            let is_flush = kind.starts_with(b"F");
            return if is_flush { Ok(()) } else { Err(EXPECTED.to_string()) };
        };
        let sector = number(sector).ok_or(EXPECTED)?;
        let bytes = u128::from(number(sectors).ok_or(EXPECTED)?) << SECTOR_SHIFT;
        let run = Run::covering(sector, SECTOR_SHIFT, bytes, false);
        let run = run.ok_or("at most 16777216 pages, all of them below 2^64")?;
        let space = self.devices.number(device)?;
        found.push((Event { time: when, operation, space, page: run.first, nr: run.nr }, 1));
        Ok(())
    }

    fn passed_over(&self) -> Option<String> {
        let (n, action) = self.others.as_ref()?;
        Some(format!(
            "lines with action Q count, and none of its {n} requests' lines has it (the first has \
             {action}): record with `blktrace -a queue`"
        ))
    }

    fn names(&mut self) -> Vec<(u32, String)> {
        self.devices.names()
    }
}

fn is_number(field: &[u8]) -> bool {
    number(field).is_some()
}

/// Letters such as `WS`, `RA`, `FWFSM`, `DS`.
fn kind_of(kind: &[u8]) -> Option<Operation> {
    match kind.strip_prefix(b"F").unwrap_or(kind).first()? {
        b'R' => Some(Operation::Read),
        b'W' => Some(Operation::Write),
        b'D' => Some(Operation::Discard),
        _ => None,
    }
}
