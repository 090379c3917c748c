//! Starts a worker, speaks to it through its line, and passes on what it asks.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use mglru_guest::report::{Done, Ended};

use crate::ask::{Ask, Start};

/// The program of every process here.
const SELF: &str = "/init";

/// Reads messages of a worker; none come when its line is closed.
pub(super) type Heard = (usize, Option<Ask>);

pub(super) struct Running {
    pub(super) child: Child,
    /// Gone once the worker is.
    pub(super) line: Option<ChildStdin>,
    /// Tasks that the run waits for.
    pub(super) left: BTreeSet<u32>,
    /// Tasks that have not ended, in the background too.
    pub(super) busy: BTreeSet<u32>,
    pub(super) counted: Done,
    pub(super) ended: Ended,
}

pub(super) fn start_worker(
    at: usize,
    start: &Start,
    sender: Sender<Heard>,
) -> Result<Running, String> {
    let mut command = Command::new(SELF);
    command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("starting a worker: {e}"))?;
    let out = child.stdout.take().expect("it is piped");
    thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        for ask in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
            let _ = sender.send((at, Some(ask)));
        }
        let _ = sender.send((at, None));
    });
    let line = child.stdin.take();
    let counted = start.me.tasks.iter().filter(|task| !task.background);
    let left = counted.map(|task| task.id).collect();
    let busy = start.me.tasks.iter().map(|task| task.id).collect();
    let ended = Ended { pid: Some(child.id()), ..Ended::default() };
    let counted = Done::default();
    let mut worker = Running { child, line, left, busy, counted, ended };
    worker.say(start);
    Ok(worker)
}

impl Running {
    /// A worker that was killed meanwhile is noticed when its line is read.
    pub(super) fn say(&mut self, message: &impl serde::Serialize) {
        let mut text = serde_json::to_vec(message).expect("messages have string keys only");
        text.push(b'\n');
        if let Some(line) = &mut self.line {
            let _ = line.write_all(&text);
        }
    }
}
