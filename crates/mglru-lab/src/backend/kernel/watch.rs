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
/// How often the console is looked at once the guest has told everything.
const LOOK: Duration = Duration::from_millis(200);
/// Shortest wait for a report: a guest that others keep from working uses up little of its time.
const BLINK: Duration = Duration::from_millis(10);
/// The kernel's last words. QEMU itself takes ten seconds more to end in virtual time: its main
/// loop holds the lock that the guest's thread needs to fall asleep (`qemu/turns.rs`).
const OFF: &str = "reboot: Power down";

/// Chooses the end of a machine whose work is over, or whose moment has come.
#[derive(Default)]
pub struct Ending<'a> {
    /// QEMU counts, and says what it counted as it ends: it is waited for.
    pub counts: bool,
    /// A port, and how to announce where a debugger finds the machine at its moment.
    pub debugger: Option<(u16, Announce<'a>)>,
}

/// Holds everything that a guest told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// As `uname -r` says.
    pub kernel: String,
    /// From power on to the first operation, in the host's time.
    pub boot: Duration,
    /// Findings of a probe.
    pub probed: Option<BTreeMap<String, String>>,
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
    /// Lines of trace events.
    pub events: String,
    /// Looks at the machine while the work stood still.
    pub steps: Vec<Step>,
    /// The moment at which the run was to end.
    pub stopped: Option<Step>,
    /// Where the kernel's code begins, told then; 0: it does not tell.
    pub text: u64,
    /// When the work was over.
    pub over: Option<Snapshot>,
    /// How each process of the work ended.
    pub workers: Vec<Ended>,
    /// Processes that the kernel killed for want of memory.
    pub killed: Vec<Killed>,
    /// Functions of a kernel that is profiled.
    pub symbols: Option<String>,
    /// Counts that QEMU's plugin made of it.
    pub counted: Option<String>,
    /// Facts that make the run repeatable, where it is.
    pub proof: Option<Json>,
    /// The kernel's last words, where it stopped the machine for want of memory.
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
) -> Result<Told, Failure> {
    let lines = lines(qemu.child.stdout.take().expect("it is piped"));
    let complaint = complaint(qemu.child.stderr.take().expect("it is piped"));
    let clock = Allowance::new(qemu.has_own_time.then(|| qemu.child.id()));
    let mut told = Told::default();
    let is_off = || !ending.counts && said(console).contains(OFF);
    let heard = hear(&lines, (&clock, at_most, patience), &mut told, is_off);
    let attended = match (&told.stopped, ending.debugger) {
        (Some(at), Some(debugger)) => {
            attend(&mut qemu, &lines, (&told.kernel, told.text, at), debugger)
        }
        _ => Ok(()),
    };
    drop(qemu);
    let complaint = complaint.join().unwrap_or_default();
    let messages = said(console);
    let blamed = blamed(&told, &messages, &complaint);
    preloaded(&complaint)?;
    // A machine that was given up was running.
    heard.map_err(Failure::Machine)?;
    attended?;
    finished(told, &messages, &complaint).map_err(blamed)
}

/// QEMU that refuses what it was given says so before the kernel says anything.
fn blamed(told: &Told, messages: &str, complaint: &str) -> fn(String) -> Failure {
    let began = !told.kernel.is_empty() || !messages.trim().is_empty();
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

/// Reads reports until the machine has stopped, its moment has come, or it has told everything and
/// `is_off`.
fn hear(
    lines: &Receiver<String>,
    (clock, at_most, factor): (&Allowance, Duration, u32),
    told: &mut Told,
    is_off: impl Fn() -> bool,
) -> Result<(), String> {
    let mut last = clock.elapsed();
    while told.stopped.is_none() {
        let now = clock.elapsed();
        let left = at_most.saturating_sub(now);
        let patience = factor * if told.kernel.is_empty() { BOOT } else { SILENCE };
        let quiet = patience.saturating_sub(now - last);
        let is_told = told.over.is_some() || told.probed.is_some();
        let wait = if is_told { LOOK } else { quiet };
        match lines.recv_timeout(wait.min(quiet).min(left).max(BLINK)) {
            Ok(line) => {
                take(&line, clock.start(), told)?;
                last = clock.elapsed();
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if is_told && is_off() => return Ok(()),
            Err(RecvTimeoutError::Timeout) if clock.elapsed() >= at_most => {
                return Err(format!("not over after {} s (kernel.timeout_s)", at_most.as_secs()));
            }
            Err(RecvTimeoutError::Timeout) if clock.elapsed() - last < patience => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(silent(!told.kernel.is_empty(), patience));
            }
        }
    }
    Ok(())
}

/// Lines that are no report come from firmware.
fn take(line: &str, start: Instant, told: &mut Told) -> Result<(), String> {
    let Some(Ok(report)) = line.find('{').map(|at| serde_json::from_str(line[at..].trim_end()))
    else {
        return Ok(());
    };
    match report {
        Report::Hello { kernel } => told.kernel = kernel,
        Report::Probed(found) => told.probed = Some(found),
        Report::Ready(snapshot) => {
            told.ready = *snapshot;
            told.began = true;
            told.boot = start.elapsed();
            told.samples.clear();
        }
        Report::Mark { phase, at } => told.marks.push((phase, *at)),
        Report::Command(command) => told.commands.push((told.marks.len(), command)),
        Report::Sample { at_us, groups } => told.samples.push((at_us, groups)),
        Report::Events { text } => told.events.push_str(&text),
        Report::Step(step) => told.steps.push(*step),
        Report::Stopped { at, text } => (told.stopped, told.text) = (Some(*at), text),
        Report::Over { at, workers } => (told.over, told.workers) = (Some(*at), workers),
        Report::Symbols { text } => told.symbols = Some(text),
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

fn finished(mut told: Told, messages: &str, complaint: &str) -> Result<Told, String> {
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
    let is_over = told.over.is_some() || told.stopped.is_some();
    if is_over || (complaint.is_empty() && !told.kernel.is_empty()) {
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
mod tests;
