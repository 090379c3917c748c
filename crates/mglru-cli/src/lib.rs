//! The command line: one straight line from arguments to a text on stdout and an exit status.

mod ablate;
mod advise;
mod ask;
mod bars;
mod booted;
mod capture;
mod check;
mod compare;
mod control;
mod ctl;
mod diverge;
mod doctor;
mod exec;
mod explain;
mod gdb;
mod kernel;
mod keys;
mod list;
mod man;
mod measure;
mod profile;
mod run;
mod run_all;
mod show;
mod signals;
mod start_cost;
mod sweep;
mod terminal;
mod top;
mod trace;
mod until;
mod watch;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

pub use ask::{Asked, Format};

use mglru_error::Error;

const EXAMPLES: &str = "\
Examples:
  mglru run quickstart                         before, after and classic in seconds
  mglru run mongodb                            a published experiment at its full size
  mglru run mongodb --variant before --variant p10          one patch with what it needs
  mglru run fio-zipf --set groups./fio.memory.max=2GiB     any key of a plan
  mglru ablate mongodb --seeds 1 --mode one-in              which patch does what
  mglru compare mglru-runs/a mglru-runs/b      two folders of records
  mglru check check-scan --kernel 7.2.12       a test of a booted kernel, for git bisect run
  mglru exec --memory.max 128MiB -- fio job.fio   a program on real memory under a budget
  mglru ctl set memory.max 96M                 change the budget of the program that runs
  mglru trace replay t.csv --policy lru,min,after --size 1%,10%
  mglru help keys machine                      the keys of a plan's section; without one, all

Exit status: 0 done; 1 a published expectation was missed or a control failed;
2 bad input, with one line that names the file, key or option.";

/// Linux page reclaim as a laboratory: run published experiments under any variant of the policy.
#[derive(Parser)]
#[command(name = "mglru", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every variant and seed of a plan and compare them
    Run(run::Args),
    /// Run a sweep, here, by another command or on a Ray cluster; make one of its runs
    Sweep(sweep::Args),
    /// Judge a plan's bounds on a booted kernel: a test for git bisect run
    Check(check::Args),
    /// Flip one switch at a time: which patch does what
    Ablate(ablate::Args),
    /// List plans, variants, switches, workloads, counters or keys of plans
    List(list::Args),
    /// Show a plan as it would run
    Show(show::Args),
    /// Compare two record files, run folders, or captures of counters of real machines
    Compare(compare::Args),
    /// Capture the counters of this machine, or of a group, while a command runs
    Capture(capture::Args),
    /// Replay jobs measured on real kernels in the model; measure them, or step both
    #[command(visible_alias = "control")]
    Validate(control::Args),
    /// Find the first access after which two kernels, or a kernel and the model, differ
    Diverge(diverge::Args),
    /// Say what a booted kernel's functions cost, in instructions, and where runs differ
    Profile(profile::Args),
    /// Write the HTML page of a run folder again
    Report(show::ReportArgs),
    /// Inspect a trace or replay it under any policy and size
    #[command(subcommand)]
    Trace(trace::Command),
    /// Tell limits that a program can do with, from a trace, a capture or a running pager
    Advise(advise::Args),
    /// Tell the life of one page in a run of the model
    Explain(explain::Args),
    /// Run an unmodified program whose file mappings and heap stay within a budget
    Exec(exec::Args),
    /// Write the trace events of pagers to a file: what `exec --trace-events` starts
    #[command(hide = true)]
    TraceWriter(exec::writer::Args),
    /// Show running pagers and their groups: sizes, faults, refaults, pressure, generations
    Top(top::Args),
    /// Steer a running pager: read and write its groups' files, mount them, serve metrics
    Ctl(ctl::Args),
    /// Measure what the live pager must show on this host: ratios beside their targets
    Measure(measure::Args),
    /// Measure what it costs to start reclaim over many groups
    StartCost(start_cost::Args),
    /// Say what this host offers booted kernels, and install what is missing
    Doctor(doctor::Args),
    /// List and fetch kernels to boot, by version; say what one needs or lacks
    #[command(subcommand, after_help = kernel::EXAMPLES)]
    Kernel(kernel::Command),
    /// Print a completion script for a shell
    Completions {
        /// Print the script for this shell
        shell: clap_complete::Shell,
    },
    /// Write the manual's page of every command to a folder
    Man(man::Args),
}

/// Exit status of a command that is refused.
const REFUSED: u8 = 2;

/// Text for stdout and the exit status.
type Answer = Result<(String, u8), Error>;

/// Parses arguments, runs, prints. Every error leaves through here.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = keys::asked(args.into_iter().collect());
    let refusal = check::refusal(&args);
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) if e.use_stderr() => return fail(&usage(&e), refusal),
        Err(e) => return print(&e.render().to_string(), 0),
    };
    match answer(cli.command) {
        Ok((text, status)) => print(&text, status),
        Err(e) if e.is_broken_pipe() => ExitCode::SUCCESS,
        Err(e) => fail(&e.to_string(), refusal),
    }
}

fn answer(command: Command) -> Answer {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Ablate(args) => ablate::run(&args),
        Command::List(args) => list::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Validate(args) => control::run(&args),
        Command::Diverge(args) => diverge::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Report(args) => show::report(&args),
        Command::Trace(command) => trace::run(&command),
        Command::Advise(args) => advise::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Exec(args) => exec::run(&args),
        Command::TraceWriter(args) => exec::writer::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Ctl(args) => ctl::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::StartCost(args) => start_cost::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Kernel(command) => kernel::run(&command),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "mglru", &mut script);
            Ok((String::from_utf8_lossy(&script).into_owned(), 0))
        }
    }
}

/// Prints the output; its reader may stop early, which is no error.
fn print(text: &str, status: u8) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            fail(&Error::io(Path::new("stdout"), e).to_string(), REFUSED)
        }
        _ => ExitCode::from(status),
    }
}

fn fail(message: &str, status: u8) -> ExitCode {
    // With stderr gone too nobody is left to read a message.
    let _ = writeln!(std::io::stderr(), "mglru: error: {}", message.replace('\n', " "));
    ExitCode::from(status)
}

/// clap's message without its usage block: the one line that names the option.
fn usage(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let line = lines.collect::<Vec<_>>().join(" ");
    match line.strip_prefix("error: ") {
        Some(rest) => rest.to_string(),
        None => "needs a command; see mglru --help".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_errors_are_one_line() {
        let error = Cli::try_parse_from(["mglru", "run", "x", "--scale", "2"]).err().unwrap();
        assert_eq!(
            usage(&error),
            "invalid value '2' for '--scale <F>': must be above 0 and at most 1, \
             such as 0.25 or 1/64"
        );
        let error = Cli::try_parse_from(["mglru"]).err().unwrap();
        assert_eq!(usage(&error), "needs a command; see mglru --help");
    }
}
