//! Lists the options that a kernel must have to run here, and how a booted one shows that it has
//! them.

use std::collections::BTreeMap;
use std::fmt::Write;

use mglru_guest::order::TARGETS;

/// Describes how a booted kernel shows that it meets a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Requires that the guest program runs and reports.
    Boots,
    /// Requires that a file or folder is there.
    There(&'static str),
    /// Requires that a text has a word.
    Word(&'static str, &'static str),
}

/// Describes a feature of the kernel that runs need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Names the need.
    pub what: &'static str,
    /// Lists options that provide it, each `=y`.
    pub options: &'static [&'static str],
    /// Lists modules that provide it, where it is not built in.
    pub modules: &'static [&'static str],
    /// Names the plans that need it; none: all.
    pub only: Option<&'static str>,
    /// Says how its presence shows.
    pub sign: Sign,
}

use Sign::{Boots, There, Word};

const FILE_SYSTEMS: &str = "/proc/filesystems";
const CONTROLLERS: &str = "/sys/fs/cgroup/cgroup.controllers";

/// Lists everything that runs need, what all need first.
pub const NEEDS: [Need; 22] = [
    need(
        "a machine with two serial ports",
        &["64BIT", "SMP", "PCI", "ACPI", "PRINTK", "TTY", "SERIAL_8250", "SERIAL_8250_CONSOLE"],
        Boots,
    ),
    need(
        "programs in a first file system",
        &[
            "BLK_DEV_INITRD",
            "BINFMT_ELF",
            "FUTEX",
            "POSIX_TIMERS",
            "MULTIUSER",
            "SHMEM",
            "ADVISE_SYSCALLS",
        ],
        Boots,
    ),
    // A pair of sockets is how the standard library hears from a child that it started.
    need("programs that start programs", &["NET", "UNIX"], There("/proc/net/unix")),
    need("devtmpfs", &["DEVTMPFS"], Boots),
    need("proc and sysfs", &["PROC_FS", "PROC_SYSCTL", "SYSFS"], Boots),
    need("multi-generational LRU", &["MMU", "LRU_GEN"], There("/sys/kernel/mm/lru_gen/enabled")),
    need("debugfs with lru_gen", &["DEBUG_FS"], There("/sys/kernel/debug/lru_gen")),
    need("counters of events", &["VM_EVENT_COUNTERS"], Word("/proc/vmstat", "pgpgin")),
    need("memory controller", &["CGROUPS", "MEMCG"], Word(CONTROLLERS, "memory")),
    need("io controller", &["BLOCK", "BLK_CGROUP"], Word(CONTROLLERS, "io")),
    need("ext4", &["EXT4_FS"], Word(FILE_SYSTEMS, "ext4")).with(&["ext4"]),
    need("xfs", &["XFS_FS"], Word(FILE_SYSTEMS, "xfs"))
        .with(&["xfs"])
        .only("kernel.filesystem = \"xfs\""),
    need("memory.reclaim", &[], There("/sys/fs/cgroup/probe/memory.reclaim"))
        .only("jobs that reclaim (kernels from 5.19)"),
    need("pressure", &["PSI"], There("/proc/pressure/memory")).only("times of stalls"),
    need(
        "null_blk of memory",
        &["BLK_DEV", "CONFIGFS_FS", "BLK_DEV_NULL_BLK", "HIGH_RES_TIMERS"],
        Word("/sys/kernel/config/nullb/features", "memory_backed"),
    )
    .with(&["configfs", "null_blk"])
    .only("devices other than ram"),
    need("brd", &["BLK_DEV_RAM"], There("/dev/ram0")).with(&["brd"]).only("device = \"ram\""),
    need("zram", &["SWAP", "CRYPTO", "CRYPTO_LZO", "ZSMALLOC", "ZRAM"], There("/sys/block/zram0"))
        .with(&["zram"])
        .only("swap.kind = \"zram\""),
    need("dm-delay", &["MD", "BLK_DEV_DM", "DM_DELAY"], Word(TARGETS, "delay"))
        .with(&["dm_mod", "dm_delay"])
        .only("devices of a millisecond and more"),
    need("cgroups of the old kind", &[], Word("/proc/cgroups", "blkio"))
        .only("dirty.per_group = false"),
    need("NUMA", &["NUMA"], There("/sys/devices/system/node/node0")).only("nodes = 2 and more"),
    need(
        "virtio_blk",
        &["VIRTIO_MENU", "VIRTIO_PCI", "VIRTIO_BLK"],
        There("/sys/bus/virtio/drivers/virtio_blk"),
    )
    .with(&["virtio_blk"])
    .only("--host-time"),
    need(
        "persistent memory",
        &["LIBNVDIMM", "ACPI_NFIT", "BLK_DEV_PMEM"],
        There("/sys/bus/nd/drivers/nd_pmem"),
    )
    .with(&["nfit", "nd_pmem"])
    .only("--host-time with device = \"ram\""),
];

const fn need(what: &'static str, options: &'static [&'static str], sign: Sign) -> Need {
    Need { what, options, modules: &[], only: None, sign }
}

impl Need {
    const fn with(self, modules: &'static [&'static str]) -> Self {
        Self { modules, ..self }
    }

    const fn only(self, plans: &'static str) -> Self {
        Self { only: Some(plans), ..self }
    }

    /// Tells whether what a kernel showed has the sign.
    pub fn is_met(&self, shown: &BTreeMap<String, String>) -> bool {
        match self.sign {
            Boots => true,
            There(path) => shown.contains_key(path),
            Word(path, word) => shown.get(path).is_some_and(|text| {
                text.split(|c: char| c.is_whitespace() || c == ',').any(|one| one == word)
            }),
        }
    }

    /// Returns the path that shows the sign.
    pub fn path(&self) -> Option<&'static str> {
        match self.sign {
            Boots => None,
            There(path) | Word(path, _) => Some(path),
        }
    }

    /// Writes the options as a fragment has them.
    pub fn settings(&self) -> String {
        let lines = self.options.iter().map(|option| format!("CONFIG_{option}=y"));
        lines.collect::<Vec<_>>().join(" ")
    }
}

/// Writes the fragment of options for a kernel that needs no modules.
pub fn fragment() -> String {
    let mut text =
        "# Options that a kernel needs to be booted by mglru without modules.\n".to_string();
    for need in NEEDS.iter().filter(|need| !need.options.is_empty()) {
        let only = need.only.map(|plans| format!(", only for {plans}")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n# {}{only}", need.what);
        need.options.iter().for_each(|option| text += &format!("CONFIG_{option}=y\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::kernel::fetched;

    #[test]
    fn a_sign_is_a_whole_word_or_a_path() {
        let of = |what: &str| NEEDS.iter().find(|need| need.what == what).unwrap();
        let shown = |path: &str, text: &str| BTreeMap::from([(path.to_string(), text.to_string())]);
        assert!(of("ext4").is_met(&shown(FILE_SYSTEMS, "nodev\tproc\n\text4\n")));
        assert!(!of("ext4").is_met(&shown(FILE_SYSTEMS, "nodev\text4dev\n")));
        let features = "/sys/kernel/config/nullb/features";
        assert!(of("null_blk of memory").is_met(&shown(features, "badblocks,memory_backed,size")));
        assert!(of("brd").is_met(&shown("/dev/ram0", "")) && !of("zram").is_met(&BTreeMap::new()));
    }

    #[test]
    fn the_fragment_is_one_that_kconfig_reads() {
        let text = fragment();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut seen = std::collections::BTreeSet::new();
        for line in lines {
            let option = line.strip_prefix("CONFIG_").and_then(|rest| rest.strip_suffix("=y"));
            let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            assert!(option.is_some_and(|option| option.chars().all(is_name)), "{line}");
            assert!(seen.insert(line), "{line} stands there twice");
        }
        assert!(seen.contains("CONFIG_LRU_GEN=y"));
    }

    /// A kernel that is known to run here has every option, built in or as a module.
    #[test]
    fn debians_kernel_has_every_option() {
        let configs = fetched::all().into_iter().filter_map(|kernel| {
            let file = kernel.image.with_file_name(format!("config-{}", kernel.release));
            std::fs::read_to_string(file).ok()
        });
        let Some(config) = configs.into_iter().next() else {
            println!("skipped: no fetched kernel has its configuration beside it");
            return;
        };
        for option in NEEDS.iter().flat_map(|need| need.options) {
            let has = |value| config.contains(&format!("\nCONFIG_{option}={value}\n"));
            assert!(has("y") || has("m"), "{option}");
        }
    }
}
