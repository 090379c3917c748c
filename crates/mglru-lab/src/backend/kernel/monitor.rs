//! The line by which a virtual machine is stopped and given to a debugger: QEMU's machine protocol
//! (QMP) over a pair of sockets without a name.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value as Json, json};

/// Longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Holds this program's end of the connection.
pub struct Monitor {
    lines: BufReader<UnixStream>,
    /// Says that the machine was let go on since it was stopped.
    pub is_resumed: bool,
}

/// Holds QEMU's end, which its process takes over.
pub struct Far(UnixStream);

impl Far {
    /// Returns the arguments that make QEMU listen at this end.
    pub fn args(&self) -> [String; 4] {
        let socket = format!("socket,id=monitor,fd={}", self.0.as_raw_fd());
        ["-chardev".into(), socket, "-mon".into(), "chardev=monitor,mode=control".into()]
    }
}

impl Monitor {
    /// Makes both ends.
    ///
    /// # Errors
    /// When the system gives no sockets.
    pub fn pair() -> Result<(Self, Far), String> {
        let failed = |e: std::io::Error| format!("QEMU's monitor: {e}");
        let (near, far) = UnixStream::pair().map_err(failed)?;
        near.set_read_timeout(Some(ANSWER)).map_err(failed)?;
        fcntl_setfd(far.as_fd(), FdFlags::empty()).map_err(|e| failed(e.into()))?;
        Ok((Self { lines: BufReader::new(near), is_resumed: false }, Far(far)))
    }

    /// Stops the machine between two instructions.
    ///
    /// # Errors
    /// When QEMU is gone or refuses.
    pub fn stop(&mut self) -> Result<(), String> {
        self.ask("qmp_capabilities", json!({}))?;
        self.ask("stop", json!({}))?;
        self.is_resumed = false;
        Ok(())
    }

    /// Has QEMU wait for a debugger at a port of this host; 0: any. Returns where.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn open_stub(&mut self, port: u16) -> Result<SocketAddr, String> {
        let line = format!("gdbserver tcp:127.0.0.1:{port}");
        self.ask("human-monitor-command", json!({"command-line": line}))?;
        let device = self.stub()?;
        let address = device.as_deref().and_then(address);
        address.ok_or_else(|| format!("--gdb={port}: QEMU cannot listen at the port"))
    }

    /// Tells whether a debugger is there.
    ///
    /// # Errors
    /// When QEMU is gone.
    pub fn has_debugger(&mut self) -> Result<bool, String> {
        Ok(self.stub()?.is_some_and(|device| !device.starts_with("disconnected:")))
    }

    /// Reads QEMU's answer about the debugger's line.
    fn stub(&mut self) -> Result<Option<String>, String> {
        let all = self.ask("query-chardev", json!({}))?;
        let mut all = all.as_array().into_iter().flatten();
        let stub = all.find(|device| device["label"] == "gdb");
        Ok(stub.and_then(|device| Some(device["filename"].as_str()?.to_string())))
    }

    fn ask(&mut self, command: &str, arguments: Json) -> Result<Json, String> {
        let failed = |e: std::io::Error| format!("QEMU's monitor: {command}: {e}");
        let mut asked = json!({"execute": command});
        if arguments.as_object().is_some_and(|given| !given.is_empty()) {
            asked["arguments"] = arguments;
        }
        self.lines.get_mut().write_all(format!("{asked}\n").as_bytes()).map_err(failed)?;
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).map_err(failed)? == 0 {
                return Err(format!("QEMU's monitor: {command}: QEMU is gone"));
            }
            let Ok(mut heard) = serde_json::from_str::<Json>(&line) else { continue };
            self.is_resumed |= heard["event"] == "RESUME";
            if let Some(answer) = heard.get_mut("return") {
                return Ok(answer.take());
            }
            if let Some(why) = heard["error"]["desc"].as_str() {
                return Err(format!("QEMU's monitor: {command}: {why}"));
            }
        }
    }
}

/// The address in `disconnected:tcp:127.0.0.1:4321,server=on`.
fn address(device: &str) -> Option<SocketAddr> {
    device.split_once("tcp:")?.1.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_where_qemu_waits() {
        let text = "disconnected:tcp:127.0.0.1:4321,server=on";
        assert_eq!(address(text).unwrap().to_string(), "127.0.0.1:4321");
        assert_eq!(address("vc"), None);
    }

    #[test]
    fn events_between_question_and_answer_are_heard() {
        let (mut near, Far(far)) = Monitor::pair().unwrap();
        let mut lines = BufReader::new(far);
        let qemu = std::thread::spawn(move || {
            for answer in
                ["{\"QMP\":{}}\n{\"return\":{}}\n", "{\"event\":\"STOP\"}\n{\"return\":{}}\n"]
            {
                lines.read_line(&mut String::new()).unwrap();
                lines.get_mut().write_all(answer.as_bytes()).unwrap();
            }
            lines.read_line(&mut String::new()).unwrap();
            let stub = "[{\"label\":\"gdb\",\"filename\":\"tcp:127.0.0.1:1,server=on\"}]";
            let text = format!("{{\"event\":\"RESUME\"}}\n{{\"return\":{stub}}}\n");
            lines.get_mut().write_all(text.as_bytes()).unwrap();
        });
        near.stop().unwrap();
        assert!(!near.is_resumed);
        assert!(near.has_debugger().unwrap() && near.is_resumed);
        qemu.join().unwrap();
        assert!(near.has_debugger().unwrap_err().contains("query-chardev"));
    }
}
