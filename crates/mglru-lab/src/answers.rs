//! Records that come back from elsewhere, in any order: each is taken for the run that it answers,
//! once. A command can be the elsewhere: it reads tasks, a line each, and writes records.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value as Json;

use crate::record::{Record, VERSION};
use crate::runner::Progress;
use crate::spec::Experiment;
use crate::store::Store;
use crate::task::Task;
use mglru_error::Error;

/// Times that a command is started for runs that it gave no answer to.
const ROUNDS: usize = 3;

/// Holds the runs of an experiment that await their records.
pub struct Answers {
    hash: String,
    /// By variant, seed and point: has the record come?
    runs: HashMap<(String, u64, String), bool>,
}

impl Answers {
    /// Awaits a record for every run; those that a store holds have come.
    pub fn new(experiment: &Experiment, store: &Store) -> Self {
        let key = |variant: &str, seed, point: &str| (variant.to_string(), seed, point.to_string());
        let all = experiment.runs.iter().map(|run| key(&run.variant.name, run.seed, &run.point));
        let mut runs: HashMap<_, _> = all.map(|key| (key, true)).collect();
        for run in store.missing(experiment) {
            runs.insert(key(&run.variant.name, run.seed, &run.point), false);
        }
        Self { hash: experiment.hash.clone(), runs }
    }

    /// Counts the runs whose record has not come.
    pub fn missing(&self) -> usize {
        self.runs.values().filter(|has_come| !**has_come).count()
    }

    /// Puts a record into the store; one that has come before is let go. True: it was awaited.
    ///
    /// # Errors
    /// The line is no record, is one of another sweep, or is `{"error": "…"}`.
    pub fn take(&mut self, line: &str, store: &mut Store) -> Result<bool, Error> {
        if let Some(problem) = failure(line) {
            return Err(Error::Request(problem));
        }
        let record = Record::parse(line).map_err(|e| Error::Request(format!("no record: {e}")))?;
        let (variant, seed, point) = record.key();
        let key = (variant.to_string(), seed, point.to_string());
        let belongs = record.plan_hash == self.hash && record.mglru == VERSION;
        match self.runs.get_mut(&key).filter(|_| belongs) {
            None => {
                let (plan, hash) = (&record.plan, &record.plan_hash);
                let of = format!("{plan} {hash}, {variant} seed {seed} {point}");
                Err(Error::Request(format!("a record of no run of this sweep: {}", of.trim())))
            }
            Some(has_come) if *has_come => Ok(false),
            Some(has_come) => {
                *has_come = true;
                store.push(record).map(|()| true)
            }
        }
    }
}

/// Reads why somebody could not carry out a task.
fn failure(line: &str) -> Option<String> {
    let json: Json = line.contains("\"error\"").then(|| serde_json::from_str(line).ok())??;
    Some(json.as_object().filter(|object| object.len() == 1)?.get("error")?.as_str()?.to_string())
}

/// Has a command make every run without a record, and returns all selected records in run order.
/// It is started again for what it gave no answer to, while it answers at all.
///
/// # Errors
/// The command failed, or left runs out; records that came stay.
pub fn run_all(
    experiment: &Experiment,
    store: &mut Store,
    command: &[String],
    progress: &Progress,
) -> Result<Vec<Record>, Error> {
    let mut answers = Answers::new(experiment, store);
    let all = answers.missing();
    progress.start(all);
    let mut left = all;
    for _ in 0..ROUNDS {
        if left == 0 {
            break;
        }
        let ended = round(experiment, store, command, &mut answers, progress)?;
        let missing = answers.missing();
        if missing == left {
            return Err(unanswered(command, &ended, missing, all));
        }
        left = missing;
    }
    progress.finish();
    match left {
        0 => store.finish(experiment),
        _ => Err(unanswered(command, "stopped answering", left, all)),
    }
}

fn unanswered(command: &[String], ended: &str, missing: usize, all: usize) -> Error {
    let again = "the same command again runs them";
    let command = command.join(" ");
    Error::Request(format!("{command}: {ended}, {missing} of {all} runs have no record; {again}"))
}

/// One start of the command; says how it ended.
fn round(
    experiment: &Experiment,
    store: &mut Store,
    command: &[String],
    answers: &mut Answers,
    progress: &Progress,
) -> Result<String, Error> {
    let tasks = store.missing(experiment).into_iter();
    let mut child = start(command)?;
    let input = child.stdin.take().expect("stdin is piped");
    let output = child.stdout.take().expect("stdout is piped");
    let result = std::thread::scope(|scope| {
        let lines = tasks.map(|run| Task::new(experiment, &run).map(|task| task.line()));
        let sender = scope.spawn(move || send(input, lines));
        let taken = take_all(output, &mut child, store, answers, progress);
        sender.join().expect("sending does not panic").and(taken)
    });
    let status = child.wait();
    result?;
    Ok(status.map_or_else(|e| e.to_string(), |status| format!("ended ({status})")))
}

fn start(command: &[String]) -> Result<Child, Error> {
    let (program, args) = command.split_first().map_or(("", &[][..]), |(p, args)| (p, args));
    let mut starting = Command::new(program);
    starting.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    starting.spawn().map_err(|e| Error::Request(format!("{program}: {e}")))
}

/// Writes tasks; a command need not read what it does not want.
fn send(
    mut input: ChildStdin,
    lines: impl Iterator<Item = Result<String, Error>>,
) -> Result<(), Error> {
    for line in lines {
        match input.write_all(line?.as_bytes()) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(e) => return Err(Error::Request(format!("tasks: {e}"))),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Takes records as they come. After an error the command is ended.
fn take_all(
    output: ChildStdout,
    child: &mut Child,
    store: &mut Store,
    answers: &mut Answers,
    progress: &Progress,
) -> Result<(), Error> {
    let taken = BufReader::new(output).lines().try_for_each(|line| {
        let line = line.map_err(|e| Error::Request(format!("records: {e}")))?;
        if answers.take(&line, store)? {
            progress.one_more();
        }
        Ok(())
    });
    if taken.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    taken
}

#[cfg(test)]
mod tests;
