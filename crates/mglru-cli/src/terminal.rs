//! Takes the terminal for a picture that changes, and gives it back as it was.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::{DefaultTerminal, Frame};

use mglru_error::Error;

/// Longest time between two looks at whether a signal came.
const BLINK: Duration = Duration::from_millis(200);

/// Holds the terminal, and gives it back when dropped.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    ended: Arc<AtomicBool>,
}

/// Says what the user did, or that the time is over.
pub(super) enum Input {
    /// The user pressed a key.
    Key(KeyCode),
    /// Control-C or a signal ends the program.
    End,
    /// The terminal has another size.
    Resized,
    /// The time is over.
    Nothing,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> Result<Self, Error> {
        let ended = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, ended.clone()).map_err(failed)?;
        }
        let terminal = ratatui::try_init().map_err(failed)?;
        Ok(Self { terminal, ended })
    }

    /// Draws a picture in place of the last one.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> Result<(), Error> {
        self.terminal.draw(picture).map_err(failed)?;
        Ok(())
    }

    /// Waits for input until a moment; looks for it once if that is past.
    pub(super) fn input(&self, until: Instant) -> Result<Input, Error> {
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return Ok(Input::End);
            }
            let left = until.saturating_duration_since(Instant::now());
            if poll(left.min(BLINK)).map_err(failed)?
                && let Some(input) = of(read().map_err(failed)?)
            {
                return Ok(input);
            }
            if left.is_zero() {
                return Ok(Input::Nothing);
            }
        }
    }
}

fn of(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(pressed(key)),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    }
}

fn pressed(key: KeyEvent) -> Input {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => Input::End,
        code => Input::Key(code),
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Tells whether there is a terminal to draw on and to read keys from.
pub(super) fn is_there() -> bool {
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
}

fn failed(error: std::io::Error) -> Error {
    Error::io("terminal".as_ref(), error)
}
