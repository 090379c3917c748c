//! `mglru run --watch`: a run of the model on the terminal, as fast as one likes, event by event,
//! or up to a condition.

mod draw;
mod history;
mod pace;
mod threads;

use std::time::{Duration, Instant};

use ratatui::crossterm::event::KeyCode;

use self::draw::View;
use self::history::History;
use self::pace::Pace;
use super::Format;
use super::run::{self, Output};
use super::terminal::{self, Input, Screen};
use mglru_error::Error;
use mglru_lab::runner;
use mglru_lab::spec::Experiment;
use mglru_lab::watch::{Break, Watcher};
use mglru_sim::live::Live;

/// Time between two pictures.
const FRAME: Duration = Duration::from_millis(50);
/// Events between two looks at the clock.
const CHUNK: u32 = 32;
/// Virtual time of the longer step, ns.
const STEP_NS: u64 = 1_000_000;

/// Refuses what cannot be watched.
pub(super) fn check(output: &Output, runs: &[Experiment]) -> Result<(), Error> {
    let refuse = |problem: &str| Err(Error::Request(format!("--watch: {problem}")));
    let [one] = runs else { return refuse("one backend at a time") };
    if output.format != Format::Table {
        return refuse("the result is a table; drop --format");
    }
    if let Some(run) = one.runs.iter().find(|run| !run.job.can_watch()) {
        let ways = "booted kernels stop at --until, pagers show in mglru top";
        let only = "only runs of the model can be watched (--backend sim)";
        return refuse(&format!("{}: {only}; {ways}", run.title()));
    }
    match terminal::is_there() {
        true => Ok(()),
        false => refuse("needs a terminal for the picture and the keys"),
    }
}

/// Runs an experiment and shows it on the terminal; records are kept as without. `false`: the user
/// left before the end.
pub(super) fn records(
    experiment: &Experiment,
    dir: &std::path::Path,
    breaks: &[Break],
) -> Result<bool, Error> {
    let mut store = run::open(experiment, dir, false)?;
    let mut session = Session::new(Screen::open()?, breaks.to_vec());
    runner::watch_all(experiment, &mut store, &mut session)
}

/// Says why a run stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Halt {
    /// The user has paused it.
    Paused,
    /// A condition began to hold.
    Break(String),
    /// The run is over.
    Over,
}

/// Holds what the user has asked for, and what the screen shows.
struct Session {
    screen: Screen,
    breaks: Vec<Break>,
    /// Whether each condition held at the last event: it stops a run where it begins to.
    held: Vec<bool>,
    pace: Pace,
    halt: Option<Halt>,
    /// The run goes to its end as fast as it can, past all conditions.
    skips: bool,
    /// Names the group that is shown.
    group: usize,
    run: String,
    history: History,
    /// The condition that is being typed, and what was wrong with it.
    prompt: Option<String>,
    complaint: String,
}

/// Says what a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The run goes on.
    Stay,
    /// The next run begins.
    Finish,
    /// The user leaves.
    Leave,
}

impl Session {
    fn new(screen: Screen, breaks: Vec<Break>) -> Self {
        Self {
            screen,
            held: vec![false; breaks.len()],
            breaks,
            pace: Pace::default(),
            halt: None,
            skips: false,
            group: 0,
            run: String::new(),
            history: History::default(),
            prompt: None,
            complaint: String::new(),
        }
    }

    /// Lets the run go on for one picture.
    fn advance(&mut self, live: &mut Live) -> Result<(), String> {
        let pace = if self.skips { Pace::Full } else { self.pace };
        let (began, until) = (Instant::now(), pace.until(live.now()));
        while self.halt.is_none() && live.now() < until && began.elapsed() < FRAME {
            for _ in 0..CHUNK {
                if !self.turn(live)? || live.now() >= until {
                    break;
                }
            }
        }
        self.look_for_breaks(live, Break::is_dear)
    }

    /// Carries out one event; `false`: the run stands still now.
    fn turn(&mut self, live: &mut Live) -> Result<bool, String> {
        if !live.turn().map_err(|e| e.to_string())? {
            self.halt = Some(Halt::Over);
        } else {
            self.look_for_breaks(live, |condition| !condition.is_dear())?;
        }
        Ok(self.halt.is_none())
    }

    /// Stops the run if one of those conditions has begun to hold.
    fn look_for_breaks(&mut self, live: &Live, of: fn(&Break) -> bool) -> Result<(), String> {
        if self.skips || self.halt.is_some() {
            return Ok(());
        }
        for at in 0..self.breaks.len() {
            if !of(&self.breaks[at]) {
                continue;
            }
            let reached = self.breaks[at].reached(live)?;
            let was = std::mem::replace(&mut self.held[at], reached.is_some());
            if let Some(why) = reached.filter(|_| !was) {
                self.halt = Some(Halt::Break(why));
            }
        }
        Ok(())
    }

    /// Goes on for a while, although the run stands still.
    fn step(&mut self, live: &mut Live, ns: u64) -> Result<(), String> {
        if self.halt == Some(Halt::Over) {
            return Ok(());
        }
        self.halt = None;
        let until = live.now() + ns;
        while self.turn(live)? && live.now() < until {}
        self.look_for_breaks(live, Break::is_dear)?;
        self.halt.get_or_insert(Halt::Paused);
        Ok(())
    }

    fn show(&mut self, live: &Live, total: Option<u64>) -> Result<(), String> {
        let look = live.look();
        self.history.push(&look);
        self.group = self.group.min(look.sample.groups.len() - 1);
        let view = View {
            run: &self.run,
            state: self.state(),
            share: total.map(|total| live.accesses() as f64 / total.max(1) as f64),
            limits: (0..look.sample.groups.len()).map(|group| live.limit(group)).collect(),
            look: &look,
            history: &self.history,
            groups: live.groups(),
            group: self.group,
            breaks: &self.breaks,
            prompt: self.prompt.as_deref(),
            complaint: &self.complaint,
        };
        self.screen.draw(|frame| draw::draw(frame, &view)).map_err(|e| e.to_string())
    }

    fn state(&self) -> String {
        match &self.halt {
            None if self.skips => "on to its end".to_string(),
            None => format!("running, {}", self.pace),
            Some(Halt::Paused) => "paused".to_string(),
            Some(Halt::Break(why)) => format!("stopped at {why}"),
            Some(Halt::Over) => "over; n: go on, q: leave".to_string(),
        }
    }

    fn press(&mut self, key: KeyCode, live: &mut Live) -> Result<Next, String> {
        if self.prompt.is_some() {
            self.type_condition(key);
            return Ok(Next::Stay);
        }
        let is_over = self.halt == Some(Halt::Over);
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Ok(Next::Leave),
            KeyCode::Char('n' | ' ') | KeyCode::Enter if is_over => return Ok(Next::Finish),
            KeyCode::Char('n') => (self.skips, self.halt) = (true, None),
            KeyCode::Char(' ') => {
                self.halt = if self.halt.is_some() { None } else { Some(Halt::Paused) };
            }
            KeyCode::Char('s') => self.step(live, 0)?,
            KeyCode::Char('m') => self.step(live, STEP_NS)?,
            KeyCode::Char('+' | '=') => self.pace.faster(),
            KeyCode::Char('-') => self.pace.slower(),
            KeyCode::Char('f') => self.pace = Pace::Full,
            KeyCode::Char('b') => self.prompt = Some(String::new()),
            KeyCode::Char('x') => self.clear_breaks(),
            KeyCode::Tab | KeyCode::Down => self.group += 1,
            KeyCode::BackTab | KeyCode::Up => self.group = self.group.saturating_sub(1),
            _ => {}
        }
        Ok(Next::Stay)
    }

    fn clear_breaks(&mut self) {
        self.breaks.clear();
        self.held.clear();
    }

    /// Takes a key into the condition that is being typed.
    fn type_condition(&mut self, key: KeyCode) {
        let Some(mut text) = self.prompt.take() else { return };
        match key {
            KeyCode::Esc => return self.complaint.clear(),
            KeyCode::Char(letter) => text.push(letter),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Enter if text.trim().is_empty() => return self.complaint.clear(),
            KeyCode::Enter => match text.parse() {
                Ok(condition) => {
                    self.breaks.push(condition);
                    self.held.push(false);
                    return self.complaint.clear();
                }
                Err(problem) => self.complaint = problem,
            },
            _ => {}
        }
        self.prompt = Some(text);
    }
}

/// Returns the first group with a limit, or the root.
fn first_limited(live: &Live) -> usize {
    (0..live.groups().len()).find(|&group| live.limit(group).is_some()).unwrap_or(0)
}

impl Watcher for Session {
    fn next(&mut self, run: &str, nth: usize, of: usize) {
        self.run = if of > 1 { format!("{run}, {nth} of {of}") } else { run.to_string() };
        self.halt = None;
        self.skips = false;
        self.history = History::default();
        self.held.fill(false);
    }

    fn drive(&mut self, live: &mut Live, total: Option<u64>) -> Result<bool, String> {
        for condition in &self.breaks {
            condition.reached(live)?;
        }
        self.group = first_limited(live);
        loop {
            let due = Instant::now() + FRAME;
            self.advance(live)?;
            self.show(live, total)?;
            if self.skips && self.halt == Some(Halt::Over) {
                return Ok(true);
            }
            let next = match self.screen.input(due).map_err(|e| e.to_string())? {
                Input::Key(key) => self.press(key, live)?,
                Input::End => Next::Leave,
                Input::Resized | Input::Nothing => Next::Stay,
            };
            match next {
                Next::Stay => {}
                Next::Finish => return Ok(true),
                Next::Leave => return Ok(false),
            }
        }
    }
}
