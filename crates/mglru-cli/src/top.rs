//! `mglru top`: running pagers and their groups, live.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyModifiers, poll, read};
use crossterm::terminal::{self, ClearType};
use crossterm::{cursor, execute};

use super::Answer;
use super::ask::Format;
use mglru_error::Error;
use mglru_lab::render;
use mglru_live::steer::sample::Sample;
use mglru_live::steer::top::{HEAD, Row};
use mglru_live::steer::{Choice, Running, running, told};

/// Arguments of `mglru top`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// This group and those below it
    #[arg(default_value = "/")]
    group: String,
    #[command(flatten)]
    choice: Choice,
    /// One table, over one interval
    #[arg(long)]
    once: bool,
    /// One table after another, for files and pipes
    #[arg(long, conflicts_with = "once")]
    batch: bool,
    /// Seconds between looks
    #[arg(long, value_name = "S", default_value = "2", value_parser = seconds)]
    interval: f64,
    /// Output form
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
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
    let live = !args.once && args.format == Format::Table && std::io::stdout().is_terminal();
    watch.look()?;
    if live {
        return Screen::open().and_then(|screen| screen.show(&mut watch));
    }
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
        let seconds = self.at.elapsed().as_secs_f64();
        for pager in self.pagers()? {
            for sample in self.samples(&pager)? {
                let key = (pager.clone(), sample.group.clone());
                let before = self.before.get(&key).unwrap_or(&sample);
                rows.push(Row::new(pager.pid, &pager.name, before, &sample, seconds));
                now.insert(key, sample);
            }
        }
        (self.before, self.at) = (now, Instant::now());
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
            Sample::read_all(&mut client, group).map_err(|error| told(&pager.socket, &error))
        };
        match read(&self.args.group) {
            Err(_) if !self.args.choice.is_named() && running().len() != 1 => Ok(Vec::new()),
            samples => samples,
        }
    }

    fn text(&mut self) -> Result<String, Error> {
        let rows = self.look()?;
        Ok(match self.args.format {
            Format::Json => render::json(&rows),
            _ => table(&rows),
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

/// The terminal, given back as it was.
struct Screen {
    ended: Arc<AtomicBool>,
}

impl Screen {
    fn open() -> Result<Self, Error> {
        let failed = |error| Error::io("terminal".as_ref(), error);
        let ended = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGTERM, ended.clone()).map_err(failed)?;
        terminal::enable_raw_mode().map_err(failed)?;
        let screen = Self { ended };
        execute!(std::io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)
            .map_err(failed)?;
        Ok(screen)
    }

    fn show(self, watch: &mut Watch<'_>) -> Answer {
        let failed = |error| Error::io("terminal".as_ref(), error);
        let interval = Duration::from_secs_f64(watch.args.interval);
        loop {
            let text = watch.text()?;
            self.draw(&text).map_err(failed)?;
            let next = Instant::now() + interval;
            while let Some(left) = next.checked_duration_since(Instant::now()) {
                if self.ended.load(Ordering::Relaxed) || quits(left).map_err(failed)? {
                    return Ok((String::new(), 0));
                }
            }
        }
    }

    fn draw(&self, text: &str) -> std::io::Result<()> {
        // A terminal that does not know its size says 0.
        let lines = Some(terminal::size()?.1).filter(|&lines| lines > 0).unwrap_or(24);
        let mut out = std::io::stdout().lock();
        execute!(out, terminal::Clear(ClearType::All), cursor::MoveTo(0, 0))?;
        let shown = text.lines().take(usize::from(lines).saturating_sub(1));
        shown.chain(["q quits"]).try_for_each(|line| write!(out, "{line}\r\n"))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = execute!(std::io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
        let _ = terminal::disable_raw_mode();
    }
}

/// Waits for a key; is it one that ends?
fn quits(at_most: Duration) -> std::io::Result<bool> {
    if !poll(at_most.min(Duration::from_millis(500)))? {
        return Ok(false);
    }
    let Event::Key(key) = read()? else { return Ok(false) };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Ok(matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        || control && key.code == KeyCode::Char('c'))
}
