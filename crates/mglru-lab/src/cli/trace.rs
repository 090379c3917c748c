//! `mglru trace info` and `mglru trace replay`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use mglru_workload::trace::{Format as TraceFormat, TraceError, View};

use super::Answer;
use crate::error::{Error, did_you_mean};
use crate::flat::Policy;
use crate::render;
use crate::trace_cmd::{self, Capacity, ReplayReport, ReplayRequest, TraceInfo};

const EXAMPLE: &str = "\
Example:
  mglru trace replay t.lis.zst --policy lru,min --size 1%,10%";

#[derive(Subcommand)]
pub(super) enum Command {
    /// Count a trace's requests and distinct pages
    Info(InfoArgs),
    /// Replay a trace under policies and sizes
    #[command(after_help = EXAMPLE)]
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
    /// lru, fifo, clock, sieve, s3fifo, arc, min, min-bypass, random (comma-separated)
    #[arg(long = "policy", value_name = "P", value_delimiter = ',', required = true,
        value_parser = policy)]
    policies: Vec<Policy>,
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
    /// Trace file, plain or compressed
    file: PathBuf,
    /// Format of the trace [default: told from its name or content]
    #[arg(long)]
    trace_format: Option<TraceFormat>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Json,
}

pub(super) fn run(command: &Command) -> Answer {
    match command {
        Command::Info(args) => {
            let info = trace_cmd::info(&args.trace.file, args.trace.trace_format)?;
            Ok((args.trace.render(&info, info_table), 0))
        }
        Command::Replay(args) => {
            let report = trace_cmd::replay(&args.request())?;
            Ok((args.trace.render(&report, replay_table), 0))
        }
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        Self::Request(error.to_string())
    }
}

impl TraceArgs {
    fn render<T: serde::Serialize>(&self, value: &T, table: fn(&T) -> String) -> String {
        match self.format {
            Form::Json => render::json(value),
            Form::Table => table(value),
        }
    }
}

impl ReplayArgs {
    fn request(&self) -> ReplayRequest {
        ReplayRequest {
            path: self.trace.file.clone(),
            format: self.trace.trace_format,
            view: if self.pages { View::Pages } else { View::Requests },
            policies: self.policies.clone(),
            sizes: self.sizes.clone(),
            seed: self.seed,
        }
    }
}

fn policy(name: &str) -> Result<Policy, String> {
    name.parse().map_err(|_| {
        format!("unknown policy{}", did_you_mean(name, Policy::ALL.into_iter().map(Policy::name)))
    })
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
        assert_eq!(policy("min"), Ok(Policy::Min));
        assert_eq!(policy("sieev"), Err("unknown policy (did you mean sieve?)".to_string()));
    }
}
