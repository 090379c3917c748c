//! The line to the host: a serial port of its own, so that the kernel's messages cannot mix in.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use mglru_guest::Report;
use rustix::fs::OFlags;

const PORT: &str = "/dev/ttyS1";

/// Holds the open port.
pub struct Link(File);

impl Link {
    pub fn open() -> Result<Self, String> {
        let port = OpenOptions::new().write(true).open(PORT);
        port.map(Self).map_err(|e| format!("{PORT}: {e}"))
    }

    /// Sends a line. A failure is ignored: the host is gone.
    pub fn say(&mut self, report: &Report) {
        let mut line = serde_json::to_vec(report).expect("reports have string keys only");
        line.push(b'\n');
        let _ = self.0.write_all(&line);
    }

    /// Waits until everything has left the machine.
    pub fn drain(&mut self) {
        let _ = rustix::termios::tcdrain(&self.0);
    }

    /// Waits for a line of the host's, at work: virtual time would jump ahead of a machine that
    /// sleeps. Most hosts say nothing and end the machine.
    pub fn await_host(&mut self) -> Result<(), String> {
        self.drain();
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let port = OpenOptions::new().read(true).custom_flags(flags).open(PORT);
        let mut port = port.map_err(|e| format!("{PORT}: {e}"))?;
        while !matches!(port.read(&mut [0]), Ok(1)) {
            std::hint::spin_loop();
        }
        Ok(())
    }
}
