//! Block devices as queueing stations (experiments §0.3).
//!
//! One protocol for all: [`Device::submit`] a request with a token, ask [`Device::next_event`] when
//! to look again, and [`Device::complete`] then hands the tokens of finished requests back. A
//! request that finishes later than foreseen (one overtook it) makes that look come up empty; the
//! caller asks for the next time and goes on.

mod elevator;
mod parallel;
mod spec;

use mglru::types::Nanos;
use mglru_workload::rng::Rng;

use self::elevator::Elevator;
use self::parallel::Parallel;
pub use self::spec::{DeviceSpec, PRESETS};

/// Counts the sectors of a page: `pgpgin` and `pgpgout` are counted in sectors and printed halved,
/// as KiB.
pub const SECTORS_PER_PAGE: u64 = 8;

/// Describes a request for neighbouring pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Says that the request is a write rather than a read.
    pub write: bool,
    /// Holds the request's address on the device, in pages.
    pub lba_page: u64,
    /// Counts the request's pages.
    pub pages: u32,
}

/// Counts the requests to a device since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Counts read requests.
    pub reads: u64,
    /// Counts write requests.
    pub writes: u64,
    /// Counts sectors read.
    pub sectors_in: u64,
    /// Counts sectors written.
    pub sectors_out: u64,
}

impl Traffic {
    fn add(&mut self, io: Io) {
        let (requests, sectors) = match io.write {
            false => (&mut self.reads, &mut self.sectors_in),
            true => (&mut self.writes, &mut self.sectors_out),
        };
        *requests += 1;
        *sectors += u64::from(io.pages) * SECTORS_PER_PAGE;
    }
}

/// Holds the state of a device at work.
#[derive(Clone, Debug)]
pub struct Device {
    spec: DeviceSpec,
    station: Station,
    traffic: Traffic,
    in_flight: u64,
}

#[derive(Clone, Debug)]
enum Station {
    Parallel(Parallel),
    Elevator(Elevator),
}

/// A request on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    io: Io,
    token: u64,
}

impl Device {
    /// Creates an idle device. `rng` is its own: nothing else may draw from it.
    pub fn new(spec: DeviceSpec, rng: Rng) -> Self {
        let station = match spec.elevator_batch {
            0 => Station::Parallel(Parallel::new(&spec)),
            _ => Station::Elevator(Elevator::new(&spec, rng)),
        };
        Self { spec, station, traffic: Traffic::default(), in_flight: 0 }
    }

    /// Describes the device.
    pub fn spec(&self) -> &DeviceSpec {
        &self.spec
    }

    /// Takes a request; its token comes back from [`Device::complete`]. Time must not run back.
    pub fn submit(&mut self, now: Nanos, io: Io, token: u64) {
        self.traffic.add(io);
        self.in_flight += 1;
        let request = Request { io, token };
        match &mut self.station {
            Station::Parallel(station) => station.submit(now, request),
            Station::Elevator(station) => station.submit(now, request),
        }
    }

    /// Returns the time of the next call of [`Device::complete`]; `None`: nothing is in flight. A
    /// time in the past means at once; a later `submit` may bring the time forward.
    pub fn next_event(&self) -> Option<Nanos> {
        match &self.station {
            Station::Parallel(station) => station.next_event(),
            Station::Elevator(station) => station.next_event(),
        }
    }

    /// Appends the tokens of the requests finished by `now`, in order of completion.
    pub fn complete(&mut self, now: Nanos, out: &mut Vec<u64>) {
        let before = out.len();
        match &mut self.station {
            Station::Parallel(station) => station.complete(now, out),
            Station::Elevator(station) => station.complete(now, out),
        }
        self.in_flight -= (out.len() - before) as u64;
    }

    /// Counts the requests submitted and not yet handed back.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Tells whether fewer requests are in flight than the request queue holds: a caller that may
    /// wait should, while this is false.
    pub fn has_room(&self) -> bool {
        self.spec.queue_depth == 0 || self.in_flight < u64::from(self.spec.queue_depth)
    }

    /// Counts the requests so far; counted at submission, as the kernel counts.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Returns the processor time of a request that the submitter's processor carries out itself,
    /// with no queue at all; `None`: the request must be submitted. Counts the traffic.
    pub fn copy(&mut self, io: Io) -> Option<Nanos> {
        self.spec.on_cpu.then(|| {
            self.traffic.add(io);
            self.spec.service_ns(io) + self.spec.transfer_ns(io)
        })
    }
}

#[cfg(test)]
mod tests;
