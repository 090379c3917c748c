//! What this host offers the pager, and the one-line fix for what is missing.

use crate::sys::pagemap::Pagemap;
use crate::sys::ring::Ring;
use crate::sys::uffd::{self, Uffd};

/// One thing a host has or lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What.
    pub what: &'static str,
    /// It is there.
    pub ok: bool,
    /// The pager does not work without.
    pub required: bool,
    /// What was found, or what goes wrong without it.
    pub detail: String,
    /// What to do about it; empty when there is nothing to do.
    pub fix: &'static str,
}

/// Looks at everything the pager uses.
pub fn probe() -> Vec<Fact> {
    vec![userfaultfd(), kernel_faults(), pagemap(), io_uring(), poison(), heaps()]
}

fn userfaultfd() -> Fact {
    let opened = Uffd::open();
    Fact {
        what: "userfaultfd with write protection of shared memory",
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

fn heaps() -> Fact {
    feature(
        uffd::FEATURE_MOVE | uffd::FEATURE_EVENT_FORK,
        "UFFDIO_MOVE and fork events",
        "without them heaps of programs that fork cannot be managed",
        "needs Linux 6.8; fork events need CAP_SYS_PTRACE",
    )
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
