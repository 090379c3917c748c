//! Files that `mglru capture` reads, and how the kernel is made to show those it does not.

use std::fs::File;

use mglru_lab::backend::kernel::Finding;

/// A file, or another in its place, with what shows it.
struct Wanted {
    files: &'static [&'static str],
    fix: &'static str,
    /// A capture without it says nothing.
    needed: bool,
}

const WANTED: [Wanted; 4] = [
    Wanted { files: &["/proc/vmstat"], fix: "mount -t proc proc /proc", needed: true },
    Wanted {
        files: &["/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/memory/memory.stat"],
        fix: "mount -t cgroup2 none /sys/fs/cgroup",
        needed: false,
    },
    Wanted { files: &["/proc/pressure/memory"], fix: "boot with psi=1", needed: false },
    Wanted {
        files: &["/sys/kernel/debug/lru_gen_full"],
        fix: "as root, with CONFIG_LRU_GEN: mount -t debugfs none /sys/kernel/debug",
        needed: false,
    },
];

/// Finds which can be read.
pub(super) fn all() -> Vec<Finding> {
    WANTED.iter().map(look).collect()
}

fn look(wanted: &Wanted) -> Finding {
    let (first, needed) = (wanted.files[0].to_string(), wanted.needed);
    let there = wanted.files.iter().find(|file| File::open(file).is_ok());
    let state = there.map(|file| file.to_string()).ok_or_else(|| wanted.fix.to_string());
    Finding { what: first, state, needed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_file_will_do_and_neither_says_what_shows_it() {
        let wanted = |files| Wanted { files, fix: "boot with x=1", needed: true };
        let state = |files| look(&wanted(files)).state;
        assert_eq!(state(&["/proc/none", "/proc/vmstat"]), Ok("/proc/vmstat".to_string()));
        assert_eq!(state(&["/proc/none"]), Err("boot with x=1".to_string()));
        assert!(all().iter().any(|finding| finding.needed));
    }
}
