//! `[kernel]` of a plan: the booted machine where it differs from `[machine]`, and the switches a
//! variant may set.

use std::path::PathBuf;

use indexmap::IndexMap;
use mglru_guest::order::FileSystem;
use mglru_sim::spec::Size;
use serde::Deserialize;
use toml::{Table, Value};

use crate::typed;
use crate::variant::Variant;
use mglru_error::{KeyError, did_you_mean};

/// Lists the kernel with multi-generational reclaim, and with the active and inactive lists.
pub const VARIANTS: [(&str, &str, u64); 2] = [
    ("k6.12", "the booted kernel with lru_gen on", 7),
    ("classic", "the booted kernel with lru_gen off", 0),
];

/// Lists switches that a variant may set, each with a line of description.
pub const SWITCHES: [(&str, &str); 6] = [
    ("lru_gen", "bits of /sys/kernel/mm/lru_gen/enabled, 0 to 7 (kernel backend)"),
    ("min_ttl_ms", "/sys/kernel/mm/lru_gen/min_ttl_ms (kernel backend)"),
    ("swappiness", "vm.swappiness, 0 to 200 (kernel backend)"),
    ("image", "the kernel to boot, a bzImage (kernel backend)"),
    ("modules", "its modules, the folder below lib/modules (kernel backend)"),
    ("append", "words added to the kernel's command line (kernel backend)"),
];

/// Chooses how QEMU runs the guest's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// Uses KVM where it works, else translation.
    #[default]
    Auto,
    /// Uses the host's processor.
    Kvm,
    /// Uses translation by QEMU.
    Tcg,
}

/// Chooses the clock that the guest runs by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Follows the host's.
    Host,
    /// Follows its own: a fixed time for each instruction, so that a run can be repeated to the
    /// byte.
    Virtual,
}

/// Chooses the disk of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    /// Attaches a virtio block device over a sparse file of the host.
    Blk,
    /// Attaches persistent memory over the same: no queue, as fast as memory.
    Pmem,
}

/// Holds the keys of `[kernel]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KernelSpec {
    /// Names the kernel to boot; none: Debian's, as `mglru doctor --install` fetches it.
    pub image: Option<PathBuf>,
    /// Names the folder of its modules; none: beside the image, or everything is built in.
    pub modules: Option<PathBuf>,
    /// Adds words to the command line.
    pub append: String,
    /// Chooses how the guest's code is run.
    pub accel: Accelerator,
    /// Chooses the clock that it runs by; none: its own, unless KVM is asked for, which counts
    /// nothing.
    pub clock: Option<Clock>,
    /// Sets how long an instruction lasts in virtual time: a power of two up to 1024. At 2 a
    /// processor is 9 to 16 times slower than a Xeon in what it computes, 50 times in reading
    /// cached pages.
    pub ns_per_instruction: u32,
    /// Counts the kernel's instructions by function.
    pub profile: bool,
    /// Sets the memory of the guest; none: `machine.memory`.
    pub memory: Option<Size>,
    /// Sets the processors of the guest; none: `machine.cpus`.
    pub cpus: Option<u32>,
    /// Chooses the disk of files; none: memory for `device = "ram"`, else a block device.
    pub disk: Option<DiskKind>,
    /// Chooses the file system of what files lie on.
    pub filesystem: FileSystem,
    /// Sets the room on the disk besides the workload's files.
    pub disk_room: Size,
    /// Lists commands of an administrator before the work, for the shell.
    pub prepare: String,
    /// Lists programs of this host that are packed, by name or path.
    pub programs: Vec<String>,
    /// Lists files and folders of this host that are packed under their own paths.
    pub files: Vec<PathBuf>,
    /// Lists modules loaded besides those the machine needs.
    pub load: Vec<String>,
    /// Sets the milliseconds between samples.
    pub sample_ms: u64,
    /// The run has failed when it takes longer, seconds: of QEMU's processor time where the guest's
    /// time is virtual (and eight times as long by the clock at most), else by the clock.
    pub timeout_s: u64,
}

impl Default for KernelSpec {
    fn default() -> Self {
        Self {
            image: None,
            modules: None,
            append: String::new(),
            accel: Accelerator::Auto,
            clock: None,
            ns_per_instruction: 2,
            profile: false,
            memory: None,
            cpus: None,
            disk: None,
            filesystem: FileSystem::Ext4,
            disk_room: Size(64 << 20),
            prepare: String::new(),
            programs: Vec::new(),
            files: Vec::new(),
            load: Vec::new(),
            sample_ms: 500,
            timeout_s: 1800,
        }
    }
}

impl KernelSpec {
    /// Says whether the guest runs by virtual time.
    pub fn is_virtual(&self) -> bool {
        let unsaid = self.accel != Accelerator::Kvm;
        self.clock.map_or(unsaid, |clock| clock == Clock::Virtual)
    }
}

/// Holds the switches that a variant sets on the booted kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Switches {
    /// Holds the bits of `lru_gen/enabled`.
    pub lru_gen: u64,
    /// Holds `min_ttl_ms`, where it is set.
    pub min_ttl_ms: Option<u64>,
    /// Holds `swappiness`, where it is set.
    pub swappiness: Option<u64>,
}

/// Reads `[kernel]` and what the variant changes about it.
///
/// # Errors
/// Names the key.
pub fn read(table: &Table, variant: &Variant) -> Result<(KernelSpec, Switches), KeyError> {
    let mut table = table.clone();
    let (mut numbers, mut unknown) = (IndexMap::new(), None);
    for (key, value) in &variant.set {
        match key.as_str() {
            "image" | "modules" | "append" => {
                table.insert(key.clone(), value.clone());
            }
            "lru_gen" | "min_ttl_ms" | "swappiness" => {
                numbers.insert(key.as_str(), number(key, value, variant)?);
            }
            _ => unknown = unknown.or(Some(key)),
        }
    }
    if let Some(key) = unknown {
        let known = SWITCHES.map(|(name, _)| name);
        let problem = format!("not a switch of a booted kernel{}", did_you_mean(key, known));
        return Err(KeyError::key(format!("variant {}: {key}", variant.name), problem));
    }
    let spec = section(table)?;
    let named = VARIANTS.iter().find(|(name, ..)| *name == variant.base);
    let (_, _, lru_gen) = named.ok_or_else(|| unknown_variant(variant))?;
    let switches = Switches {
        lru_gen: numbers.get("lru_gen").copied().unwrap_or(*lru_gen),
        min_ttl_ms: numbers.get("min_ttl_ms").copied(),
        swappiness: numbers.get("swappiness").copied(),
    };
    Ok((spec, switches))
}

/// Reads `[kernel]` alone; also where no kernel is booted: a wrong key is an error there too.
///
/// # Errors
/// Names the key.
pub fn section(table: Table) -> Result<KernelSpec, KeyError> {
    let spec: KernelSpec = typed::from_table(table).map_err(|e| e.within("kernel"))?;
    check(&spec)?;
    Ok(spec)
}

fn number(key: &str, value: &Value, variant: &Variant) -> Result<u64, KeyError> {
    let max = match key {
        "lru_gen" => 7,
        "swappiness" => 200,
        _ => u64::from(u32::MAX),
    };
    let fits = value.as_integer().and_then(|n| u64::try_from(n).ok()).filter(|n| *n <= max);
    let key = format!("variant {}: {key}", variant.name);
    fits.ok_or_else(|| KeyError::value(key, value, format!("must be from 0 to {max}")))
}

fn unknown_variant(variant: &Variant) -> KeyError {
    let problem = "a booted kernel has its own policy; take k6.12 (lru_gen on) or classic (off), \
                   or name kernels with --kernel NAME=IMAGE";
    KeyError::value("variant", &variant.base, problem)
}

fn check(spec: &KernelSpec) -> Result<(), KeyError> {
    let range = |key: &str, got: u64, min: u64, max: u64| match (min..=max).contains(&got) {
        true => Ok(()),
        false => Err(KeyError::value(
            format!("kernel.{key}"),
            got,
            format!("must be from {min} to {max}"),
        )),
    };
    range("sample_ms", spec.sample_ms, 10, 3_600_000)?;
    range("timeout_s", spec.timeout_s, 1, 7 * 86_400)?;
    range("disk_room", spec.disk_room.0, 16 << 20, 1 << 44)?;
    let ns = spec.ns_per_instruction;
    if !(ns.is_power_of_two() && ns <= 1024) {
        let problem = "must be a power of two from 1 to 1024";
        return Err(KeyError::value("kernel.ns_per_instruction", ns, problem));
    }
    if spec.profile && !spec.is_virtual() {
        let problem = "instructions are counted in virtual time (kernel.clock)";
        return Err(KeyError::value("kernel.profile", true, problem));
    }
    match (spec.clock, spec.accel) {
        (Some(Clock::Virtual), Accelerator::Kvm) => {
            let problem = "virtual time counts instructions, which KVM does not (take auto or tcg)";
            Err(KeyError::value("kernel.accel", "kvm", problem))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(table: &str, variant: &str) -> String {
        let variant = Variant::parse(variant).unwrap();
        read(&table.parse().unwrap(), &variant).unwrap_err().to_string()
    }

    #[test]
    fn a_variant_sets_switches_and_the_image() {
        let table = "append = \"quiet\"\nimage = \"a\"".parse().unwrap();
        let variant = Variant::parse("classic+swappiness=10+image=b").unwrap();
        let (spec, switches) = read(&table, &variant).unwrap();
        assert_eq!((spec.image, spec.append), (Some("b".into()), "quiet".to_string()));
        assert_eq!((switches.lru_gen, switches.swappiness), (0, Some(10)));
    }

    #[test]
    fn a_guest_repeats_unless_the_hosts_clock_is_asked_for() {
        let of = |table: &str| {
            let (table, plain) = (table.parse().unwrap(), Variant::named("k6.12"));
            read(&table, &plain).unwrap().0.is_virtual()
        };
        assert!(of("") && of("accel = \"tcg\"") && of("clock = \"virtual\""));
        assert!(!of("accel = \"kvm\"") && !of("clock = \"host\""));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(error("", "before").starts_with("variant = before: a booted kernel has its own"));
        assert!(error("", "k6.12+p10").starts_with("variant k6.12+p10: p10: not a switch"));
        assert_eq!(
            error("", "k6.12+lru_gen=8"),
            "variant k6.12+lru_gen=8: lru_gen = 8: must be from 0 to 7"
        );
        assert!(error("imag = \"x\"", "k6.12").starts_with("kernel.imag: unknown key"));
        assert_eq!(
            error("timeout_s = 0", "k6.12"),
            "kernel.timeout_s = 0: must be from 1 to 604800"
        );
        let message = error("ns_per_instruction = 3", "k6.12");
        assert_eq!(message, "kernel.ns_per_instruction = 3: must be a power of two from 1 to 1024");
        let message = error("clock = \"virtual\"\naccel = \"kvm\"", "k6.12");
        assert!(message.starts_with("kernel.accel = kvm: virtual time counts"), "{message}");
        let message = error("clock = \"host\"\nprofile = true", "k6.12");
        assert!(
            message.starts_with("kernel.profile = true: instructions are counted in"),
            "{message}"
        );
    }
}
