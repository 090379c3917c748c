use std::sync::Mutex;

use mglru_guest::order::Until;
use mglru_guest::report::{GroupState, Snapshot};

use super::*;

/// A side that scans a page with each access, and one more a time from some access on.
struct Side {
    odd_from: u64,
    accesses: u64,
    asked: Mutex<Vec<Steps>>,
}

impl Side {
    fn new(odd_from: u64) -> Self {
        Self { odd_from, accesses: 5_000, asked: Mutex::default() }
    }
}

impl Stepping for Side {
    fn step(&self, _: u64, steps: Steps, _: &Path) -> Result<Vec<Step>, String> {
        self.asked.lock().unwrap().push(steps);
        let (mut stops, mut at, mut taken) = (Vec::new(), steps.from, 0u64);
        while at <= steps.to.min(self.accesses) {
            let scanned = 100 + at + (at + 1).saturating_sub(self.odd_from);
            let stat = format!("pgscan {scanned}\n");
            let group = GroupState { stat, ..GroupState::default() };
            let groups = [("/a".to_string(), group)].into();
            let state = Snapshot { groups, at_us: at, ..Snapshot::default() };
            let events = if steps.closely { format!("access {at}\n") } else { String::new() };
            stops.push(Step { access: at, at: state, events, ..Step::default() });
            taken += 1;
            at += steps.every << taken.checked_div(steps.doubled_after).unwrap_or(0);
        }
        Ok(stops)
    }

    fn stop(
        &self,
        _: u64,
        _: &Until,
        _: &Path,
        _: Option<(u16, crate::backend::Announce)>,
    ) -> Result<Step, String> {
        Err("the search makes steps".to_string())
    }
}

fn searched(a: &Side, b: &Side, tolerance: u64) -> Found {
    let nowhere = Path::new("");
    let on = Vec::new();
    let consoles = [nowhere, nowhere];
    let tolerance = Tolerance::Exact(tolerance);
    let request = Request { jobs: [a, b], seed: 1, on, pages: None, tolerance, consoles };
    find(&request, &|_, _, _| {}).unwrap()
}

#[test]
fn the_first_access_that_differs_is_found() {
    let (a, b) = (Side::new(u64::MAX), Side::new(3_777));
    let found = searched(&a, &b, 0);
    let moment = found.moment.unwrap();
    assert_eq!((moment.parting.field, moment.parting.unequal_at), ("pgscan", 3_777));
    assert_eq!((moment.parting.equal_at, moment.events[1].as_str()), (3_776, "access 3777\n"));
    let asked = a.asked.lock().unwrap();
    assert_eq!(asked.len(), found.passes as usize);
    assert!(asked.last().unwrap().closely && !asked[0].closely);
    assert_eq!(*asked, *b.asked.lock().unwrap(), "both sides stop at the same accesses");
}

#[test]
fn a_tolerance_moves_the_moment_and_equal_sides_have_none() {
    let found = searched(&Side::new(u64::MAX), &Side::new(1_000), 9);
    assert_eq!(found.moment.unwrap().parting.unequal_at, 1_009);
    let found = searched(&Side::new(7), &Side::new(7), 0);
    assert!(found.moment.is_none() && found.partings.is_empty() && found.passes == 1);
}

#[test]
fn a_run_too_short_for_a_stop_is_refused() {
    let short = Side { accesses: 10, ..Side::new(1) };
    let nowhere = Path::new("");
    let request = Request {
        jobs: [&short, &short],
        seed: 1,
        on: Vec::new(),
        pages: None,
        tolerance: Tolerance::Exact(0),
        consoles: [nowhere, nowhere],
    };
    let message = find(&request, &|_, _, _| {}).unwrap_err();
    assert_eq!(message, "the first process makes fewer than 64 accesses");
}
