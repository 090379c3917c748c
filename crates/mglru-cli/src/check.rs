//! `mglru check`: a plan's bounds judged on a booted kernel, with the statuses of `git bisect run`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Answer, Asked, REFUSED};
use mglru_error::Error;
use mglru_lab::check::{self, UNJUDGED, Verdict};
use mglru_lab::record::Record;
use mglru_lab::runner::{self, Progress};
use mglru_lab::spec::Experiment;
use mglru_lab::store::{self, Store};

const EXAMPLES: &str = "\
Examples:
  mglru check check-scan --kernel 7.1.13
  mglru check my-plan.toml --kernel arch/x86/boot/bzImage --tap
  mglru check check-scan --kernel old=7.1.13 --kernel new=7.2.12 --junit out.xml
  git bisect run sh -c 'make -j8 bzImage || exit 125
    mglru check --bisect my-plan.toml --kernel arch/x86/boot/bzImage'

A plan says what must hold in [[bound]] tables, on every run of every variant:
  metric = \"pgscan_direct / pgsteal_direct\", at_most = 2 and (or) at_least = 1
  metric = \"pgpgin\", phase = \"after\", record = \"good/records.jsonl\", within = \"5%\"
  metric = \"my_counter\", at_most = 0, optional = true   (kernels without it are not judged)
  no_oom_kill = true
  sound_generations = true         1 to 4 in order, no size below 0
and in each, if wanted, name = \"…\" and variant = \"…\".

Exit status: 0 every bound holds; 1 one does not; 125 the kernel does not boot or cannot be judged
(git bisect skips it); 2 bad usage, a bad plan, a host that lacks something: no kernel was judged.
git bisect takes 2 for a bad version; with --bisect such mistakes exit with 255, which stops it.";

/// Exit status that ends `git bisect run`.
const STOP: u8 = 255;

/// Arguments of `mglru check`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
    /// Exit with 255 in place of 2, so that git bisect run stops at a mistake
    #[arg(long)]
    bisect: bool,
    /// Print TAP 13 in place of a line a bound
    #[arg(long)]
    tap: bool,
    /// Write JUnit's XML as well
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Keep records and the kernel's messages in this folder; runs that it has are not run again
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Answer {
    let experiment = args.asked.experiment()?;
    let plan = &experiment.plan;
    if plan.bounds.is_empty() {
        let problem = "has no [[bound]]: nothing to check";
        return Err(Error::Request(format!("{}: {problem}", plan.file)));
    }
    let stored = check::stored(&plan.bounds, &plan.file)?;
    args.junit.iter().try_for_each(|file| writable(file))?;
    let records = records(&experiment, args.out.as_deref())?;
    if let Ok(records) = &records {
        check::mistakes(&plan.bounds, records).map_err(|e| e.in_file(&plan.file))?;
    }
    let judged = records.map(|records| check::judge(&plan.bounds, &records, &stored));
    answer(args, &plan.name, judged)
}

/// Tells the status of a command that is refused, which `--bisect` changes: known before the
/// command line is, as that may be what is refused.
pub(super) fn refusal(args: &[OsString]) -> u8 {
    let is_check = args.get(1).is_some_and(|command| command == "check");
    match is_check && args.iter().any(|arg| arg == "--bisect") {
        true => STOP,
        false => REFUSED,
    }
}

/// The file is written at the end of a run that may take long.
fn writable(file: &Path) -> Result<(), Error> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match std::fs::metadata(folder) {
        Err(e) => Err(Error::io(file, e)),
        Ok(_) if file.is_dir() => Err(Error::io(file, std::io::ErrorKind::IsADirectory.into())),
        Ok(_) => Ok(()),
    }
}

/// The records, or why a run gave none.
fn records(
    experiment: &Experiment,
    out: Option<&Path>,
) -> Result<Result<Vec<Record>, String>, Error> {
    let scratch = tempfile::tempdir().map_err(|e| Error::io(&std::env::temp_dir(), e))?;
    let (mut store, found) = Store::open(out.unwrap_or(scratch.path()), experiment)?;
    super::run::report_kept(&found);
    let progress = Progress::on_terminal();
    let ran = runner::run_all(experiment, &mut store, experiment.default_jobs, &progress);
    match ran {
        Err(Error::Machine(why)) => Ok(Err(without_files(&why, scratch.path()))),
        // A plan's mistake may be reported beside files, too.
        Err(Error::Request(why)) => Err(Error::Request(without_files(&why, scratch.path()))),
        other => other.map(Ok),
    }
}

/// Does not name files of a folder that goes away.
fn without_files(why: &str, folder: &Path) -> String {
    let Some(at) = why.find(&folder.display().to_string()) else { return why.to_string() };
    let kept = why[..at].rsplit_once(" (").map_or(why, |(kept, _)| kept);
    format!("{kept} (--out DIR keeps the kernel's messages)")
}

fn answer(args: &Args, plan: &str, judged: Result<Vec<Verdict>, String>) -> Answer {
    let judgement = judged.as_deref().map_err(String::as_str);
    if let Some(file) = &args.junit {
        store::replace(file, &check::junit(plan, judgement))?;
    }
    let text = match args.tap {
        true => check::tap(judgement),
        false => check::lines(plan, judgement),
    };
    Ok((text, judgement.map_or(UNJUDGED, check::status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_check_for_git_bisect_stops_it() {
        let status = |line: &str| refusal(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(status("mglru check p.toml"), 2);
        assert_eq!(status("mglru check p.toml --bisect --no-such"), 255);
        assert_eq!(status("mglru exec -- program --bisect"), 2);
    }

    #[test]
    fn files_that_are_gone_are_not_named() {
        let shortened = |why: &str| without_files(why, Path::new("/away"));
        let gone = "it hangs (output: /away/runs/a.log) (console: /away/runs/b.log)";
        assert_eq!(shortened(gone), "it hangs (--out DIR keeps the kernel's messages)");
        assert_eq!(shortened("it hangs (console: o/b.log)"), "it hangs (console: o/b.log)");
    }
}
