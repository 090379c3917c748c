//! Which machines can be simulated: ranges of single keys, then keys that contradict each other.

use super::{FileSystem, GroupSpec, MachineSpec, PAGE_SIZE, Physical, Size};
use crate::physical::PAGEBLOCK_PAGES;
use crate::swap::SwapKind;

/// Smallest and largest memory.
const MEMORY: (Size, Size) = (Size(1 << 20), Size(1 << 40));
/// Most a single step may cost, in the unit of its key.
const MAX_COST: u64 = 1_000_000_000;
/// Slots have 32-bit numbers, of which page tables keep 31 bits less the empty entry.
const MAX_SWAP: Size = Size(((1 << 31) - 2) * PAGE_SIZE);

/// Says what is wrong with a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Refuses a value outside its range.
    #[error("{key} = {got}: must be from {min} to {max}")]
    OutOfRange {
        /// The key, with dots.
        key: String,
        /// Its value.
        got: String,
        /// Smallest allowed value.
        min: String,
        /// Largest allowed value.
        max: String,
    },
    /// Refuses a value that another key forbids.
    #[error("{key} = {got}: {problem}")]
    Contradiction {
        /// The key, with dots.
        key: String,
        /// Its value.
        got: String,
        /// The key that it contradicts.
        problem: String,
    },
}

impl MachineSpec {
    /// Passes the machine on if it can be simulated, with the size of the swap space filled in.
    ///
    /// # Errors
    /// Names the first key that is out of its range or contradicts another.
    pub fn check(mut self) -> Result<Self, SpecError> {
        in_range("memory", self.memory, MEMORY.0, MEMORY.1)?;
        self.check_numbers()?;
        self.check_zones()?;
        self.check_physical()?;
        self.check_filesystem()?;
        self.dirty.check()?;
        self.device.check("device")?;
        for (name, cost) in self.costs.named() {
            in_range(&format!("costs.{name}"), cost, 0, MAX_COST)?;
        }
        self.check_swap()?;
        for (name, group) in &self.groups {
            self.check_group(name, group)?;
        }
        if self.swap.kind != SwapKind::None {
            self.swap.size.get_or_insert(self.memory);
        }
        Ok(self)
    }

    fn check_numbers(&self) -> Result<(), SpecError> {
        in_range("cpus", self.cpus, 1, 4096)?;
        in_range("nodes", self.nodes, 1, 64)?;
        in_range("slow_nodes", self.slow_nodes, 0, self.nodes - 1)?;
        in_range("readahead_kb", self.readahead_kb, 0, 65_536)?;
        in_range("fault_around_kb", self.fault_around_kb, 4, 2_048)?;
        in_range("page_cluster", self.page_cluster, 0, 5)?;
        in_range("quantum_ns", self.quantum_ns, 1_000, 1_000_000_000)?;
        in_range("stat_flush_ms", self.stat_flush_ms, 0, 3_600_000)?;
        in_range("charge_batch", self.charge_batch, 0, 4_096)?;
        in_range("swappiness", self.swappiness, 0, 200)?;
        multiple_of_page("readahead_kb", self.readahead_kb)?;
        if !self.fault_around_kb.is_power_of_two() {
            return contradiction("fault_around_kb", self.fault_around_kb, "no power of two");
        }
        match self.nodes > self.cpus {
            true => contradiction("nodes", self.nodes, format!("cpus is only {}", self.cpus)),
            false => Ok(()),
        }
    }

    fn check_zones(&self) -> Result<(), SpecError> {
        in_range("zones.watermark_scale", self.zones.watermark_scale, 0, 3_000)?;
        let node = self.node();
        let problem = || format!("leaves no normal zone of the first node's {node}");
        if self.dma() >= node {
            return contradiction("zones.dma", self.dma(), problem());
        }
        if self.dma().0 + self.zones.dma32.0 >= node.0 {
            return contradiction("zones.dma32", self.zones.dma32, problem());
        }
        match self.zones.min_free {
            Some(min) => in_range("zones.min_free", min, Size(0), Size(self.memory.0 / 4)),
            None => Ok(()),
        }
    }

    fn check_physical(&self) -> Result<(), SpecError> {
        let block = u64::from(PAGEBLOCK_PAGES);
        let problem = if self.physical == Physical::Simple {
            return Ok(());
        } else if self.nodes > 1 {
            "one node only".to_owned()
        } else if self.zones.dma32 != Size(0) {
            "one zone only (zones.dma32)".to_owned()
        } else if self.dma() != Size(0) {
            "one zone only (zones.dma)".to_owned()
        } else if self.pages() % block != 0 {
            format!("memory must be whole pageblocks of {}", Size(block * PAGE_SIZE))
        } else {
            return Ok(());
        };
        contradiction("physical", "buddy", problem)
    }

    /// Frames are given out one by one.
    fn check_filesystem(&self) -> Result<(), SpecError> {
        let name = match self.filesystem {
            FileSystem::Order0 => return Ok(()),
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        };
        if self.physical == Physical::Buddy {
            let problem = "its large folios need physical = \"simple\"";
            return contradiction("filesystem", name, problem);
        }
        Ok(())
    }

    fn check_swap(&self) -> Result<(), SpecError> {
        self.check_swap_knobs()?;
        if let Some(size) = self.swap.size {
            in_range("swap.size", size, Size(PAGE_SIZE), MAX_SWAP)?;
            if self.swap.kind == SwapKind::None {
                return contradiction("swap.size", size, "there is no swap (swap.kind = none)");
            }
        }
        match (&self.swap.device, self.swap.kind) {
            (None, _) => Ok(()),
            (Some(device), SwapKind::Device) => device.check("swap.device"),
            (Some(_), SwapKind::None | SwapKind::Zram) => {
                contradiction("swap.device", "set", "only swap.kind = device has one")
            }
        }
    }

    /// Refuses knobs that nothing would read.
    fn check_swap_knobs(&self) -> Result<(), SpecError> {
        let (swap, plain) = (&self.swap, crate::swap::SwapSpec::default());
        if swap.kind == SwapKind::None && swap.zero_map != plain.zero_map {
            return contradiction("swap.zero_map", swap.zero_map, "there is no swap");
        }
        if swap.kind != SwapKind::Zram && swap.ratio != plain.ratio {
            return contradiction("swap.ratio", "set", "only swap.kind = zram compresses");
        }
        Ok(())
    }

    fn check_group(&self, name: &str, group: &GroupSpec) -> Result<(), SpecError> {
        let key = |knob: &str| format!("groups.{name}.{knob}");
        if !name.starts_with('/') || name.len() < 2 || name.ends_with('/') {
            return contradiction("groups", name, "a group is named by its path, such as /web");
        }
        if group.max != Size::MAX {
            in_range(&key("memory.max"), group.max, Size(PAGE_SIZE), self.memory)?;
        }
        for (knob, protection) in [("memory.min", group.min), ("memory.low", group.low)] {
            if protection != Size::MAX && protection > group.max {
                let problem = format!("more than memory.max ({})", group.max);
                return contradiction(&key(knob), protection, problem);
            }
        }
        if !matches!(group.swap_max, Size(0) | Size::MAX) && self.swap.kind == SwapKind::None {
            let problem = "there is no swap (swap.kind = none)";
            return contradiction(&key("memory.swap.max"), group.swap_max, problem);
        }
        in_range(&key("memory.swappiness"), group.swappiness.unwrap_or(0), 0, 200)
    }
}

/// `got` lies in `min..=max`.
pub(crate) fn in_range<T>(key: &str, got: T, min: T, max: T) -> Result<(), SpecError>
where
    T: PartialOrd + ToString,
{
    if got >= min && got <= max {
        return Ok(());
    }
    let (got, min, max) = (got.to_string(), min.to_string(), max.to_string());
    Err(SpecError::OutOfRange { key: key.to_string(), got, min, max })
}

/// `key = got` cannot be, because of `problem`.
pub(crate) fn contradiction(
    key: &str,
    got: impl ToString,
    problem: impl ToString,
) -> Result<(), SpecError> {
    let (got, problem) = (got.to_string(), problem.to_string());
    Err(SpecError::Contradiction { key: key.to_string(), got, problem })
}

fn multiple_of_page(key: &str, kb: u32) -> Result<(), SpecError> {
    match kb % 4 {
        0 => Ok(()),
        _ => contradiction(key, kb, "no multiple of a page (4 KiB)"),
    }
}
