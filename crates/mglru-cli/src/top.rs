//! `mglru top`: running pagers and their groups, live.

mod live;

use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};

use super::Answer;
use super::terminal;
use super::trace::Form;
use mglru_error::Error;
use mglru_lab::render;
use mglru_live::steer::sample::Sample;
use mglru_live::steer::top::{HEAD, Row};
use mglru_live::steer::{Choice, Running, refused, running};

/// Arguments of `mglru top`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Show this group and those below it
    #[arg(default_value = "/")]
    group: String,
    #[command(flatten)]
    choice: Choice,
    /// Print one table, over one interval
    #[arg(long)]
    once: bool,
    /// Print one table after another, for files and pipes
    #[arg(long, conflicts_with = "once")]
    batch: bool,
    /// Wait this many seconds between looks
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds)]
    interval: f64,
    /// Print the result in this form
    #[arg(long, value_enum, default_value = "table")]
    format: Form,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|s| (0.1..=3600.0).contains(s));
    seconds.ok_or_else(|| "must be 0.1 to 3600".to_string())
}

pub(super) fn run(args: &Args) -> Answer {
    let mut watch = Watch { args, before: HashMap::new(), at: Instant::now() };
    if args.batch {
        watch.look()?;
        loop {
            std::thread::sleep(Duration::from_secs_f64(args.interval));
            let text = watch.text()?;
            let mut out = std::io::stdout().lock();
            let wrote = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            wrote.map_err(|error| Error::io("stdout".as_ref(), error))?;
        }
    }
    let live = !args.once && args.format == Form::Table && terminal::is_there();
    if live {
        return live::show(&mut watch);
    }
    watch.look()?;
    std::thread::sleep(Duration::from_secs_f64(args.interval));
    Ok((watch.text()?, 0))
}

/// Samples of one look, to set the next beside.
struct Watch<'a> {
    args: &'a Args,
    before: HashMap<(Running, String), Sample>,
    at: Instant,
}

impl Watch<'_> {
    /// Looks at all groups; what happened since the last look.
    fn look(&mut self) -> Result<Vec<Row>, Error> {
        let mut now = HashMap::new();
        let mut rows = Vec::new();
        let began = Instant::now();
        let seconds = (began - self.at).as_secs_f64();
        for pager in self.pagers()? {
            for sample in self.samples(&pager)? {
                let key = (pager.clone(), sample.group.clone());
                let before = self.before.get(&key).unwrap_or(&sample);
                rows.push(Row::new(pager.pid, &pager.name, before, &sample, seconds));
                now.insert(key, sample);
            }
        }
        (self.before, self.at) = (now, began);
        Ok(rows)
    }

    fn pagers(&self) -> Result<Vec<Running>, Error> {
        let one = || self.args.choice.one().map(|one| vec![one]);
        if self.args.choice.is_named() { one() } else { Ok(running()).and_then(some_or(one)) }
    }

    /// A pager that ends meanwhile has no groups any more, unless it was asked for by name.
    fn samples(&self, pager: &Running) -> Result<Vec<Sample>, Error> {
        let read = |group: &str| {
            let mut client = pager.call()?;
            Sample::read_all(&mut client, group).map_err(|error| refused(&pager.socket, &error))
        };
        match read(&self.args.group) {
            Err(_) if !self.args.choice.is_named() && running().len() != 1 => Ok(Vec::new()),
            samples => samples,
        }
    }

    fn text(&mut self) -> Result<String, Error> {
        let rows = self.look()?;
        Ok(match self.args.format {
            Form::Json => render::json(&rows),
            Form::Table => table(&rows),
        })
    }
}

/// All that run; if none does, the reason.
fn some_or(
    none: impl FnOnce() -> Result<Vec<Running>, Error>,
) -> impl FnOnce(Vec<Running>) -> Result<Vec<Running>, Error> {
    |running| if running.is_empty() { none() } else { Ok(running) }
}

fn table(rows: &[Row]) -> String {
    render::plain(&HEAD, rows.iter().map(Row::cells))
}
