//! Finds what this host offers the pager, and the one-line fix for what is missing.

use std::fs::File;

use crate::sys::idle;
use crate::sys::pagemap::Pagemap;
use crate::sys::ring::Ring;
use crate::sys::uffd::{self, Uffd};

/// Describes one feature that a host has or lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Names the feature.
    pub what: &'static str,
    /// Says that the host has it.
    pub ok: bool,
    /// Says that the pager does not work without it.
    pub required: bool,
    /// Holds the finding, or what goes wrong without it.
    pub detail: String,
    /// Holds the fix; empty when there is nothing to do.
    pub fix: &'static str,
}

/// Names the fact that the kernel keeps accessed bits of heaps. Without it little is lost, and no
/// kernel before 7.3 has it.
pub const KEPT_BITS: &str = "accessed bits of heaps (UFFDIO_RWPROTECT)";

/// Looks at everything the pager uses.
pub fn probe() -> Vec<Fact> {
    let memory =
        [userfaultfd(), kernel_faults(), pagemap(), io_uring(), poison(), sigbus(), heaps()];
    memory.into_iter().chain([kept_bits(), idle(), fuse(), ptrace()]).collect()
}

fn userfaultfd() -> Fact {
    let opened = Uffd::open();
    Fact {
        what: "userfaultfd with write protection of shared memory (FaultEngine::Thread)",
        ok: opened.is_ok(),
        required: true,
        detail: opened.map_or_else(|e| e.to_string(), |_| "available".into()),
        fix: "Linux 5.19 with CONFIG_USERFAULTFD; in a container, seccomp must allow userfaultfd",
    }
}

fn kernel_faults() -> Fact {
    let ok = Uffd::open().is_ok_and(|uffd| uffd.serves_kernel_faults());
    let detail = if ok { "served" } else { "read(2) into an evicted page fails with EFAULT" };
    Fact {
        what: "faults of system calls",
        ok,
        required: false,
        detail: detail.into(),
        fix: "sysctl vm.unprivileged_userfaultfd=1, or access to /dev/userfaultfd",
    }
}

fn pagemap() -> Fact {
    let opened = Pagemap::open();
    Fact {
        what: "PAGEMAP_SCAN",
        ok: opened.is_ok(),
        required: true,
        detail: opened.map_or_else(|e| e.to_string(), |_| "available".into()),
        fix: "needs Linux 6.7 and /proc",
    }
}

fn io_uring() -> Fact {
    let opened = Ring::new(1, crate::sys::PAGE);
    Fact {
        what: "io_uring",
        ok: opened.is_ok(),
        required: true,
        detail: opened.map_or_else(|e| e.to_string(), |_| "available".into()),
        fix: "sysctl kernel.io_uring_disabled=0; in a container, allow io_uring_setup in seccomp",
    }
}

fn poison() -> Fact {
    feature(
        uffd::FEATURE_POISON,
        "UFFDIO_POISON",
        "without it a page that cannot be read stops the process",
        "needs Linux 6.6",
    )
}

fn sigbus() -> Fact {
    feature(
        uffd::FEATURE_SIGBUS,
        "faults by SIGBUS (FaultEngine::Sigbus)",
        "without it threads serve all faults (FaultEngine::Thread)",
        "needs Linux 4.14",
    )
}

fn heaps() -> Fact {
    feature(
        uffd::FEATURE_MOVE | uffd::FEATURE_EVENT_FORK,
        "UFFDIO_MOVE and fork events",
        "without them heaps of programs that fork cannot be managed",
        "needs Linux 6.8; fork events need CAP_SYS_PTRACE",
    )
}

fn kept_bits() -> Fact {
    feature(
        uffd::FEATURES_RWP,
        KEPT_BITS,
        "without them a heap's pages are taken away for a while to learn whether they are used",
        "needs Linux 7.3",
    )
}

fn idle() -> Fact {
    let ok = idle::is_possible();
    let detail = if ok { "gives way to the program" } else { "competes with it for processors" };
    Fact {
        what: "background reclaim by SCHED_IDLE",
        ok,
        required: false,
        detail: detail.into(),
        fix: "CAP_SYS_NICE, or ulimit -e 20; the program itself of the ordinary scheduling policy",
    }
}

fn fuse() -> Fact {
    let opened = File::options().read(true).write(true).open("/dev/fuse");
    Fact {
        what: "fuse",
        ok: opened.is_ok(),
        required: false,
        detail: opened.map_or_else(|e| format!("/dev/fuse: {e}"), |_| "available".into()),
        fix: "modprobe fuse; in a container, allow the device /dev/fuse",
    }
}

/// Yama's scope: 0 the same user, 1 a program's own parent, 2 the administrator, 3 nobody.
fn ptrace() -> Fact {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope: u32 = scope.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let who =
        ["programs of the same user", "a program's own parent", "the administrator", "nobody"];
    Fact {
        what: "ptrace",
        ok: scope <= 1,
        required: false,
        detail: format!("allowed for {}", who[scope.min(3) as usize]),
        fix: "sysctl kernel.yama.ptrace_scope=1",
    }
}

fn feature(bits: u64, what: &'static str, without: &str, fix: &'static str) -> Fact {
    let ok = uffd::features().is_ok_and(|features| features & bits == bits);
    let detail = if ok { "available" } else { without };
    Fact { what, ok, required: false, detail: detail.into(), fix }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_fact_has_a_fix() {
        let facts = probe();
        assert!(facts.iter().filter(|fact| fact.required).count() >= 3);
        assert!(facts.iter().all(|fact| !fact.fix.is_empty() && !fact.detail.is_empty()));
    }
}
