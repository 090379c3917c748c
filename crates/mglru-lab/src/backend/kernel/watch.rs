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

use super::allowance::Allowance;
use super::attend::attend;
use super::oom::{self, Killed};
use super::qemu::Qemu;
use crate::backend::{Announce, Failure};

/// Longest time from power on to the guest's first word.
const BOOT: Duration = Duration::from_secs(90);
/// Longest silence after that. The guest samples its groups, so that it is never silent for long
/// unless it hangs; a machine deep in reclaim may take its time.
const SILENCE: Duration = Duration::from_secs(180);
/// Sets how often the console is read once the guest has reported everything.
const LOOK: Duration = Duration::from_millis(200);
/// Shortest wait for a report: a guest that others keep from working uses up little of its time.
const BLINK: Duration = Duration::from_millis(10);
/// The kernel's last words. QEMU itself takes ten seconds more to end in virtual time: its main
/// loop holds the lock that the guest's thread needs to fall asleep (`qemu/turns.rs`).
const OFF: &str = "reboot: Power down";

/// Chooses the end of a machine whose work is over, or whose moment has come.
#[derive(Default)]
pub struct Ending<'a> {
    /// Says that QEMU counts instructions and writes the counts as it ends: its end is awaited.
    pub counts: bool,
    /// Holds a debugger's port, and the function that announces its address at the moment.
    pub debugger: Option<(u16, Announce<'a>)>,
}

/// Holds everything that a guest reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestReport {
    /// Holds the kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// Holds the time from power on to the first operation, by the host's clock.
    pub boot: Duration,
    /// Holds findings of a probe.
    pub probed: Option<BTreeMap<String, String>>,
    /// Says that the work began.
    pub began: bool,
    /// Holds the state at the beginning of the work.
    pub ready: Snapshot,
    /// Holds the state at the beginning of each phase, by its number.
    pub marks: Vec<(u32, Snapshot)>,
    /// Holds commands, each with the number of marks before it.
    pub commands: Vec<(usize, Command)>,
    /// Holds samples in time: microseconds and groups.
    pub samples: Vec<(u64, BTreeMap<String, Sample>)>,
    /// Holds lines of trace events.
    pub events: String,
    /// Holds states of the machine while the work stood still.
    pub steps: Vec<Step>,
    /// Holds the state at the moment at which the run was to end.
    pub stopped: Option<Step>,
    /// Holds the address where the kernel's code begins, reported then; 0: unknown.
    pub text: u64,
    /// Holds the state at the end of the work.
    pub over: Option<Snapshot>,
    /// Describes the end of each process of the work.
    pub workers: Vec<Ended>,
    /// Lists processes that the kernel killed for want of memory.
    pub killed: Vec<Killed>,
    /// Lists functions of a kernel that is profiled.
    pub symbols: Option<String>,
    /// Holds the counts that QEMU's plugin made of it.
    pub counted: Option<String>,
    /// Holds the facts that make the run repeatable, where it is.
    pub proof: Option<Json>,
    /// Holds the kernel's last line, where it stopped the machine for want of memory.
    pub starved: Option<String>,
}

/// Listens until the machine stops, or its moment has come. `patience` times as much silence as
/// usual is borne.
///
/// # Errors
/// Why there is no result: what the guest itself said, a panic, a hang, QEMU's own complaint.
pub fn listen(
    mut qemu: Qemu,
    at_most: Duration,
    patience: u32,
    console: &Path,
    ending: Ending,
) -> Result<GuestReport, Failure> {
    let lines = lines(qemu.child.stdout.take().expect("it is piped"));
    let complaint = complaint(qemu.child.stderr.take().expect("it is piped"));
    let clock = Allowance::new(qemu.has_own_time.then(|| qemu.child.id()));
    let mut report = GuestReport::default();
    let is_off = || !ending.counts && said(console).contains(OFF);
    let heard = hear(&lines, (&clock, at_most, patience), &mut report, is_off);
    let attended = match (&report.stopped, ending.debugger) {
        (Some(at), Some(debugger)) => {
            attend(&mut qemu, &lines, (&report.kernel, report.text, at), debugger)
        }
        _ => Ok(()),
    };
    drop(qemu);
    let complaint = complaint.join().unwrap_or_default();
    let messages = said(console);
    let blamed = blamed(&report, &messages, &complaint);
    preloaded(&complaint)?;
    // A machine that was given up was running.
    heard.map_err(Failure::Machine)?;
    attended?;
    finished(report, &messages, &complaint).map_err(blamed)
}

/// QEMU that refuses what it was given says so before the kernel says anything.
fn blamed(report: &GuestReport, messages: &str, complaint: &str) -> fn(String) -> Failure {
    let began = !report.kernel.is_empty() || !messages.trim().is_empty();
    let refused = |line: &str| !line.trim().is_empty() && !line.contains("warning:");
    match !began && complaint.lines().any(refused) {
        true => Failure::Input,
        false => Failure::Machine,
    }
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

/// The kernel's messages so far.
fn said(console: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(console).unwrap_or_default()).into_owned()
}

/// Reads reports until the machine has stopped, its moment has come, or it has reported everything
/// and
/// `is_off`.
fn hear(
    lines: &Receiver<String>,
    (clock, at_most, factor): (&Allowance, Duration, u32),
    report: &mut GuestReport,
    is_off: impl Fn() -> bool,
) -> Result<(), String> {
    let mut last = clock.elapsed();
    while report.stopped.is_none() {
        let now = clock.elapsed();
        let left = at_most.saturating_sub(now);
        let patience = factor * if report.kernel.is_empty() { BOOT } else { SILENCE };
        let quiet = patience.saturating_sub(now - last);
        let is_complete = report.over.is_some() || report.probed.is_some();
        let wait = if is_complete { LOOK } else { quiet };
        match lines.recv_timeout(wait.min(quiet).min(left).max(BLINK)) {
            Ok(line) => {
                take(&line, clock.start(), report)?;
                last = clock.elapsed();
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if is_complete && is_off() => return Ok(()),
            Err(RecvTimeoutError::Timeout) if clock.elapsed() >= at_most => {
                return Err(format!("not over after {} s (kernel.timeout_s)", at_most.as_secs()));
            }
            Err(RecvTimeoutError::Timeout) if clock.elapsed() - last < patience => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(silent(!report.kernel.is_empty(), patience));
            }
        }
    }
    Ok(())
}

/// Lines that are no report come from firmware.
fn take(line: &str, start: Instant, report: &mut GuestReport) -> Result<(), String> {
    let Some(Ok(message)) = line.find('{').map(|at| serde_json::from_str(line[at..].trim_end()))
    else {
        return Ok(());
    };
    match message {
        Report::Hello { kernel } => report.kernel = kernel,
        Report::Probed(found) => report.probed = Some(found),
        Report::Ready(snapshot) => {
            report.ready = *snapshot;
            report.began = true;
            report.boot = start.elapsed();
            report.samples.clear();
        }
        Report::Mark { phase, at } => report.marks.push((phase, *at)),
        Report::Command(command) => report.commands.push((report.marks.len(), command)),
        Report::Sample { at_us, groups } => report.samples.push((at_us, groups)),
        Report::Events { text } => report.events.push_str(&text),
        Report::Step(step) => report.steps.push(*step),
        Report::Stopped { at, text } => (report.stopped, report.text) = (Some(*at), text),
        Report::Over { at, workers } => (report.over, report.workers) = (Some(*at), workers),
        Report::Symbols { text } => report.symbols = Some(text),
        Report::Failed { why } => return Err(failed(&why)),
    }
    Ok(())
}

/// Explains a guest that says nothing. While a kernel of 6.1 waits for its second processor it
/// never rests, and the instruction clock runs one processor at a time.
fn silent(booted: bool, patience: Duration) -> String {
    let seconds = patience.as_secs();
    match booted {
        true => format!("the guest hangs: silent for {seconds} s"),
        false => format!(
            "the guest did not boot for {seconds} s; in virtual time a kernel as old as 6.1 needs \
             machine.cpus = 1, or --host-time"
        ),
    }
}

/// Joins the guest's message with the line that helps.
fn failed(why: &str) -> String {
    const HINTS: [(&str, &str); 2] = [
        ("this kernel has no", "; mglru kernel check IMAGE says what to build in"),
        ("(os error 28)", "; kernel.disk_room is what files may grow by"),
    ];
    let hint = HINTS.iter().find(|(said, _)| why.contains(said)).map_or("", |(_, hint)| hint);
    format!("the guest: {why}{hint}")
}

fn finished(
    mut report: GuestReport,
    messages: &str,
    complaint: &str,
) -> Result<GuestReport, String> {
    let panicked = messages.lines().find(|line| line.contains("Kernel panic - ")).map(plain);
    report.killed = oom::killed(messages);
    match panicked {
        Some(line) if !oom::is_starved(line) => return Err(format!("the guest panicked: {line}")),
        Some(line) if report.over.is_none() && !report.began => return Err(early(line)),
        Some(line) if report.over.is_none() => {
            report.starved = Some(line.to_string());
            return Ok(report);
        }
        _ => {}
    }
    let is_over = report.over.is_some() || report.stopped.is_some();
    if is_over || (complaint.is_empty() && !report.kernel.is_empty()) {
        return Ok(report);
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
mod tests;
