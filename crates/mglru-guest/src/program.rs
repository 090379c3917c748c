//! A program of the host's in place of a workload: it runs in its group under a shell, its output
//! is kept, and it is ended when its time is over.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use mglru_guest::order::Program;
use mglru_guest::report::{Done, Ended};
use mglru_guest::{Order, Report};

use crate::counts;
use crate::link::Link;
use crate::marker;
use crate::setup::group_dir;
use crate::snapshot::Observer;

/// Output beyond this is cut off at the front.
const OUTPUT: usize = 64 << 10;
/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(5);

pub fn run(order: &Order, work: &Program, link: &mut Link) -> Result<(), String> {
    let observer = Observer::new(order);
    link.say(&Report::Ready(Box::new(observer.snapshot(Done::default()))));
    marker::start();
    let mut child = start(work)?;
    let mut out = child.stdout.take().expect("it is piped");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = out.read_to_end(&mut bytes);
        bytes
    });
    let (timed_out, done) = wait(&mut child, order, work, &observer, link)?;
    let status = child.wait().map_err(|e| format!("the program: {e}"))?;
    marker::stop();
    let at = Box::new(observer.snapshot(done));
    // A process that the program left behind would hold its output open.
    let _ = std::fs::write(format!("{}/cgroup.kill", group_dir(&work.group)), "1");
    let output = reader.join().unwrap_or_default();
    let from = output.len().saturating_sub(OUTPUT);
    let ended = Ended {
        status: status.code(),
        signal: status.signal(),
        pid: Some(child.id()),
        timed_out,
        measured: None,
        output: String::from_utf8_lossy(&output[from..]).into_owned(),
    };
    link.say(&Report::Over { at, workers: vec![ended] });
    Ok(())
}

fn start(work: &Program) -> Result<Child, String> {
    let mut command = Command::new("/init");
    command.args(["enter", &work.group, "/bin/busybox", "sh", "-c"]);
    command.arg(format!("exec 2>&1\n{}", work.script));
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    child.map_err(|e| format!("starting the program: {e}"))
}

/// Waits for the end, samples meanwhile; true when the time was over first.
fn wait(
    child: &mut Child,
    order: &Order,
    work: &Program,
    observer: &Observer,
    link: &mut Link,
) -> Result<(bool, Done), String> {
    let start = Instant::now();
    let mut sampled = start;
    let mut done = Done::default();
    while child.try_wait().map_err(|e| format!("the program: {e}"))?.is_none() {
        if start.elapsed() >= Duration::from_millis(work.at_most_ms) {
            let _ = child.kill();
            return Ok((true, done));
        }
        if sampled.elapsed() >= Duration::from_millis(order.sample_ms) {
            let (at_us, groups) = (observer.at_us(), observer.samples());
            link.say(&Report::Sample { at_us, groups });
            sampled = Instant::now();
            done = counts::of_process(child.id());
        }
        thread::sleep(LOOK);
    }
    Ok((false, done))
}
