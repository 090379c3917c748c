//! A device and the event that looks after it: requests in flight, by token, and the one pending
//! look at the device that the agenda holds.

use mglru::types::{FolioId, Nanos};
use mglru_workload::FileId;
use slab::Slab;

use crate::device::{Device, Io};

/// Names one of the machine's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskId {
    /// Names the device that holds files.
    Files,
    /// Names the device that holds swap.
    Swap,
}

/// Names the purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Reads pages of a file into the cache.
    Read {
        /// Names the file.
        file: FileId,
        /// First page.
        page: u64,
        /// Number of pages.
        pages: u32,
    },
    /// Writes back dirty pages of a file.
    Writeback {
        /// Names the file.
        file: FileId,
        /// First page.
        page: u64,
        /// Number of pages.
        pages: u32,
    },
    /// Writes a transaction to the journal.
    Commit,
    /// Reads a page from swap.
    SwapIn(FolioId),
    /// Writes a page to swap.
    SwapOut(FolioId),
}

/// Holds a device in use.
#[derive(Clone, Debug)]
pub struct Disk {
    device: Device,
    in_flight: Slab<Purpose>,
    armed: Option<Nanos>,
    latest: Nanos,
    /// Lent to the device, and kept for its capacity.
    finished: Vec<u64>,
}

impl Disk {
    /// Creates an idle device.
    pub fn new(device: Device) -> Self {
        Self { device, in_flight: Slab::new(), armed: None, latest: 0, finished: Vec::new() }
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Asks the device. `Some(ns)`: it was done on the caller's processor in that time. Tasks'
    /// clocks may differ by a quantum; the device sees them in one order.
    pub fn submit(&mut self, now: Nanos, io: Io, purpose: Purpose) -> Option<Nanos> {
        if let Some(cpu) = self.device.copy(io) {
            return Some(cpu);
        }
        self.latest = self.latest.max(now);
        let token = self.in_flight.insert(purpose) as u64;
        self.device.submit(self.latest, io, token);
        None
    }

    /// Returns the time when the agenda must look at the device, if no earlier look is on it
    /// already.
    pub fn arm(&mut self) -> Option<Nanos> {
        let next = self.device.next_event()?;
        if self.armed.is_some_and(|at| at <= next) {
            return None;
        }
        self.armed = Some(next);
        Some(next)
    }

    /// Appends the purposes of the requests that have finished by `now`, in order. A look that an
    /// earlier one made superfluous finds nothing.
    pub fn complete(&mut self, now: Nanos, out: &mut Vec<Purpose>) {
        if self.armed.is_some_and(|at| at <= now) {
            self.armed = None;
        }
        self.latest = self.latest.max(now);
        self.device.complete(now, &mut self.finished);
        let tokens = self.finished.drain(..);
        out.extend(tokens.map(|token| self.in_flight.remove(token as usize)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceSpec;
    use mglru_workload::rng::Rng;

    fn read(page: u64) -> (Io, Purpose) {
        let io = Io { write: false, lba_page: page, pages: 1 };
        (io, Purpose::Read { file: 0, page, pages: 1 })
    }

    #[test]
    fn every_request_comes_back_once() {
        let mut disk = Disk::new(Device::new(DeviceSpec::nvme(), Rng::new(1, 1)));
        for page in 0..3 {
            let (io, purpose) = read(page);
            assert_eq!(disk.submit(1000 * page, io, purpose), None);
        }
        let mut out = Vec::new();
        let mut looks = 0;
        while let Some(at) = disk.arm() {
            disk.complete(at, &mut out);
            looks += 1;
        }
        assert_eq!(out, [read(0).1, read(1).1, read(2).1]);
        assert!((1..=6).contains(&looks));
    }

    #[test]
    fn one_look_is_enough() {
        let mut disk = Disk::new(Device::new(DeviceSpec::nvme(), Rng::new(1, 1)));
        let (io, purpose) = read(0);
        disk.submit(0, io, purpose);
        assert!(disk.arm().is_some());
        disk.submit(5, io, purpose);
        assert_eq!(disk.arm(), None, "the first look will find the rest");
    }

    #[test]
    fn memory_is_copied_on_the_spot() {
        let ram = DeviceSpec::preset("ram").unwrap();
        let mut disk = Disk::new(Device::new(ram, Rng::new(1, 1)));
        let (io, purpose) = read(0);
        assert_eq!(disk.submit(0, io, purpose), Some(400));
        assert_eq!(disk.arm(), None);
    }
}
