//! Processes below this one, as the kernel lists them by thread. One whose parent ended first is
//! nobody's: it speaks for itself when it ends.

use super::figures::Figures;
use super::judge::{is_library, is_memory};
use super::proc::{self, Path};
use super::reason::Reason;
use super::smaps::{self, Area};

/// Processes below this one at most.
const MOST: usize = 1024;

/// Lists processes.
pub struct Pids {
    all: [u32; MOST],
    len: usize,
}

impl Pids {
    /// Makes an empty list.
    pub const fn new() -> Self {
        Self { all: [0; MOST], len: 0 }
    }

    fn push(&mut self, pid: u32) {
        if let Some(place) = self.all.get_mut(self.len) {
            *place = pid;
            self.len += 1;
        }
    }

    fn add_children_of(&mut self, pid: u32) {
        proc::numbers(&Path::new(format_args!("/proc/{pid}/task")), |task| {
            let path = Path::new(format_args!("/proc/{pid}/task/{task}/children"));
            proc::for_each_word(&path, |word| {
                proc::number(word).into_iter().for_each(|pid| self.push(pid as u32));
            });
            true
        });
    }

    /// Finds all processes below one; of those that `stop` says the ones below are left out.
    pub fn below(&mut self, pid: u32, stop: impl Fn(u32) -> bool) -> &[u32] {
        self.len = 0;
        self.add_children_of(pid);
        let mut at = 0;
        while at < self.len {
            if !stop(self.all[at]) {
                self.add_children_of(self.all[at]);
            }
            at += 1;
        }
        &self.all[..self.len]
    }
}

/// Tells whether this process has any child.
pub fn any() -> bool {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    let none = std::ptr::null_mut::<libc::siginfo_t>();
    // SAFETY: takes nothing away and writes nothing.
    let done = unsafe { libc::syscall(libc::SYS_waitid, libc::P_ALL, 0, none, flags, 0usize) };
    done == 0
}

/// Tells whether a process has a pager, which reports for it.
pub fn is_managed(pid: u32) -> bool {
    let mut found = false;
    proc::numbers(&Path::new(format_args!("/proc/{pid}/task")), |task| {
        let path = Path::new(format_args!("/proc/{pid}/task/{task}/comm"));
        found = proc::head(&path, &mut [0; 16]).starts_with(b"mglru-");
        !found
    });
    found
}

/// Says whether it has ended and only waits for its parent to reap it.
pub fn is_dead(pid: u32) -> bool {
    let mut buffer = [0; 256];
    let head = proc::head(&Path::new(format_args!("/proc/{pid}/stat")), &mut buffer);
    let state = head.iter().rposition(|&byte| byte == b')').and_then(|at| head.get(at + 2));
    state.is_none_or(|state| matches!(state, b'Z' | b'X'))
}

/// Is it about to become another program, and has this one's memory until then?
fn has_memory_of(pid: u32, own: u32) -> bool {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: takes numbers.
    unsafe { libc::syscall(libc::SYS_kcmp, own, pid, KCMP_VM, 0, 0) == 0 }
}

/// Judges the mappings of a process without a pager. Memory that it shares with its parent
/// since a fork counts as the parent's.
#[derive(Default)]
pub struct Judge {
    private: u64,
    shared: u64,
    file: u64,
    library: bool,
}

impl Judge {
    /// Takes account of one mapping.
    pub fn take(&mut self, area: &Area) {
        self.library |= is_library(area);
        match (area.shared, is_memory(area)) {
            (true, true) => self.shared += area.pss,
            (true, false) => self.file += area.pss,
            (false, _) => self.private += area.anonymous.min(area.private) + area.swap_pss,
        }
        self.private += area.huge;
    }

    /// Adds the bytes of all mappings taken to figures.
    pub fn add_to(&self, figures: &mut Figures) {
        let reason = if self.library { Reason::Child } else { Reason::StaticChild };
        figures.add(reason, self.private);
        figures.add(Reason::Shared, self.shared);
        figures.add(Reason::File, self.file);
    }
}

/// Counts what processes below this one have, if they have no pager.
pub fn count(pids: &mut Pids, own: u32, figures: &mut Figures) {
    for &pid in pids.below(own, is_managed) {
        if is_managed(pid) || has_memory_of(pid, own) {
            continue;
        }
        let mut judge = Judge::default();
        let path = Path::new(format_args!("/proc/{pid}/smaps"));
        if smaps::areas(&path, |area| judge.take(area)) {
            judge.add_to(figures);
        } else {
            figures.add(Reason::StaticChild, seen_from_afar(pid));
        }
    }
}

/// Bytes resident that are not of files, which anybody may read of a process.
fn seen_from_afar(pid: u32) -> u64 {
    let mut buffer = [0; 128];
    let head = proc::head(&Path::new(format_args!("/proc/{pid}/statm")), &mut buffer);
    let mut pages = head.split(|&byte| byte == b' ').skip(1).map(|n| proc::number(n).unwrap_or(0));
    let (resident, of_files) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
    resident.saturating_sub(of_files) * 4096
}

#[cfg(test)]
mod tests {
    use super::super::smaps::areas_of;
    use super::*;

    #[test]
    fn a_child_has_what_it_shares_with_nobody() {
        let text = "\
1000-9000 rw-p 0 00:00 0
Anonymous: 100 kB
Private_Dirty: 30 kB
SwapPss: 2 kB
9000-a000 r-xp 0 08:01 5 /bin/x
Private_Clean: 50 kB
b000-c000 rw-s 0 00:01 5 /dev/zero (deleted)
Pss: 7 kB
c000-d000 r--s 0 08:01 6 /data
Pss: 9 kB
";
        let count = |text: &str| {
            let (mut judge, mut figures) = (Judge::default(), Figures::default());
            areas_of(text, |area| judge.take(area));
            judge.add_to(&mut figures);
            let reasons = [Reason::Child, Reason::StaticChild, Reason::Shared, Reason::File];
            reasons.map(|reason| figures.of(reason) >> 10)
        };
        assert_eq!(count(text), [0, 32, 7, 9]);
        let forked = format!("{text}d000-e000 r-xp 0 08:01 7 /l/libmglru_preload.so\n");
        assert_eq!(count(&forked), [32, 0, 7, 9]);
    }

    #[test]
    fn processes_below_are_found() {
        let mut child = std::process::Command::new("sh");
        let child = child.args(["-c", "sleep 30 & wait"]).spawn();
        let Ok(mut child) = child else { return println!("skipped: no sh") };
        let mut pids = Pids::new();
        let own = std::process::id();
        let two = |pids: &mut Pids| {
            let below = pids.below(own, |_| false);
            let grandchild =
                below.iter().find(|&&pid| Pids::new().below(child.id(), |_| false).contains(&pid));
            below.contains(&child.id()).then_some(*grandchild?)
        };
        let sleep = std::iter::repeat_with(|| two(&mut pids)).take(10_000_000).flatten().next();
        let sleep = sleep.expect("both are there");
        assert!(any());
        assert!(!pids.below(own, |pid| pid == child.id()).contains(&sleep));
        assert!(!is_managed(child.id()) && !has_memory_of(child.id(), own));
        assert!(has_memory_of(own, own));
        assert!(seen_from_afar(child.id()) > 0);
        // SAFETY: a process that this test started.
        unsafe { libc::kill(sleep as i32, libc::SIGKILL) };
        assert!(!is_dead(own));
        child.wait().unwrap();
        assert!(is_dead(child.id()));
    }
}
