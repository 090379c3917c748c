//! Booted runs that stop on the way, to be looked at, or end early, or report trace events.

use std::path::Path;

use mglru_guest::order::{Steps, Until};
use mglru_guest::report::Step;

use super::{KernelJob, beside};
use crate::backend::{Announce, Stepping};

/// Says where a run is stopped.
#[derive(Default)]
pub struct Stops<'a> {
    pub steps: Option<Steps>,
    pub until: Option<Until>,
    /// Reports trace events as the work goes on.
    pub trace_events: bool,
    /// Holds a debugger's port for the moment, and the function that announces it.
    pub debugger: Option<(u16, Announce<'a>)>,
}

impl Stepping for KernelJob {
    fn step(&self, seed: u64, steps: Steps, console: &Path) -> Result<Vec<Step>, String> {
        let stops = Stops { steps: Some(steps), ..Stops::default() };
        let report = self.boot(seed, stops, console);
        report.map(|report| report.steps).map_err(|e| beside(e.into(), "console", console))
    }

    fn stop(
        &self,
        seed: u64,
        until: &Until,
        console: &Path,
        debugger: Option<(u16, Announce)>,
    ) -> Result<Step, String> {
        if !self.spec.is_virtual() {
            return Err("a run by the host's clock has no moments that come again".to_string());
        }
        let stops = Stops { until: Some(until.clone()), debugger, ..Stops::default() };
        let report =
            self.boot(seed, stops, console).map_err(|e| beside(e.into(), "console", console))?;
        report.stopped.ok_or_else(|| match &report.over {
            Some(over) => format!(
                "the work was over before, after {} accesses and {} ms",
                over.done.reads + over.done.writes,
                over.at_us / 1000
            ),
            None => "the guest stopped before".to_string(),
        })
    }
}
