//! The threads of this process, as the kernel sees them.
//!
//! They are looked at while the program runs, whenever there is pressure, so this opens no file: a
//! descriptor that came and went would take the lowest number, which the program may be about to
//! use.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, PoisonError};

use super::{checked, held, raw};

/// Describes one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Holds the thread's number.
    pub id: u32,
    /// Counts the processor time that it used, ns.
    pub used_ns: u64,
    /// Says that it belongs to a pager.
    pub own: bool,
}

/// Numbers of the pager's threads.
static OWN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Registers a thread of the pager, until this is dropped.
pub struct Own(u32);

impl Own {
    /// Marks the calling thread.
    pub fn mark() -> Self {
        // SAFETY: returns a number.
        let id = unsafe { libc::gettid() } as u32;
        own().push(id);
        Self(id)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        own().retain(|&id| id != self.0);
    }
}

fn own() -> std::sync::MutexGuard<'static, Vec<u32>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds the folder that the kernel lists threads in.
#[derive(Debug)]
pub struct Folder(File);

impl Folder {
    /// Opens it.
    ///
    /// # Errors
    /// There is no /proc.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/self/task").and_then(held::keep).map(Self)
    }

    /// Lists all threads but those that end meanwhile.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn tasks(&self) -> io::Result<Vec<Task>> {
        held::check(self.0.as_fd());
        // SAFETY: takes numbers.
        unsafe { libc::lseek(self.0.as_raw_fd(), 0, libc::SEEK_SET) };
        let mut tasks = Vec::new();
        raw::entries(self.0.as_fd(), |name| {
            let id = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok());
            tasks.extend(id.and_then(task));
        })?;
        let own = own();
        tasks.iter_mut().for_each(|task| task.own = own.contains(&task.id));
        Ok(tasks)
    }
}

fn task(id: u32) -> Option<Task> {
    /// How the kernel numbers the clock of a thread's processor time.
    const PER_THREAD: i32 = 4 | 2;
    let clock = !(id as i32) << 3 | PER_THREAD;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure it is given.
    checked(unsafe { libc::clock_gettime(clock, &mut time) }).ok()?;
    Some(Task { id, used_ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, own: false })
}

/// Watches the threads of a process whose first one is about to end.
pub struct Watch {
    folder: Folder,
    first: File,
}

impl Watch {
    /// Opens what it looks at.
    ///
    /// # Errors
    /// There is no /proc.
    pub fn open() -> io::Result<Self> {
        let path = format!("/proc/self/task/{}/stat", std::process::id());
        Ok(Self { folder: Folder::open()?, first: File::open(path).and_then(held::keep)? })
    }

    /// Tells whether the first thread has ended, and all others are a pager's.
    pub fn only_own_left(&self) -> bool {
        let ids = || {
            let tasks = self.folder.tasks().unwrap_or_default();
            let others = tasks.iter().filter(|task| task.id != std::process::id());
            let all_own = others.clone().count() > 0 && others.clone().all(|task| task.own);
            all_own.then(|| others.map(|task| task.id).collect::<Vec<_>>())
        };
        // A thread that ended while it was looked for may have started another one.
        let once = ids();
        once.is_some() && self.first_has_ended() && ids() == once
    }

    fn first_has_ended(&self) -> bool {
        let mut text = [0; 512];
        let n = raw::read_at(self.first.as_fd(), &mut text, 0).unwrap_or(0);
        has_ended(&String::from_utf8_lossy(&text[..n]))
    }
}

/// Reads `ID (NAME) STATE …`; the name may hold anything.
fn has_ended(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Describes what the pager's own threads do, for a message: name, state and where in the kernel
/// each is.
pub fn own_doing() -> String {
    let read = |id: u32, file: &str| {
        let text = std::fs::read_to_string(format!("/proc/self/task/{id}/{file}"));
        text.unwrap_or_default().trim().to_string()
    };
    let doing = |&id: &u32| {
        let stat = read(id, "stat");
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        let state = if matches!(state, Some('R' | 'D')) { "at work" } else { "asleep" };
        format!("{} {state} in {}", read(id, "comm"), read(id, "wchan"))
    };
    own().clone().iter().map(doing).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_this_process_are_found_with_the_time_they_used() {
        let of = |tasks: Vec<Task>, id: u32| tasks.into_iter().find(|task| task.id == id);
        let me = std::thread::spawn(move || {
            let folder = Folder::open().unwrap();
            let mark = Own::mark();
            let before = of(folder.tasks().unwrap(), mark.0).unwrap();
            while of(folder.tasks().unwrap(), mark.0).unwrap().used_ns < before.used_ns + 1000 {}
            assert!(before.own);
            let id = mark.0;
            drop(mark);
            assert!(!of(folder.tasks().unwrap(), id).unwrap().own);
        });
        me.join().unwrap();
    }

    #[test]
    fn a_thread_that_has_ended_is_distinguished_from_one_that_sleeps() {
        assert!(has_ended("7 (a) b) Z 1 1"));
        assert!(!has_ended("7 (a) Z) S 1 1") && !has_ended("7 (cut"));
    }
}
