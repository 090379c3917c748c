//! The threads of this process, as the kernel sees them.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use super::raw;

/// One thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub id: u32,
    /// It runs, is about to, or waits for memory or a device.
    pub at_work: bool,
    /// Processor time it used, in ticks of the kernel's.
    pub ticks: u64,
    /// It is a pager's.
    pub own: bool,
}

/// All threads but those that end meanwhile.
///
/// # Errors
/// There is no /proc.
pub fn tasks() -> io::Result<Vec<Task>> {
    let folder = File::open("/proc/self/task")?;
    let mut tasks = Vec::new();
    let mut text = [0; 1024];
    raw::entries(folder.as_fd(), |name| {
        let id: Option<u32> = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
        tasks.extend(id.and_then(|id| task(id, &mut text)));
    })?;
    Ok(tasks)
}

fn task(id: u32, text: &mut [u8]) -> Option<Task> {
    let file = File::open(format!("/proc/self/task/{id}/stat")).ok()?;
    let n = raw::read(file.as_fd(), text).ok()?;
    parse(id, std::str::from_utf8(&text[..n]).ok()?)
}

/// What the pager's own threads do, for a message: name, state and where in the kernel each is.
pub fn own_doing() -> String {
    let own = tasks().unwrap_or_default().into_iter().filter(|task| task.own);
    let doing = own.map(|task| {
        let read = |file: &str| {
            let path = format!("/proc/self/task/{}/{file}", task.id);
            let mut text = [0; 64];
            let read = File::open(path).and_then(|file| raw::read(file.as_fd(), &mut text));
            let text = String::from_utf8_lossy(&text[..read.unwrap_or(0)]).into_owned();
            text.trim().to_string()
        };
        let state = if task.at_work { "at work" } else { "asleep" };
        format!("{} {state} in {}", read("comm"), read("wchan"))
    });
    doing.collect::<Vec<_>>().join(", ")
}

/// `ID (NAME) STATE …`; the name may hold anything.
fn parse(id: u32, stat: &str) -> Option<Task> {
    let (head, fields) = stat.rsplit_once(") ")?;
    let own = head.split_once('(')?.1.starts_with("mglru-");
    let fields: Vec<&str> = fields.split(' ').collect();
    let time = |nth: usize| fields.get(nth)?.parse::<u64>().ok();
    let ticks = time(11)? + time(12)?;
    Some(Task { id, at_work: matches!(*fields.first()?, "R" | "D"), ticks, own })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_state_time_and_whose_it_is() {
        let line = "7 (a) b) S 1 1 1 0 -1 4194304 9 8 7 6 30 12 0 0 20 0 1 0 5 1 2";
        assert_eq!(parse(7, line), Some(Task { id: 7, at_work: false, ticks: 42, own: false }));
        let line = line.replace("a) b) S", "mglru-fault) D");
        assert_eq!(parse(7, &line), Some(Task { id: 7, at_work: true, ticks: 42, own: true }));
        assert_eq!(parse(7, "7 (cut) S 1"), None);
    }

    #[test]
    fn threads_of_this_process_are_found() {
        let me = std::thread::spawn(|| {
            let tasks = tasks().unwrap();
            tasks.iter().filter(|task| task.at_work && !task.own).count()
        });
        assert!(me.join().unwrap() >= 1, "at least the one that asks");
    }
}
