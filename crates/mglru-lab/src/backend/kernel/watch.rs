//! Listening to a guest until it is over: what it reports, and what it means when it stops
//! reporting.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStderr, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mglru_guest::Report;
use mglru_guest::report::{Command, Ended, Sample, Snapshot, Step};
use serde_json::Value as Json;
use std::collections::BTreeMap;

use super::oom::{self, Killed};
use super::qemu::Qemu;

/// Longest time from power on to the guest's first word.
const BOOT: Duration = Duration::from_secs(90);
/// Longest silence after that. The guest samples its groups, so that it is never silent for long
/// unless it hangs; a machine deep in reclaim may take its time.
const SILENCE: Duration = Duration::from_secs(180);

/// Everything a guest told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// As `uname -r` says.
    pub kernel: String,
    /// From power on to the first operation, in the host's time.
    pub boot: Duration,
    /// The work began.
    pub began: bool,
    /// When the work began.
    pub ready: Snapshot,
    /// When each phase began, by its number.
    pub marks: Vec<(u32, Snapshot)>,
    /// Commands, each with the number of marks before it.
    pub commands: Vec<(usize, Command)>,
    /// Samples in time: microseconds and groups.
    pub samples: Vec<(u64, BTreeMap<String, Sample>)>,
    /// Looks at the machine while the work stood still.
    pub steps: Vec<Step>,
    /// When the work was over.
    pub over: Option<Snapshot>,
    /// How each process of the work ended.
    pub workers: Vec<Ended>,
    /// Processes that the kernel killed for want of memory.
    pub killed: Vec<Killed>,
    /// What makes the run repeatable, where it is.
    pub proof: Option<Json>,
    /// The kernel's last words, where it stopped the machine for want of memory.
    pub starved: Option<String>,
}

/// Listens until the machine stops. `patience` times as much silence as usual is borne.
///
/// # Errors
/// Why there is no result: what the guest itself said, a panic, a hang, QEMU's own complaint.
pub fn listen(
    mut qemu: Qemu,
    at_most: Duration,
    patience: u32,
    console: &Path,
) -> Result<Told, String> {
    let lines = lines(qemu.0.stdout.take().expect("it is piped"));
    let complaint = complaint(qemu.0.stderr.take().expect("it is piped"));
    let start = Instant::now();
    let mut told = Told::default();
    let heard = hear(&lines, start, at_most, patience, &mut told);
    drop(qemu);
    let complaint = complaint.join().unwrap_or_default();
    let messages = std::fs::read(console).unwrap_or_default();
    let messages = String::from_utf8_lossy(&messages);
    heard.and_then(|()| finished(told, &messages, &complaint))
}

/// The loader goes on without a library that it cannot load, but then nothing repeats.
fn preloaded(complaint: &str) -> Result<(), String> {
    let line = complaint.lines().find(|line| line.contains("cannot be preloaded"));
    line.map_or(Ok(()), |line| Err(format!("virtual time: QEMU cannot load the clock: {line}")))
}

fn lines(out: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn complaint(mut err: ChildStderr) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = err.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Reads reports until the machine has stopped.
fn hear(
    lines: &Receiver<String>,
    start: Instant,
    at_most: Duration,
    factor: u32,
    told: &mut Told,
) -> Result<(), String> {
    loop {
        let left = at_most.saturating_sub(start.elapsed());
        let patience = factor * if told.kernel.is_empty() { BOOT } else { SILENCE };
        match lines.recv_timeout(patience.min(left)) {
            Ok(line) => take(&line, start, told)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if left <= patience => {
                return Err(format!("not over after {} s (kernel.timeout_s)", at_most.as_secs()));
            }
            Err(RecvTimeoutError::Timeout) => {
                let what = if told.kernel.is_empty() { "did not boot" } else { "hangs: silent" };
                return Err(format!("the guest {what} for {} s", patience.as_secs()));
            }
        }
    }
}

/// Lines that are no report come from firmware.
fn take(line: &str, start: Instant, told: &mut Told) -> Result<(), String> {
    let Some(Ok(report)) = line.find('{').map(|at| serde_json::from_str(line[at..].trim_end()))
    else {
        return Ok(());
    };
    match report {
        Report::Hello { kernel } => told.kernel = kernel,
        Report::Ready(snapshot) => {
            told.ready = *snapshot;
            told.began = true;
            told.boot = start.elapsed();
            told.samples.clear();
        }
        Report::Mark { phase, at } => told.marks.push((phase, *at)),
        Report::Command(command) => told.commands.push((told.marks.len(), command)),
        Report::Sample { at_us, groups } => told.samples.push((at_us, groups)),
        Report::Step(step) => told.steps.push(*step),
        Report::Over { at, workers } => (told.over, told.workers) = (Some(*at), workers),
        Report::Failed { why } => return Err(format!("the guest: {why}")),
    }
    Ok(())
}

fn finished(mut told: Told, messages: &str, complaint: &str) -> Result<Told, String> {
    preloaded(complaint)?;
    let panicked = messages.lines().find(|line| line.contains("Kernel panic - ")).map(plain);
    told.killed = oom::killed(messages);
    match panicked {
        Some(line) if !oom::is_starved(line) => return Err(format!("the guest panicked: {line}")),
        Some(line) if told.over.is_none() && !told.began => return Err(early(line)),
        Some(line) if told.over.is_none() => {
            told.starved = Some(line.to_string());
            return Ok(told);
        }
        _ => {}
    }
    if told.over.is_some() || (complaint.is_empty() && !told.kernel.is_empty()) {
        return Ok(told);
    }
    let last = complaint.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(match last {
        Some(line) => line.to_string(),
        None => "the guest stopped before it said anything".to_string(),
    })
}

/// Nothing was measured yet: the guest is too small for what it is to do.
fn early(line: &str) -> String {
    format!("the guest ran out of memory before the work began (kernel.memory): {line}")
}

/// A message without its time.
fn plain(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, text)| text).trim()
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
