//! `mglru exec --trace-events`: the file is made, and the process started that writes it, before
//! this one becomes the program.

use std::path::Path;
use std::process::Command;

use mglru_error::Error;
use mglru_lab::trace_events::TraceFile;

/// Returns the name of the abstract socket at which the writer listens: the launched process and
/// its descendants get their rings there.
pub(super) fn socket(launched: u32) -> String {
    format!("mglru-exec/{launched}/events")
}

/// Tells whether orphaned processes become children of this one, and so of the program.
fn adopts_orphans() -> bool {
    let is_subreaper = rustix::process::child_subreaper().is_ok_and(|set| set.is_some());
    std::process::id() == 1 || is_subreaper
}

/// Makes the file, and starts the process that writes it: with the file as its standard input, and
/// no child of the program's, which may wait for any of its own.
pub(super) fn begin(file: &Path, slots: usize, faults: bool) -> Result<(), Error> {
    if adopts_orphans() {
        let why = "this process is the first of its container, or a subreaper: the process that \
                   writes events would become a child of the program";
        return Err(Error::Request(format!("--trace-events: {why}")));
    }
    let begun = TraceFile::begin(file)?;
    let failed = |error| Error::Request(format!("a process that writes trace events: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("trace-writer").args(["--launched", &std::process::id().to_string()]);
    command.args(["--slots", &slots.to_string(), "--background"]);
    command.args(faults.then_some("--faults")).arg("--").arg(file).stdin(begun);
    let status = command.status().map_err(failed)?;
    let refused = || Error::Request("--trace-events: nobody writes them".to_string());
    status.success().then_some(()).ok_or_else(refused)
}
