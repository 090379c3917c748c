//! Carries out `mglru sweep`: a plan at every point of its axes, as tasks that anybody can make.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use toml::Value;

use super::booted::Booted;
use super::run::{self, Output};
use super::{Answer, Asked};
use mglru_error::Error;
use mglru_lab::answers::{self, Answers};
use mglru_lab::dotted::{self, Assignment};
use mglru_lab::plan::MAX_SEEDS;
use mglru_lab::runner::Progress;
use mglru_lab::scale;
use mglru_lab::spec::Experiment;
use mglru_lab::store::{self, Store};
use mglru_lab::task::Task;

const EXAMPLES: &str = "\
Examples:
  mglru sweep quickstart --set workload.theta=0.8,0.9,0.99 --seeds 10 --jobs 8
  mglru sweep quickstart --set workload.theta=0.8,0.9 --ray auto      on a Ray cluster
  mglru sweep quickstart --through 'ssh big mglru sweep --task -'     on another machine
  mglru sweep quickstart --tasks tasks.jsonl                          for a batch system:
  split -l 1 tasks.jsonl task. && mglru sweep --task task.aa > a.jsonl
  mglru sweep quickstart --merge a.jsonl --merge b.jsonl

Records are the same bytes wherever a run was made and in whatever order they came. Finished runs
are kept in the folder; the same command again runs only what is missing. A folder of `mglru run`
goes on here, and the other way round.";

/// Asks Python for the driver, and reports its absence as a driver reports errors.
const DRIVER: &str = "\
import json, sys
try:
    from mglru import ray_driver
except ImportError as e:
    needs = 'needs the Python packages mglru and ray (pip install ./python[ray])'
    print(json.dumps({'error': f'--ray: {needs}: {e}'}))
    sys.exit(2)
sys.exit(ray_driver.main(sys.argv[1:]))
";

/// Arguments of `mglru sweep`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Take a plan by name (see `mglru list plans`) or from a TOML file
    #[arg(value_name = "PLAN|FILE.toml", required_unless_present = "task")]
    plan: Option<String>,
    /// Choose the backend [default: the plan's]; only runs of the model can be made elsewhere
    #[arg(long, value_name = "BACKEND")]
    backend: Option<String>,
    /// Run these variants only (repeatable, or with commas)
    #[arg(long = "variant", alias = "variants", value_name = "V", value_delimiter = ',')]
    variants: Vec<String>,
    /// Compare all others with this variant [default: the plan's]
    #[arg(long, value_name = "V")]
    base: Option<String>,
    /// Use this number of seeds [default: the plan's]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS)
    )]
    seeds: Option<u64>,
    /// Scale workload and limits by this factor: 1/64 or 0.015625 [default: the plan's]
    #[arg(long, value_name = "F", allow_negative_numbers = true, value_parser = scale::parse)]
    scale: Option<f64>,
    /// Run at each of these values of a key of the plan (repeatable); the last key is fastest
    #[arg(long = "set", value_name = "KEY=A,B,C", value_parser = axis)]
    sets: Vec<Assignment>,
    #[command(flatten)]
    output: Output,
    /// Make the runs on a Ray cluster: auto (the one that RAY_ADDRESS or this machine has, else a
    /// new one of this machine's processors) or an address. Python needs the packages mglru and ray
    #[arg(long, value_name = "auto|ADDRESS", conflicts_with = "jobs")]
    ray: Option<String>,
    /// Set how many times Ray starts a run again whose worker was lost
    #[arg(long, value_name = "N", default_value_t = 3, requires = "ray")]
    retries: u16,
    /// Have a command make the runs: it reads tasks, a line each, and prints their records in any
    /// order
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["ray", "jobs"])]
    through: Option<String>,
    /// Write the tasks without a record to a file, a line each, or to stdout (-), and run nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ray", "through", "jobs"])]
    tasks: Option<PathBuf>,
    /// Take the records in a file (repeatable), then run what is missing unless --tasks
    #[arg(long, value_name = "FILE")]
    merge: Vec<PathBuf>,
    /// Make the runs whose tasks stand in a file or come on stdin (-), and print their records
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["plan", "ray", "through", "tasks", "merge", "jobs", "out", "variants",
            "sets", "seeds", "scale", "backend", "base"]
    )]
    task: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Answer {
    if let Some(file) = &args.task {
        return make(file);
    }
    let asked = args.asked();
    let experiment = asked.experiment()?;
    let dir = args.output.out.clone().unwrap_or_else(|| run::default_dir(&experiment));
    for file in &args.merge {
        merge(&experiment, &dir, file)?;
    }
    if let Some(file) = &args.tasks {
        return tasks(&experiment, &dir, file);
    }
    let command = args.command();
    if let Some(command) = &command {
        let (mut store, found) = Store::open(&dir, &experiment)?;
        run::report_kept(&found);
        answers::run_all(&experiment, &mut store, command, &Progress::on_terminal())?;
    }
    let mut output = args.output.clone();
    output.quiet = command.is_some();
    run::check_skin(&output)?;
    run::execute(&asked, &output, &[experiment], &[])
}

impl Args {
    fn asked(&self) -> Asked {
        Asked {
            plan: self.plan.clone().unwrap_or_default(),
            backends: self.backend.iter().cloned().collect(),
            variants: self.variants.clone(),
            base: self.base.clone(),
            seeds: self.seeds,
            scale: self.scale,
            sets: self.sets.clone(),
            booted: Booted::default(),
            is_quick: false,
        }
    }

    /// The command that makes runs; none: this process.
    fn command(&self) -> Option<Vec<String>> {
        let args = |args: &[&str]| args.iter().map(|word| word.to_string()).collect();
        if let Some(address) = &self.ray {
            let retries = self.retries.to_string();
            let driver = ["python3", "-c", DRIVER, "--address", address, "--retries", &retries];
            return Some(args(&driver));
        }
        self.through.as_ref().map(|command| args(&["sh", "-c", command]))
    }
}

/// Makes the runs of a file of tasks, in order, and prints each record when it is there.
fn make(file: &Path) -> Answer {
    let file = if file.as_os_str() == "-" { Path::new("/dev/stdin") } else { file };
    let opened = std::fs::File::open(file).map_err(|e| Error::io(file, e))?;
    let mut found = 0;
    for line in BufReader::new(opened).lines() {
        let line = line.map_err(|e| Error::io(file, e))?;
        if line.trim().is_empty() {
            continue;
        }
        let record = Task::parse(&line)?.run()?;
        let mut out = std::io::stdout().lock();
        let written = out.write_all(record.line().as_bytes()).and_then(|()| out.flush());
        written.map_err(|e| Error::io(Path::new("stdout"), e))?;
        found += 1;
    }
    match found {
        0 => Err(Error::Request(format!("{}: holds no task", file.display()))),
        _ => Ok((String::new(), 0)),
    }
}

fn tasks(experiment: &Experiment, dir: &Path, file: &Path) -> Answer {
    let (store, found) = Store::open(dir, experiment)?;
    run::report_kept(&found);
    let missing = store.missing(experiment);
    let lines = missing.iter().map(|run| Task::new(experiment, run).map(|task| task.line()));
    let text: String = lines.collect::<Result<_, _>>()?;
    if file.as_os_str() == "-" {
        return Ok((text, 0));
    }
    store::replace(file, &text)?;
    Ok((format!("{} tasks: {}\n", missing.len(), file.display()), 0))
}

/// Takes the records of a file; a torn last line is left out, and said.
fn merge(experiment: &Experiment, dir: &Path, file: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(file).map_err(|e| Error::io(file, e))?;
    let (mut store, _) = Store::open(dir, experiment)?;
    let mut answers = Answers::new(experiment, &store);
    let (whole, torn) = text.rsplit_once('\n').unwrap_or(("", &text));
    for (at, line) in whole.lines().enumerate() {
        let place = |e| Error::Request(format!("{}:{}: {e}", file.display(), at + 1));
        answers.take(line, &mut store).map_err(place)?;
    }
    if !torn.trim().is_empty() {
        let n = torn.len();
        eprintln!("{}: the last line is torn, its {n} bytes are left out", file.display());
    }
    store.finish(experiment).map(|_| ())
}

/// Reads `KEY=A,B,C` as a list of values; brackets and quotes are TOML.
fn axis(text: &str) -> Result<Assignment, String> {
    let mut set: Assignment = text.parse()?;
    let Some(values) = set.value.as_str().filter(|_| !text.contains(['"', '\'', '['])) else {
        return Ok(set);
    };
    if values.contains(',') {
        let values = values.split(',').map(|value| dotted::parse_value(value.trim()));
        set.value = Value::Array(values.collect());
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_make_an_axis() {
        let value = |text| axis(text).unwrap().value.to_string();
        assert_eq!(value("a=0.8, 0.9"), "[0.8, 0.9]");
        assert_eq!(value("a=4MiB,8MiB"), "[\"4MiB\", \"8MiB\"]");
        assert_eq!(value("a=1..5"), "\"1..5\"");
        assert_eq!(value("a=[1, 2]"), "[1, 2]");
        assert_eq!(value("a='x,y'"), "\"x,y\"");
        assert_eq!(value("a=3"), "3");
    }
}
