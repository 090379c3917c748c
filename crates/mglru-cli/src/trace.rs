//! Carries out `mglru trace`: what reads traces here, what writes them in `write` and `record`.

mod record;
mod write;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use mglru_workload::trace::{Format as TraceFormat, Summary, TraceFile, View, trace_name};

use super::Answer;
use mglru_error::{Error, did_you_mean};
use mglru_lab::policy;
use mglru_lab::render;
use mglru_lab::store;
use mglru_lab::trace_machine;
use mglru_lab::variant::Variant;
use mglru_traces::flat::{Policy, SLICES};
use mglru_traces::tools::{self, Capacity, Curve, ReplayReport, ReplayRequest, TraceInfo};

const INFO: &str = "\
Examples:
  mglru trace info t.lis.zst
  mglru trace info t.bin --trace-format plain --format json";

const REPLAY: &str = "\
Examples:
  mglru trace replay t.lis.zst --policy lru,min --size 1%,10%
  mglru trace replay t.lis.zst --policy sieve,before,after --size 64MiB --format json";

const MRC: &str = "\
Examples:
  mglru trace mrc t.lis.zst                          LRU at every size, in one pass
  mglru trace mrc t.lis.zst --policy min,after --size 1%,5%,20%
  mglru trace mrc huge.csv.zst --sample 1% --picture curve.html

A size is enough when misses beyond each page's first use stay under 1 % of the requests. The table
shows every third of the 48 sizes; --format json and --picture have all.";

#[derive(Subcommand)]
pub(super) enum Command {
    /// Count a trace's requests and distinct pages
    #[command(after_help = INFO)]
    Info(InfoArgs),
    /// Replay a trace under policies and sizes
    #[command(after_help = REPLAY)]
    Replay(ReplayArgs),
    /// Tell the share of requests that miss at every size, and which size is enough
    #[command(after_help = MRC)]
    Mrc(MrcArgs),
    /// Write a trace in the compact format, or as text
    #[command(after_help = write::CONVERT)]
    Convert(write::ConvertArgs),
    /// Write what another program recorded, or a published trace, in the compact format
    #[command(after_help = write::IMPORT)]
    Import(write::ImportArgs),
    /// Write a compact trace with other page numbers and coarse times, to show to others
    #[command(after_help = write::ANONYMIZE)]
    Anonymize(write::AnonymizeArgs),
    /// Run a program and write which pages it touches in the compact format
    #[command(after_help = record::EXAMPLES)]
    Record(record::RecordArgs),
}

#[derive(clap::Args)]
pub(super) struct MrcArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Replay under these policies also, at the sizes asked for: min as a bound, or a variant such
    /// as after (comma-separated)
    #[arg(long = "policy", value_name = "P", value_delimiter = ',', value_parser = policy)]
    policies: Vec<Which>,
    /// Use these sizes: pages (4096), bytes (64MiB) or a share of the distinct pages (1%) [default:
    /// 48 from a thousandth of the pages to all of them; for other policies 1%,5%,20%]
    #[arg(long = "size", value_name = "S", value_delimiter = ',')]
    sizes: Vec<Capacity>,
    /// Count this share of the pages in each of eight samples (at most 12.5%), with a 95 %
    /// interval, in place of all
    #[arg(long, value_name = "SHARE", value_parser = sample)]
    sample: Option<u64>,
    /// Draw the curve on a page of its own
    #[arg(long, value_name = "FILE.html")]
    picture: Option<PathBuf>,
    /// Count every page of a request by itself, as a page cache does
    #[arg(long)]
    pages: bool,
    /// Set the seed of random replacement
    #[arg(long, default_value_t = 1)]
    seed: u64,
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
    /// Replay under these policies: lru, fifo, clock, sieve, s3fifo, arc, min, min-bypass, random,
    /// or a variant such as after, which runs in the machine (comma-separated)
    #[arg(
        long = "policy",
        value_name = "P",
        value_delimiter = ',',
        required = true,
        value_parser = policy
    )]
    policies: Vec<Which>,
    /// Replay at these sizes: pages (4096), bytes (64MiB) or a share of the distinct pages (1%)
    /// (comma-separated)
    #[arg(long = "size", value_name = "S", value_delimiter = ',', required = true)]
    sizes: Vec<Capacity>,
    /// Count every page of a request by itself, as a page cache does
    #[arg(long)]
    pages: bool,
    /// Set the seed of random replacement
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(clap::Args)]
struct TraceArgs {
    /// Read this trace file, plain or compressed; - is standard input
    file: PathBuf,
    /// Read the trace in this format [default: guessed from its name or content]
    #[arg(long)]
    trace_format: Option<TraceFormat>,
    /// Print the result in this form
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
pub(super) enum Form {
    Table,
    Json,
}

pub(super) fn run(command: &Command) -> Answer {
    match command {
        Command::Info(args) => {
            let info = tools::info(args.trace.path(), args.trace.trace_format)?;
            Ok((args.trace.render(&info, info_table), 0))
        }
        Command::Replay(args) => {
            let report = args.replay()?;
            Ok((args.trace.render(&report, replay_table), 0))
        }
        Command::Mrc(args) => {
            args.picture.iter().try_for_each(|file| args.spares(file))?;
            let curve = args.curve()?;
            if let Some(file) = &args.picture {
                store::replace(file, &render::mrc_page(&curve))?;
            }
            Ok((args.trace.render(&curve, render::mrc_table), 0))
        }
        Command::Convert(args) => Ok((args.run()?, 0)),
        Command::Import(args) => Ok((args.run()?, 0)),
        Command::Anonymize(args) => Ok((args.run()?, 0)),
        Command::Record(args) => args.run(),
    }
}

impl TraceArgs {
    fn path(&self) -> &Path {
        write::input(&self.file)
    }

    fn render<T: serde::Serialize>(&self, value: &T, table: fn(&T) -> String) -> String {
        match self.format {
            Form::Json => render::json(value),
            Form::Table => table(value),
        }
    }
}

impl MrcArgs {
    /// Refuses to put the picture over the trace.
    fn spares(&self, picture: &Path) -> Result<(), Error> {
        let real = |path: &Path| path.canonicalize().ok();
        match real(picture).is_some_and(|file| real(&self.trace.file) == Some(file)) {
            true => {
                Err(Error::Request(format!("--picture {}: this is the trace", picture.display())))
            }
            false => Ok(()),
        }
    }

    fn curve(&self) -> Result<Curve, Error> {
        let asked = Replayed { policies: &self.policies, sizes: &self.sizes, seed: self.seed };
        let request = asked.request(&self.trace, self.pages)?;
        let mut curve = tools::curve(&request, self.sample)?;
        if !self.policies.is_empty() {
            let few = ["1%", "5%", "20%"].map(|size| size.parse().expect("a size"));
            let sizes = if self.sizes.is_empty() { &few[..] } else { &self.sizes };
            let asked = Replayed { sizes, ..asked };
            curve.others = asked.replay(&asked.request(&self.trace, self.pages)?)?.results;
        }
        Ok(curve)
    }
}

/// Reads a share such as 1% or 0.01 as "one page in so many".
fn sample(text: &str) -> Result<u64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    let most = 1.0 / SLICES as f64;
    match share {
        Ok(share) if (1e-9..=most).contains(&share) => Ok((1.0 / share).round() as u64),
        _ => Err("expected a share of the pages up to 12.5%, such as 1% or 0.001".to_string()),
    }
}

impl ReplayArgs {
    fn replay(&self) -> Result<ReplayReport, Error> {
        let asked = Replayed { policies: &self.policies, sizes: &self.sizes, seed: self.seed };
        asked.replay(&asked.request(&self.trace, self.pages)?)
    }
}

/// Policies to replay a trace under, and sizes.
struct Replayed<'a> {
    policies: &'a [Which],
    sizes: &'a [Capacity],
    seed: u64,
}

impl Replayed<'_> {
    /// Replays by policy, then by size, in the order asked for.
    fn replay(&self, request: &ReplayRequest) -> Result<ReplayReport, Error> {
        let mut report = match request.policies.is_empty() {
            false => tools::replay(request)?,
            true => counted(request)?,
        };
        let mut flat = std::mem::take(&mut report.results).into_iter();
        for which in self.policies {
            for size in self.sizes {
                let found = match which {
                    Which::Flat(_) => flat.next().expect("one result per policy and size"),
                    Which::Machine(variant) => {
                        let pages = size.pages(report.unique as u32);
                        let found = trace_machine::replay(request, variant, pages);
                        found.map_err(Error::Request)?
                    }
                };
                report.results.push(found);
            }
        }
        Ok(report)
    }

    fn request(&self, trace: &TraceArgs, pages: bool) -> Result<ReplayRequest, Error> {
        let flat = |which: &Which| match which {
            Which::Flat(policy) => Some(*policy),
            Which::Machine(_) => None,
        };
        Ok(ReplayRequest {
            file: TraceFile::open(trace.path())?,
            format: trace.trace_format,
            view: if pages { View::Pages } else { View::Requests },
            policies: self.policies.iter().filter_map(flat).collect(),
            sizes: self.sizes.to_vec(),
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
    fn a_sample_is_a_share_of_the_pages() {
        assert_eq!((sample("1%"), sample("0.001"), sample("12.5%")), (Ok(100), Ok(1000), Ok(8)));
        for wrong in ["0", "13%", "x", "-1%", "NaN", "100"] {
            assert!(sample(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_policies_list_near_names() {
        assert_eq!(policy("min"), Ok(Which::Flat(Policy::Min)));
        assert_eq!(policy("after"), Ok(Which::Machine(Variant::named("after"))));
        assert_eq!(policy("sieev"), Err("unknown policy (did you mean sieve?)".to_string()));
    }
}
