//! `mglru trace info` and `mglru trace replay`.

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use mglru_workload::trace::{
    Format as TraceFormat, Summary, TraceError, TraceFile, View, trace_name,
};

use super::Answer;
use crate::error::{Error, did_you_mean};
use crate::flat::Policy;
use crate::policy;
use crate::render;
use crate::trace_cmd::{self, Capacity, ReplayReport, ReplayRequest, TraceInfo};
use crate::trace_machine;
use crate::variant::Variant;

const INFO: &str = "\
Examples:
  mglru trace info t.lis.zst
  mglru trace info t.bin --trace-format plain --format json";

const REPLAY: &str = "\
Examples:
  mglru trace replay t.lis.zst --policy lru,min --size 1%,10%
  mglru trace replay t.lis.zst --policy sieve,before,after --size 64MiB --format json";

#[derive(Subcommand)]
pub(super) enum Command {
    /// Count a trace's requests and distinct pages
    #[command(after_help = INFO)]
    Info(InfoArgs),
    /// Replay a trace under policies and sizes
    #[command(after_help = REPLAY)]
    Replay(ReplayArgs),
}

#[derive(clap::Args)]
pub(super) struct InfoArgs {
    #[command(flatten)]
    trace: TraceArgs,
}

#[derive(clap::Args)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// lru, fifo, clock, sieve, s3fifo, arc, min, min-bypass, random, or a variant such as after,
    /// which runs in the machine (comma-separated)
    #[arg(
        long = "policy",
        value_name = "P",
        value_delimiter = ',',
        required = true,
        value_parser = policy
    )]
    policies: Vec<Which>,
    /// Pages (4096), bytes (64MiB) or a share of the distinct pages (1%) (comma-separated)
    #[arg(long = "size", value_name = "S", value_delimiter = ',', required = true)]
    sizes: Vec<Capacity>,
    /// Count every page of a request by itself, as a page cache does
    #[arg(long)]
    pages: bool,
    /// Seed of random replacement
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(clap::Args)]
struct TraceArgs {
    /// Trace file, plain or compressed; - is standard input
    file: PathBuf,
    /// Format of the trace [default: told from its name or content]
    #[arg(long)]
    trace_format: Option<TraceFormat>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// A flat cache, or a variant of the policy in the machine.
#[derive(Clone, Debug, PartialEq)]
enum Which {
    Flat(Policy),
    Machine(Variant),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Json,
}

pub(super) fn run(command: &Command) -> Answer {
    match command {
        Command::Info(args) => {
            let info = trace_cmd::info(args.trace.path(), args.trace.trace_format)?;
            Ok((args.trace.render(&info, info_table), 0))
        }
        Command::Replay(args) => {
            let report = args.replay()?;
            Ok((args.trace.render(&report, replay_table), 0))
        }
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        Self::Request(match error.doubts_format() {
            true => format!("{error}; --trace-format NAME chooses"),
            false => error.to_string(),
        })
    }
}

impl TraceArgs {
    fn path(&self) -> &Path {
        match self.file.as_os_str() == "-" {
            true => Path::new("/dev/stdin"),
            false => &self.file,
        }
    }

    fn render<T: serde::Serialize>(&self, value: &T, table: fn(&T) -> String) -> String {
        match self.format {
            Form::Json => render::json(value),
            Form::Table => table(value),
        }
    }
}

impl ReplayArgs {
    /// Results by policy, then by size, in the order asked for.
    fn replay(&self) -> Result<ReplayReport, Error> {
        let request = self.request()?;
        let mut report = match request.policies.is_empty() {
            false => trace_cmd::replay(&request)?,
            true => counted(&request)?,
        };
        let mut flat = std::mem::take(&mut report.results).into_iter();
        for which in &self.policies {
            for size in &self.sizes {
                let found = match which {
                    Which::Flat(_) => flat.next().expect("one result per policy and size"),
                    Which::Machine(variant) => {
                        let pages = size.pages(report.unique as u32);
                        let found = trace_machine::replay(&request, variant, pages);
                        found.map_err(Error::Request)?
                    }
                };
                report.results.push(found);
            }
        }
        Ok(report)
    }

    fn request(&self) -> Result<ReplayRequest, Error> {
        let flat = |which: &Which| match which {
            Which::Flat(policy) => Some(*policy),
            Which::Machine(_) => None,
        };
        Ok(ReplayRequest {
            file: TraceFile::open(self.trace.path())?,
            format: self.trace.trace_format,
            view: if self.pages { View::Pages } else { View::Requests },
            policies: self.policies.iter().filter_map(flat).collect(),
            sizes: self.sizes.clone(),
            seed: self.seed,
        })
    }
}

/// A report without results, for when no flat cache is asked for.
fn counted(request: &ReplayRequest) -> Result<ReplayReport, Error> {
    let summary = Summary::of(request.open()?)?;
    Ok(ReplayReport {
        trace: trace_name(request.file.path()),
        requests: summary.requests,
        unique: summary.unique.into(),
        results: Vec::new(),
    })
}

fn policy(name: &str) -> Result<Which, String> {
    if let Ok(policy) = name.parse() {
        return Ok(Which::Flat(policy));
    }
    let variant = Variant::parse(name)?;
    let variants = policy::variants();
    let known = || -> Vec<&str> {
        let flat = Policy::ALL.iter().map(|policy| policy.name());
        flat.chain(variants.iter().map(|(name, _)| name.as_str())).collect()
    };
    if !variants.iter().any(|(name, _)| *name == variant.base) {
        return Err(format!("unknown policy{}", did_you_mean(&variant.base, known())));
    }
    policy::config(&toml::Table::new(), &variant).map_err(|e| e.to_string())?;
    Ok(Which::Machine(variant))
}

fn info_table(info: &TraceInfo) -> String {
    let row = |name: &str, value: String| (name.to_string(), value);
    render::list(&[
        row("trace", info.trace.clone()),
        row("format", info.format.clone()),
        row("requests", info.requests.to_string()),
        row("unique", info.unique.to_string()),
        row("reads", info.reads.to_string()),
        row("writes", info.writes.to_string()),
    ])
}

fn replay_table(report: &ReplayReport) -> String {
    let head = format!(
        "{}: {} requests, {} distinct pages\n",
        report.trace, report.requests, report.unique
    );
    head + &render::misses(&report.results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_policies_list_near_names() {
        assert_eq!(policy("min"), Ok(Which::Flat(Policy::Min)));
        assert_eq!(policy("after"), Ok(Which::Machine(Variant::named("after"))));
        assert_eq!(policy("sieev"), Err("unknown policy (did you mean sieve?)".to_string()));
    }
}
