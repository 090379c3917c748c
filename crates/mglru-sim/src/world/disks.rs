//! The devices of files and of swap are asked here, and what they have finished is taken.

use super::World;
use crate::agenda::Event;
use crate::device::{Device, Io, SECTORS_PER_PAGE};
use crate::disk::{DiskId, Purpose};
use crate::spec::PAGE_SIZE;

impl World {
    /// Asks a device. `true`: it is done already, on the caller's processor.
    pub fn submit(&mut self, which: DiskId, io: Io, purpose: Purpose) -> bool {
        let disk = match which {
            DiskId::Files => &mut self.files_disk,
            DiskId::Swap => self.swap_disk.as_mut().expect("only device swap does I/O"),
        };
        if let Some(cpu) = disk.submit(self.now, io, purpose) {
            self.now += cpu;
            return true;
        }
        if let Some(at) = disk.arm() {
            self.agenda.push(at, Event::Disk(which));
        }
        false
    }

    /// Looks at a device and takes what it has finished.
    pub fn take_finished(&mut self, which: DiskId) -> Vec<Purpose> {
        let mut finished = std::mem::take(&mut self.finished);
        let disk = match which {
            DiskId::Files => &mut self.files_disk,
            DiskId::Swap => self.swap_disk.as_mut().expect("only device swap does I/O"),
        };
        disk.complete(self.now, &mut finished);
        if let Some(at) = disk.arm() {
            self.agenda.push(at, Event::Disk(which));
        }
        finished
    }

    /// Gives the buffer of [`Self::take_finished`] back.
    pub fn give_back(&mut self, mut finished: Vec<Purpose>) {
        finished.clear();
        self.finished = finished;
    }

    /// Has a write to swap been queued since the last question, and is the queue full now?
    pub(crate) fn takes_no_more_swap(&mut self) -> bool {
        std::mem::take(&mut self.swap_queued) && !self.has_swap_room()
    }

    /// Does the swap device take another request?
    pub(crate) fn has_swap_room(&self) -> bool {
        self.swap_disk.as_ref().is_none_or(|disk| disk.device().has_room())
    }

    /// Returns the device that holds files.
    pub fn files_device(&self) -> &Device {
        self.files_disk.device()
    }

    /// Counts KiB read from and written to devices, swap included, as `pgpgin` and `pgpgout` do.
    pub fn device_kib(&self) -> (u64, u64) {
        let disks = std::iter::once(&self.files_disk).chain(&self.swap_disk);
        let traffic = disks.map(|d| d.device().traffic());
        let (sectors_in, sectors_out) =
            traffic.fold((0, 0), |(i, o), t| (i + t.sectors_in, o + t.sectors_out));
        let kib = |sectors| sectors * (PAGE_SIZE / 1024) / SECTORS_PER_PAGE;
        (kib(sectors_in), kib(sectors_out))
    }
}
