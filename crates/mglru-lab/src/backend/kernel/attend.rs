//! A booted run that stands still at its moment and waits for a debugger.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use mglru_guest::report::Step;

use super::qemu::Qemu;
use crate::backend::{Announce, Standing};

/// How often is looked whether the debugger is there.
const LOOK: Duration = Duration::from_millis(50);

/// Gives a machine whose moment has come to a debugger, until that leaves or the machine ends.
///
/// # Errors
/// When QEMU cannot listen, or its address cannot be printed.
pub fn attend(
    qemu: &mut Qemu,
    lines: &Receiver<String>,
    standing: (&str, u64, &Step),
    (port, announce): (u16, Announce),
) -> Result<(), String> {
    let (kernel, text, at) = standing;
    let Some(monitor) = &mut qemu.monitor else { return Ok(()) };
    monitor.stop()?;
    let address = monitor.open_stub(port)?;
    announce(&Standing { at, address, kernel, text })?;
    let (mut was_there, mut goes_on) = (false, false);
    while is_running(lines) {
        // QEMU that is gone was ended by the debugger.
        let Ok(is_there) = monitor.has_debugger() else { break };
        was_there |= is_there || monitor.is_resumed;
        if was_there && !is_there {
            break;
        }
        if monitor.is_resumed && !std::mem::replace(&mut goes_on, true) {
            // The guest waits for a line.
            let _ = qemu.child.stdin.as_mut().map(|port| port.write_all(b"\n"));
        }
    }
    Ok(())
}

/// Takes what the guest says for the time between two looks; false: the machine has ended.
fn is_running(lines: &Receiver<String>) -> bool {
    let start = std::time::Instant::now();
    loop {
        match lines.recv_timeout(LOOK.saturating_sub(start.elapsed())) {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        if start.elapsed() >= LOOK {
            return true;
        }
    }
}
