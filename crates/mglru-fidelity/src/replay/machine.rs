//! Describes the measured machine to the model, with the limits of the job's group.

use mglru_sim::MachineSpec;
use mglru_sim::device::DeviceSpec;
use mglru_sim::spec::{GroupSpec, PAGE_SIZE, Size};
use mglru_sim::swap::SwapSpec;
use mglru_workload::Knob;
use mglru_workload::job::{GROUP_NAME, Job as JobSpec};

use crate::truth::Run;

/// Linux sums the statistics of groups up every two seconds.
pub(crate) const STAT_FLUSH_MS: u32 = 2_000;
/// Pages a processor charges in advance.
pub(crate) const CHARGE_BATCH: u32 = 64;
/// Pages that the measured process had charged besides page tables and page-cache nodes (slab
/// objects of its own): every record's `end.kernel` holds two to four such pages.
const OWN_KERNEL_PAGES: u64 = 3;

/// The measured machine: one node, two processors, nothing read ahead, one page a fault, a device
/// fast enough that only the pace counts.
pub(super) fn machine(run: &Run, job: &JobSpec) -> MachineSpec {
    let swap = match run.zram_mb {
        0 => SwapSpec::default(),
        mb => SwapSpec::zram(mb << 20),
    };
    MachineSpec {
        memory: Size(run.mem_mb << 20),
        cpus: 2,
        readahead_kb: 0,
        fault_around_kb: 4,
        device: DeviceSpec::preset("ram").unwrap_or_default(),
        swap,
        filesystem: run.filesystem,
        stat_flush_ms: STAT_FLUSH_MS,
        charge_batch: CHARGE_BATCH,
        charge_kernel: true,
        groups: [(GROUP_NAME.to_string(), limits(job))].into(),
        ..MachineSpec::default()
    }
}

fn limits(job: &JobSpec) -> GroupSpec {
    let mut group = GroupSpec::default();
    for &(_, knob, value) in &job.settings {
        match knob {
            Knob::MemoryMin => group.min = Size(value),
            Knob::MemoryLow => group.low = Size(value),
            Knob::MemoryHigh => group.high = Size(value),
            Knob::MemoryMax => group.max = less_own(value),
            Knob::MemorySwapMax => group.swap_max = Size(value),
            Knob::Swappiness => group.swappiness = Some(value as u8),
        }
    }
    group
}

fn less_own(limit: u64) -> Size {
    Size(if limit == u64::MAX { limit } else { limit.saturating_sub(OWN_KERNEL_PAGES * PAGE_SIZE) })
}
