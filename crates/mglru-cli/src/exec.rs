//! `mglru exec`: an unmodified program whose file mappings and heap stay within a budget.

mod events;
pub(super) mod writer;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use mglru_pager::events::SLOTS;
use mglru_pager::launch::{Launch, malloc, swap_room};
use mglru_pager::{FaultEngine, ForkPolicy};
use mglru_sim::spec::Size;

use super::Answer;
use mglru_error::Error;
use mglru_live::steer;

/// Arguments of `mglru exec`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Sets the budget of all managed mappings, the pager's own memory included
    #[arg(long = "memory.max", alias = "memory-max", value_name = "SIZE")]
    max: Option<Size>,
    /// From here on pages are reclaimed in the background
    #[arg(long = "memory.high", alias = "memory-high", value_name = "SIZE")]
    high: Option<Size>,
    /// Shorter mappings are left to the kernel
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    least: Size,
    /// Says when a forked child gets its memory: pages that it touches, for as long as its parent
    /// lives, or all at once
    #[arg(long, value_name = "POLICY", default_value = "serve")]
    fork: Fork,
    /// Leaves private anonymous memory (the malloc heap) to the kernel
    #[arg(long)]
    no_heap: bool,
    /// Manages shared mappings of files too. Other processes and forked children then see stores
    /// when they are written back, not at once, and what was stored since is lost if the program
    /// is killed by SIGKILL; without this such mappings stay with the kernel
    #[arg(long)]
    manage_shared_files: bool,
    /// Chooses the thread that serves faults of file mappings: threads beside the program, or the
    /// thread that faults, by SIGBUS: cheaper, for programs that give the kernel what they map by
    /// the C library's reads, writes, sends, receives, fread and fwrite alone (what else is given
    /// it, by io_uring for one, gets EFAULT where a page is not there)
    #[arg(long, value_name = "ENGINE", default_value = "thread")]
    faults: Faults,
    /// Ends the program, and all processes below it, with status 2 and one line as soon as memory
    /// outside of the budget is found: more than 6 MiB (`mglru ctl get memory.unmanaged` says
    /// how much and why; mapped files do not count). It looks 20 times a second
    #[arg(long)]
    strict: bool,
    /// Sets the size of the swap file for the heap, behind a quarter of the budget of compressed
    /// memory [default: 4GiB, or seven eighths of what there is room for]
    #[arg(long, value_name = "SIZE")]
    swap: Option<Size>,
    /// Makes the swap file in this directory
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    swap_dir: PathBuf,
    /// Shows the pager's groups as a directory like a cgroup's at this empty one
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    /// Serves Prometheus metrics at http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// Reclaims what nobody misses, step by step, as long as tasks wait for memory for less than
    /// this share of the time, percent (`mglru ctl hold`)
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true,
        default_missing_value = "0.1", value_parser = crate::advise::percent)]
    auto: Option<f64>,
    /// Writes the pager's trace events to this file: as ftrace does, or a Perfetto trace (a name
    /// that ends in .pftrace or .perfetto-trace). They go through a buffer that takes 260 KiB of
    /// the budget; what it has no room for is lost and counted. The program waits for the file at
    /// its end alone, 6 s at most
    #[arg(long, value_name = "FILE", value_parser = crate::run::file)]
    trace_events: Option<PathBuf>,
    /// Writes page faults among the trace events, as `page_fault_user`: `mglru trace record --by
    /// pager` makes a trace of the program's pages from them
    #[arg(long, requires = "trace_events")]
    trace_faults: bool,
    /// Sets how many events the buffer holds
    #[arg(long, hide = true, default_value_t = SLOTS as u32,
        value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    trace_slots: u32,
    /// Runs this program
    program: String,
    /// Passes it these arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Fork {
    Serve,
    Copy,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Faults {
    Thread,
    Sigbus,
}

/// The size of the swap file unless one is asked for, bytes.
const SWAP: u64 = 4 << 30;

/// Warns of the losses of a program whose shared mappings of files are managed.
const SHARED_FILES: &str = "shared mappings of files are managed: other processes see stores when \
     they are written back, forked children see the file as it was and read-only, and SIGKILL \
     loses what was stored since the last write-back";

impl Args {
    fn launch(&self) -> Result<Launch, Error> {
        let limit = |size: Option<Size>| size.filter(|&size| size != Size::MAX).map(|Size(n)| n);
        let fork = match self.fork {
            Fork::Serve => ForkPolicy::Serve,
            Fork::Copy => ForkPolicy::Copy,
        };
        let faults = match self.faults {
            Faults::Thread => FaultEngine::Thread,
            Faults::Sigbus => FaultEngine::Sigbus,
        };
        Ok(Launch {
            library: mglru_carried::library()?,
            memory_max: limit(self.max),
            memory_high: limit(self.high),
            least: Some(self.least.0),
            heap: Some(fork)
                .filter(|_| !self.no_heap && (self.max.is_some() || self.high.is_some())),
            faults,
            shared_files: self.manage_shared_files,
            swap: Some(self.swap()),
            swap_dir: Some(self.swap_dir.clone()),
            control: Some(steer::prefix()),
            strict: self.strict,
            trace_events: self.trace_events.as_ref().map(|_| events::socket(std::process::id())),
        })
    }

    /// The size of the swap file, bytes. A host with little room runs the program all the same,
    /// unless a size was asked for.
    fn swap(&self) -> u64 {
        if let Some(Size(bytes)) = self.swap {
            return bytes;
        }
        // The check of the folder says what is wrong with it.
        let room = swap_room(&self.swap_dir).map_or(SWAP, |room| room - room / 8);
        SWAP.min(room) & !4095
    }

    /// Says what the program does without.
    fn warn(&self, launch: &Launch) {
        if let (None, Some(bytes @ ..SWAP)) = (self.swap, launch.swap) {
            let (folder, mib) = (self.swap_dir.display(), bytes >> 20);
            eprintln!("mglru exec: the swap file has {mib} MiB: no room for 4 GiB in {folder}");
        }
        if launch.heap.is_some() && malloc().is_none() {
            eprintln!("mglru exec: malloc stays with the kernel: no libjemalloc.so.2 on this host");
        }
        if launch.shared_files {
            eprintln!("mglru exec: {SHARED_FILES}");
        }
    }

    /// Lists the services to start, as commands of `mglru ctl`.
    fn services(&self) -> Vec<Vec<String>> {
        let mount = self.mount.as_ref().map(|dir| vec!["mount".into(), dir.display().to_string()]);
        let metrics = self.metrics.as_ref().map(|address| vec!["metrics".into(), address.clone()]);
        let hold = |bound: f64| ["hold", "/", "--pressure", &bound.to_string()].map(str::to_string);
        let auto = self.auto.map(|bound| hold(bound).to_vec());
        mount.into_iter().chain(metrics).chain(auto).collect()
    }
}

/// Starts them: processes outside of the program, which has this process's number.
fn serve(services: &[Vec<String>]) -> Result<(), Error> {
    let pid = std::process::id().to_string();
    for service in services {
        let text = service.join(" ");
        let failed = |error| Error::Request(format!("`mglru ctl {text}`: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut ctl = std::process::Command::new(program);
        let ctl = ctl.args(["ctl", "--pid", &pid]).args(service).arg("--background");
        if !ctl.status().map_err(failed)?.success() {
            return Err(Error::Request(format!("{text}: not served")));
        }
    }
    Ok(())
}

/// Becomes the program; comes back only if that fails.
pub(super) fn run(args: &Args) -> Answer {
    let launch = args.launch()?;
    let services = args.services();
    let command = launch.command(&args.program);
    let mut command = command.map_err(|e| Error::Request(e.to_string()))?;
    serve(&services)?;
    let begin = |file: &PathBuf| events::begin(file, args.trace_slots as usize, args.trace_faults);
    args.trace_events.iter().try_for_each(begin)?;
    args.warn(&launch);
    let failed = command.args(&args.args).exec();
    Err(Error::Request(format!("`{}`: {failed}", args.program)))
}
