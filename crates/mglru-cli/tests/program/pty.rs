//! A program at a terminal that is none: keys in, the screen out.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Rows and columns.
const SIZE: (u16, u16) = (32, 120);
/// A test waits so long for what a screen is to show; nothing is timed by it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program at its terminal.
pub struct Terminal {
    child: Child,
    keys: File,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    /// Starts a program; its standard streams are the terminal.
    pub fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: SIZE.0, ws_col: SIZE.1, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let open = || File::options().read(true).write(true).open(&name).unwrap();
        command.stdin(open()).stdout(open()).stderr(open()).env("TERM", "xterm-256color");
        let child = command.spawn().unwrap();
        // What is left of the streams is the child's: its end is the end of the output.
        drop(command);
        let [rows, columns] = [SIZE.0, SIZE.1].map(|n| NonZero::new(n).expect("fixed"));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (copy, shown) = (master.try_clone().unwrap(), screen.clone());
        std::thread::spawn(move || show(copy, &shown));
        Self { child, keys: File::from(master), screen }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the screen's text.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Waits until the screen shows something.
    pub fn wait_for(&self, what: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if text.contains(what) {
                return text;
            }
            assert!(Instant::now() < until, "no {what:?} on the screen:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the program's end.
    pub fn end(mut self) -> (ExitStatus, String) {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                std::thread::sleep(Duration::from_millis(100));
                return (status, self.text());
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Carries what the program writes to the screen, until nobody has the terminal open any more.
fn show(master: OwnedFd, screen: &Mutex<vt100::Parser>) {
    let (mut master, mut bytes) = (File::from(master), [0; 4096]);
    while let Ok(n @ 1..) = master.read(&mut bytes) {
        screen.lock().unwrap().process(&bytes[..n]);
    }
}
