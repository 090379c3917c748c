//! Takes the terminal for a picture that changes, and gives it back as it was.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::{DefaultTerminal, Frame};

use mglru_error::Error;

/// Longest time between two looks at whether a signal came.
const BLINK: Duration = Duration::from_millis(200);

/// The terminal, in the hands of the program until this is dropped.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    ended: Arc<AtomicBool>,
}

/// What came from the keyboard, or did not.
pub(super) enum Input {
    /// A key.
    Key(KeyCode),
    /// Control-C, or a signal to end.
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

    /// Waits for a key, at most so long.
    pub(super) fn input(&self, at_most: Duration) -> Result<Input, Error> {
        if self.ended.load(Ordering::Relaxed) {
            return Ok(Input::End);
        }
        if !poll(at_most.min(BLINK)).map_err(failed)? {
            return Ok(Input::Nothing);
        }
        Ok(match read().map_err(failed)? {
            Event::Key(key) if key.kind != KeyEventKind::Release => pressed(key),
            Event::Resize(..) => Input::Resized,
            _ => Input::Nothing,
        })
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
