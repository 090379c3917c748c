//! Describes devices: named presets (experiments §0.3), of which every number can be overridden.
//!
//! A preset alone is written as its name; changes as a table with `preset` and the changed keys.

use std::fmt;

use mglru::types::Nanos;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::Io;
use crate::spec::{PAGE_SIZE, SpecError, contradiction, in_range};

/// Lists the names of the presets.
pub const PRESETS: [&str; 6] = ["nvme", "ssd-net", "hdd", "ufs", "ram", "delay"];

/// Longest time a request may be given, ns: an hour.
const LONGEST: u64 = 3_600_000_000_000;
const MB: u64 = 1_000_000;
const NANOS_PER_S: u128 = 1_000_000_000;

/// Holds every parameter of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceSpec {
    /// Bounds how many requests are served at the same time; 0: any number.
    pub channels: u32,
    /// Sets the service time of a read, ns.
    pub read_ns: u64,
    /// Sets the service time of a write, ns.
    pub write_ns: u64,
    /// Sets the service time besides for each page of a request, ns.
    pub page_ns: u64,
    /// Sets the service time besides when the request does not start where the last one ended, ns.
    pub seek_ns: u64,
    /// Makes a seek take up to this much longer, evenly spread, ns.
    pub seek_spread_ns: u64,
    /// Sets the rate shared by all reads, bytes per second; 0: none.
    pub read_rate: u64,
    /// Sets the rate shared by all writes, bytes per second; 0: none.
    pub write_rate: u64,
    /// Sets how many requests are sorted by address at a time and served one by one; 0: they are
    /// served as they come.
    pub elevator_batch: u32,
    /// Sets the number of requests in flight from which on a writer of many waits; 0: it never
    /// does.
    pub queue_depth: u32,
    /// Has the submitter's processor do the work: the time is charged to the task and nothing
    /// queues.
    pub on_cpu: bool,
}

impl Default for DeviceSpec {
    fn default() -> Self {
        Self::nvme()
    }
}

impl DeviceSpec {
    /// Describes a server's flash drive.
    pub fn nvme() -> Self {
        Self {
            channels: 32,
            read_ns: 80_000,
            write_ns: 25_000,
            page_ns: 0,
            seek_ns: 0,
            seek_spread_ns: 0,
            read_rate: 3_000 * MB,
            write_rate: 1_500 * MB,
            elevator_batch: 0,
            queue_depth: 1_024,
            on_cpu: false,
        }
    }

    /// Returns a preset by its name.
    pub fn preset(name: &str) -> Option<Self> {
        let base = Self { queue_depth: 128, ..Self::nvme() };
        Some(match name {
            "nvme" => Self::nvme(),
            "ssd-net" => Self { channels: 8, ..base }.timed(600_000, 800_000, 250, 250),
            "hdd" => Self {
                channels: 1,
                seek_ns: 8_000_000,
                seek_spread_ns: 4_000_000,
                elevator_batch: 128,
                ..base
            }
            .timed(0, 0, 100, 100),
            "ufs" => Self { channels: 8, ..base }.timed(150_000, 60_000, 2_000, 1_000),
            "ram" => Self { channels: 0, page_ns: 400, queue_depth: 0, on_cpu: true, ..base }
                .timed(0, 0, 0, 0),
            "delay" => Self { channels: 0, ..base }.timed(0, 1_000_000_000, 1_000, 1_000),
            _ => return None,
        })
    }

    /// Refuses numbers no device has, under keys that start with `at`.
    pub(crate) fn check(&self, at: &str) -> Result<(), SpecError> {
        let key = |name: &str| format!("{at}.{name}");
        let times = [
            ("read_ns", self.read_ns),
            ("write_ns", self.write_ns),
            ("page_ns", self.page_ns),
            ("seek_ns", self.seek_ns),
            ("seek_spread_ns", self.seek_spread_ns),
        ];
        for (name, ns) in times {
            in_range(&key(name), ns, 0, LONGEST)?;
        }
        in_range(&key("channels"), self.channels, 0, 65_536)?;
        in_range(&key("elevator_batch"), self.elevator_batch, 0, 65_536)?;
        for (name, rate) in [("read_rate", self.read_rate), ("write_rate", self.write_rate)] {
            if rate != 0 {
                in_range(&key(name), rate, PAGE_SIZE, u64::MAX)?;
            }
        }
        if self.elevator_batch > 0 && self.channels != 1 {
            let problem = "a device with an elevator (elevator_batch > 0) has one channel";
            return contradiction(&key("channels"), self.channels, problem);
        }
        if self.elevator_batch > 0 && self.on_cpu {
            let problem = "a device with an elevator (elevator_batch > 0) is not memory";
            return contradiction(&key("on_cpu"), true, problem);
        }
        if self.elevator_batch == 0 && self.seek_ns + self.seek_spread_ns > 0 {
            let problem = "only a device with an elevator (elevator_batch > 0) seeks";
            return contradiction(&key("seek_ns"), self.seek_ns, problem);
        }
        Ok(())
    }

    fn timed(self, read_ns: u64, write_ns: u64, read_mb_s: u64, write_mb_s: u64) -> Self {
        let (read_rate, write_rate) = (read_mb_s * MB, write_mb_s * MB);
        Self { read_ns, write_ns, read_rate, write_rate, ..self }
    }

    /// Time a request holds a channel, without seeking.
    pub(super) fn service_ns(&self, io: Io) -> Nanos {
        let fixed = if io.write { self.write_ns } else { self.read_ns };
        fixed + u64::from(io.pages) * self.page_ns
    }

    /// Time a request holds the shared rate, rounded up.
    pub(super) fn transfer_ns(&self, io: Io) -> Nanos {
        let rate = if io.write { self.write_rate } else { self.read_rate };
        if rate == 0 {
            return 0;
        }
        let bytes = u128::from(io.pages) * u128::from(PAGE_SIZE);
        (bytes * NANOS_PER_S).div_ceil(u128::from(rate)) as Nanos
    }
}

/// A table of changed keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    preset: Option<String>,
    channels: Option<u32>,
    read_ns: Option<u64>,
    write_ns: Option<u64>,
    page_ns: Option<u64>,
    seek_ns: Option<u64>,
    seek_spread_ns: Option<u64>,
    read_rate: Option<u64>,
    write_rate: Option<u64>,
    elevator_batch: Option<u32>,
    queue_depth: Option<u32>,
    on_cpu: Option<bool>,
}

impl Keys {
    fn apply_to(&self, base: DeviceSpec) -> DeviceSpec {
        DeviceSpec {
            channels: self.channels.unwrap_or(base.channels),
            read_ns: self.read_ns.unwrap_or(base.read_ns),
            write_ns: self.write_ns.unwrap_or(base.write_ns),
            page_ns: self.page_ns.unwrap_or(base.page_ns),
            seek_ns: self.seek_ns.unwrap_or(base.seek_ns),
            seek_spread_ns: self.seek_spread_ns.unwrap_or(base.seek_spread_ns),
            read_rate: self.read_rate.unwrap_or(base.read_rate),
            write_rate: self.write_rate.unwrap_or(base.write_rate),
            elevator_batch: self.elevator_batch.unwrap_or(base.elevator_batch),
            queue_depth: self.queue_depth.unwrap_or(base.queue_depth),
            on_cpu: self.on_cpu.unwrap_or(base.on_cpu),
        }
    }
}

impl<'de> Deserialize<'de> for DeviceSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrKeys)
    }
}

struct NameOrKeys;

impl<'de> Visitor<'de> for NameOrKeys {
    type Value = DeviceSpec;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "the name of a device ({}) or a table of its keys", PRESETS.join(", "))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<DeviceSpec, E> {
        DeviceSpec::preset(name).ok_or_else(|| {
            let names = PRESETS.join(", ");
            E::custom(format_args!("unknown device `{name}` (known: {names})"))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DeviceSpec, A::Error> {
        let keys = Keys::deserialize(MapAccessDeserializer::new(map))?;
        let base = match keys.preset.as_deref() {
            None => DeviceSpec::default(),
            Some(name) => DeviceSpec::deserialize(StrDeserializer::new(name))?,
        };
        Ok(keys.apply_to(base))
    }
}
