//! Carries out `mglru run`: runs every variant and seed of a plan and compares them.

use std::io::Write;
use std::path::{Path, PathBuf};

use mglru_guest::order::Until;

use super::ask::{self, Skin};
use super::{Answer, Asked, Format, run_all, until, watch};
use crate::signals::{at_signal, signals};
use mglru_error::Error;
use mglru_lab::plan::Plan;
use mglru_lab::record::Record;
use mglru_lab::render::{self, Beside};
use mglru_lab::report::Report;
use mglru_lab::runner::{self, Progress};
use mglru_lab::samples::Series;
use mglru_lab::sides::Sides;
use mglru_lab::spec::Experiment;
use mglru_lab::store::{self, Found, Store};
use mglru_lab::trace_events;
use mglru_lab::watch::Break;

/// Names the file that holds the command that repeats a run.
const COMMAND: &str = "command";
/// Names the page of a run: the file that people open and share.
const PAGE: &str = "report.html";

const EXAMPLES: &str = "\
Examples:
  mglru run quickstart
  mglru run mongodb --scale 1/64 --seeds 6 --jobs 4
  mglru run mongodb --full              all its variants and seeds
  mglru run fio-zipf --variant before --variant before+p10 --set machine.cpus=16
  mglru run quickstart --set 'workload.theta=[0.8, 0.9, 0.99]' --out sweep
  mglru run trace --set workload.path=t.lis.zst --set workload.cache=1%
  mglru run my-plan.toml --format json
  mglru run check-scan --kernel 7.2 --until mm_vmscan_memcg_reclaim_begin
  mglru run check-scan --kernel 7.2 --variant k6.12 --until 64183 --gdb     then a debugger
  mglru run fio-zipf --variant after --watch --break 'oom_kill>0'
  mglru run all                         every published experiment in brief, on one page

Finished runs are kept in the folder; the same command again runs only what is missing.";

/// Arguments of `mglru run`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    output: Output,
    /// Run all variants and seeds of a plan that has a quick part, which is what runs without
    #[arg(long)]
    full: bool,
    /// End booted runs at a moment and keep what the kernel reports then in files, in place of
    /// records: after so many accesses of the first process (64000), so long after the work began
    /// (1.5s, 200ms), or after the access in which a trace event of this name first happens
    /// (mm_vmscan_direct_reclaim_begin, mark_victim: an OOM kill). The way there is the same
    /// each time (virtual time only)
    #[arg(long, value_name = "ACCESSES|TIME|EVENT", value_parser = until::parse)]
    until: Option<Until>,
    /// Let the run stand still at the moment of --until and wait for a debugger at QEMU's gdb stub,
    /// at this port of 127.0.0.1 or any; the line to type is printed. The work goes on when the
    /// debugger says so, the machine ends when it leaves. Up to the moment the run is the same as
    /// without
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0",
        requires = "until"
    )]
    gdb: Option<u16>,
    /// Write the kernel's trace events of each run to FILE: ftrace text, or a Perfetto trace where
    /// the name ends in .pftrace or .perfetto-trace. Of several runs each has a file, with its
    /// name before the ending. The model's records are the same with and without
    #[arg(long, value_name = "FILE", value_parser = file, conflicts_with_all = ["until", "gdb"])]
    trace_events: Option<PathBuf>,
    /// Show each run of the model while it is made: groups, generations as bars, rates, which
    /// thread reclaims and what it waits for. Keys pause the run, step through it and set its pace;
    /// records are the same as without
    #[arg(long, conflicts_with_all = ["until", "gdb", "trace_events"])]
    watch: bool,
    /// Stop a watched run where this begins to hold (repeatable): COUNTER>N of the machine
    /// (oom_kill>0), GROUP:FIGURE<=N of a group's memory.stat (/a:file_dirty>4096), or invariants:
    /// one of the lists' is broken
    #[arg(long = "break", value_name = "CONDITION", requires = "watch")]
    breaks: Vec<Break>,
}

/// How to run and where results go.
#[derive(Clone, clap::Args)]
pub(super) struct Output {
    /// Make this many runs at a time [default: one per CPU in the simulated machine, else one]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    jobs: Option<u16>,
    /// Print the result on stdout in this form
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(super) format: Format,
    /// Print the table in this form
    #[arg(long, value_enum, value_name = "SKIN")]
    pub(super) skin: Option<Skin>,
    /// Keep records and report in this folder [default: mglru-runs/<plan>-<hash>]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Says nothing of records that are there: this command has put them there.
    #[arg(skip)]
    pub(super) quiet: bool,
}

/// Takes the name of a file to write; `-` would be one where standard output has something else.
pub(super) fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("name a file: standard output is taken".to_string()),
        _ => Ok(PathBuf::from(text)),
    }
}

pub(super) fn run(args: &Args) -> Answer {
    if let Some(until) = &args.until {
        return until::execute(&args.asked, &args.output, until, args.gdb);
    }
    let asked = Asked { is_quick: !args.full, ..args.asked.clone() };
    let events = args.trace_events.as_deref();
    if events.is_some() {
        at_signal(signals()?, trace_events::discard_unfinished);
    }
    match asked.plan.as_str() {
        "all" if events.is_some() => {
            Err(Error::Request("--trace-events: name one plan".to_string()))
        }
        "all" if args.watch => Err(Error::Request("--watch: name one plan".to_string())),
        "all" => run_all::execute(&asked, &args.output),
        _ if args.watch => watched(args, &asked),
        _ => {
            check_skin(&args.output)?;
            let mut experiments = asked.experiments()?;
            let traced = trace(&mut experiments, events)?;
            execute(&asked, &args.output, &experiments, &traced)
        }
    }
}

/// Runs a plan before somebody's eyes, then says what came of it as without.
fn watched(args: &Args, asked: &Asked) -> Answer {
    check_skin(&args.output)?;
    let experiments = asked.experiments()?;
    watch::check(&args.output, &experiments)?;
    let dir = folder(&experiments[0], args.output.out.clone());
    if !watch::records(&experiments[0], &dir, &args.breaks)? {
        let kept = format!("left before the end; finished runs are kept in {}\n", dir.display());
        return Ok((kept, 0));
    }
    let output = Output { quiet: true, ..args.output.clone() };
    execute(asked, &output, &experiments, &[])
}

/// Refuses another table where none is printed.
pub(super) fn check_skin(output: &Output) -> Result<(), Error> {
    match output.skin.is_some() && output.format != Format::Table {
        true => Err(ask::skin_of_no_table()),
        false => Ok(()),
    }
}

/// Runs what is missing of experiments that `asked` stands for, one a backend, writes records and
/// report, says what came of it and where their trace events are.
pub(super) fn execute(
    asked: &Asked,
    output: &Output,
    experiments: &[Experiment],
    traced: &[PathBuf],
) -> Answer {
    let [experiment] = experiments else {
        let (text, status) = several(asked, output, experiments)?;
        return Ok((with_traces(text, output, traced), status));
    };
    let dir = folder(experiment, output.out.clone());
    std::fs::create_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
    if !store::has_more(&dir, experiment) {
        store::replace(&dir.join(COMMAND), &format!("{}\n", asked.repeat(&experiment.plan)))?;
    }
    let report = report(experiment, &dir, output)?;
    let text = match output.format {
        Format::Json => render::json(&report),
        Format::Html => page(&dir, &report)?,
        Format::Table => {
            let table = ask::table(&report, output.skin);
            let at = format!("records: {}\npage: {}\n", dir.display(), dir.join(PAGE).display());
            let repeat = asked.repeat(&experiment.plan);
            format!("{table}{}{at}repeat: {repeat}\n", part(asked, &experiment.plan))
        }
    };
    Ok((with_traces(text, output, traced), report.exit_status()))
}

/// Says that the plan has more than ran, and how to run it.
fn part(asked: &Asked, plan: &Plan) -> String {
    match asked.is_quick && plan.has_quick() {
        true => format!("quick part of the plan: {}; --full: all of it\n", plan.quick.text()),
        false => String::new(),
    }
}

/// Has the runs write their trace events; the files.
fn trace(experiments: &mut [Experiment], events: Option<&Path>) -> Result<Vec<PathBuf>, Error> {
    let Some(file) = events else { return Ok(Vec::new()) };
    let apart = experiments.len() > 1;
    let each = experiments.iter_mut().map(|experiment| experiment.trace(file, apart));
    Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Says under a table where trace events are.
fn with_traces(text: String, output: &Output, files: &[PathBuf]) -> String {
    let line = |file: &PathBuf| format!("trace events: {}\n", file.display());
    match output.format {
        Format::Table => files.iter().fold(text, |text, file| text + &line(file)),
        _ => text,
    }
}

/// Where records of an experiment go. Those of a machine that is another while it is traced do not
/// mix with the others.
fn folder(experiment: &Experiment, out: Option<PathBuf>) -> PathBuf {
    let folder = out.unwrap_or_else(|| default_dir(experiment));
    if experiment.is_changed_by_tracing() { folder.join("traced") } else { folder }
}

/// Each backend in a folder of its own, then all of them side by side.
fn several(asked: &Asked, output: &Output, experiments: &[Experiment]) -> Answer {
    if output.format == Format::Html {
        let problem = "several backends are set side by side as table or json";
        return Err(Error::Request(format!("--format html: {problem}")));
    }
    let folder = |experiment: &Experiment| {
        folder(experiment, output.out.as_ref().map(|out| out.join(experiment.backend)))
    };
    let one = |experiment: &Experiment| report(experiment, &folder(experiment), output);
    let reports = experiments.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let sides = Sides::new(&experiments[0].plan, &reports);
    let text = match output.format {
        Format::Json => render::json(&sides),
        _ => {
            let dirs = experiments.iter().map(|e| format!("records: {}\n", folder(e).display()));
            let dirs: String = dirs.collect();
            let (sides, plan) = (render::sides(&sides), &experiments[0].plan);
            format!("{sides}{}{dirs}repeat: {}\n", part(asked, plan), asked.repeat(plan))
        }
    };
    Ok((text, sides.exit_status()))
}

/// Runs what is missing of an experiment into its folder, and draws its page: of all that lies
/// there, so that a few runs more do not take a comparison away.
pub(super) fn report(
    experiment: &Experiment,
    dir: &Path,
    output: &Output,
) -> Result<Report, Error> {
    let report = made(experiment, dir, output)?;
    let drawn = match store::has_more(dir, experiment) {
        true => &Report { notes: report.notes.clone(), ..stored(dir)? },
        false => &report,
    };
    store::replace(&dir.join(PAGE), &page(dir, drawn)?)?;
    Ok(report)
}

/// Runs what is missing of an experiment into its folder. A page that lies there stays.
pub(super) fn made(experiment: &Experiment, dir: &Path, output: &Output) -> Result<Report, Error> {
    let mut store = open(experiment, dir, output.quiet)?;
    let jobs = output.jobs.map_or(experiment.default_jobs, usize::from);
    let records = runner::run_all(experiment, &mut store, jobs, &Progress::on_terminal())?;
    let mut report = Report::new(&experiment.plan, experiment.backend, records);
    // Records of an earlier run may not say it.
    report.notes.clone_from(&experiment.notes);
    Ok(report)
}

/// Opens an experiment's folder, says which records it has, and puts the plan beside them.
pub(super) fn open(experiment: &Experiment, dir: &Path, is_quiet: bool) -> Result<Store, Error> {
    let (store, found) = Store::open(dir, experiment)?;
    if !is_quiet {
        report_kept(&found);
    }
    store::replace(&dir.join("plan.toml"), &experiment.plan.source)?;
    Ok(store)
}

/// Draws the page of a folder's report, with what lies in the folder besides.
pub(super) fn page(dir: &Path, report: &Report) -> Result<String, Error> {
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_default();
    let kept = |record: &Record| Series::read(&store::files(dir, &record.run_id()));
    let series = report.records.iter().map(kept).collect::<Result<_, _>>()?;
    let (plan, command) = (text("plan.toml"), text(COMMAND));
    Ok(render::html(report, &Beside { series, plan, command }))
}

pub(super) fn default_dir(experiment: &Experiment) -> PathBuf {
    PathBuf::from("mglru-runs").join(format!("{}-{}", experiment.plan.name, experiment.hash))
}

/// Tells people which earlier runs were kept; this is not part of the result.
pub(super) fn report_kept(found: &Found) {
    let facts = [
        (found.kept, "records kept from earlier runs"),
        (found.torn, "torn lines dropped, their runs are repeated"),
        (found.other, "records of another plan or version moved to records.other.jsonl"),
    ];
    for (count, fact) in facts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(std::io::stderr(), "mglru: {count} {fact}");
    }
}

/// The report of a folder written by `mglru run`.
pub(super) fn stored(dir: &Path) -> Result<Report, Error> {
    let records = store::load(dir)?;
    let file = dir.join("plan.toml");
    let text = std::fs::read_to_string(&file).map_err(|e| Error::io(&file, e))?;
    let plan = Plan::parse(&file.display().to_string(), &text, &[])?;
    let backend = records[0].backend.clone();
    Ok(Report::new(&plan, &backend, records))
}
