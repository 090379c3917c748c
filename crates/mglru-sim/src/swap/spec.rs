//! Describes the swap space.

use serde::{Deserialize, Serialize};

use crate::device::DeviceSpec;
use crate::spec::{PAGE_SIZE, Ratio, Size};

/// Says where swapped pages go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwapKind {
    /// Swaps nowhere: anonymous memory stays.
    #[default]
    None,
    /// Swaps to compressed memory.
    Zram,
    /// Swaps to a block device.
    Device,
}

/// Describes the swap space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwapSpec {
    /// Says where swapped pages go.
    pub kind: SwapKind,
    /// Bounds how much may be swapped; `None`: as much as there is memory.
    pub size: Option<Size>,
    /// Sets how many compressible pages fit in one page of the pool (zram).
    pub ratio: Ratio,
    /// Describes the device (kind `device`); `None`: the one the files are on.
    pub device: Option<DeviceSpec>,
    /// Says whether all-zero pages are only marked (Linux 6.12 and later).
    pub zero_map: bool,
}

impl Default for SwapSpec {
    fn default() -> Self {
        Self {
            kind: SwapKind::None,
            size: None,
            ratio: Ratio::default(),
            device: None,
            zero_map: true,
        }
    }
}

impl SwapSpec {
    /// Describes zram of a size.
    pub fn zram(bytes: u64) -> Self {
        Self { kind: SwapKind::Zram, size: Some(Size(bytes)), ..Self::default() }
    }

    /// Describes a swap device of a size.
    pub fn on_device(bytes: u64) -> Self {
        Self { kind: SwapKind::Device, size: Some(Size(bytes)), ..Self::default() }
    }

    /// Slots it has; a checked machine has filled the size in and bounded it.
    pub(super) fn slots(&self) -> u32 {
        match (self.kind, self.size) {
            (SwapKind::None, _) | (_, None) => 0,
            (_, Some(size)) => u32::try_from(size.0 / PAGE_SIZE).unwrap_or(u32::MAX),
        }
    }
}
