//! Says how large the virtual machine is: its memory, its processors, whether it fits here.

use mglru_sim::MachineSpec;
use mglru_sim::spec::Size;

use super::spec::KernelSpec;
use mglru_error::KeyError;

/// Most processors of the virtual machine.
const MAX_CPUS: u32 = 255;
/// Processors in virtual time, where the machine has more and the plan says nothing.
const VIRTUAL_CPUS: u32 = 2;
/// Least memory a guest boots with: its kernel, and the files packed for it twice while they are
/// unpacked.
const MIN_MEMORY: u64 = 192 << 20;

pub(super) fn memory(machine: &MachineSpec, spec: &KernelSpec) -> Result<u64, KeyError> {
    let memory = spec.memory.unwrap_or(machine.memory);
    match memory.0 >= MIN_MEMORY {
        true => Ok(memory.0),
        false => {
            let problem =
                format!("a guest boots with {} at least (see kernel.memory)", Size(MIN_MEMORY));
            Err(KeyError::value("machine.memory", memory, problem))
        }
    }
}

pub(super) fn cpus(machine: &MachineSpec, spec: &KernelSpec) -> Result<u32, KeyError> {
    // Processors that take turns on the host's own hold each other's locks while they do not run;
    // in virtual time they share one clock, whatever the host has.
    let own = || std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let most = if spec.is_virtual() { VIRTUAL_CPUS } else { own() };
    let cpus = spec.cpus.unwrap_or(machine.cpus.min(most));
    match (1..=MAX_CPUS).contains(&cpus) {
        true => Ok(cpus),
        false => {
            let problem = format!("a virtual machine has 1 to {MAX_CPUS} (see kernel.cpus)");
            Err(KeyError::value("machine.cpus", cpus, problem))
        }
    }
}

/// A guest that does not fit would push everything else out of this host's memory.
pub(super) fn fits(memory: u64) -> Result<(), String> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    match kib.map(|kib| kib << 10) {
        Some(free) if free < memory => Err(format!(
            "a guest of {} does not fit in this host's free memory ({} MiB); see kernel.memory",
            Size(memory),
            free >> 20
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Clock;
    use super::*;

    #[test]
    fn a_guest_larger_than_the_host_is_refused() {
        let error = fits(1 << 60).unwrap_err();
        assert!(error.starts_with("a guest of 1048576TiB does not fit"), "{error}");
        assert_eq!(fits(1 << 20), Ok(()));
    }

    #[test]
    fn a_guest_has_memory_to_boot_and_no_more_processors_than_run() {
        let machine =
            |memory: u64, cpus| MachineSpec { memory: Size(memory), cpus, ..Default::default() };
        let spec = KernelSpec::default();
        let error = memory(&machine(64 << 20, 1), &spec).unwrap_err().to_string();
        assert_eq!(
            error,
            "machine.memory = 64MiB: a guest boots with 192MiB at least (see kernel.memory)"
        );
        let larger = KernelSpec { memory: Some(Size(1 << 30)), ..KernelSpec::default() };
        assert_eq!(memory(&machine(64 << 20, 1), &larger), Ok(1 << 30));
        // The host's processors count by the host's clock alone.
        assert_eq!(cpus(&machine(1 << 30, 4096), &spec), Ok(VIRTUAL_CPUS));
        let own = std::thread::available_parallelism().unwrap().get() as u32;
        let by_host = KernelSpec { clock: Some(Clock::Host), ..KernelSpec::default() };
        assert_eq!(cpus(&machine(1 << 30, 4096), &by_host), Ok(own));
        let asked = KernelSpec { cpus: Some(200), ..KernelSpec::default() };
        assert_eq!(cpus(&machine(1 << 30, 1), &asked), Ok(200));
    }
}
