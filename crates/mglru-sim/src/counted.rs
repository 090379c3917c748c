//! Counters of the whole machine: name, meaning, and where each is read. Lists of counters that
//! people read are made from this table, so that none can be missing.

use mglru::Counter;
use mglru::types::Nanos;

use crate::machine::Machine;
use crate::outcome::Figures;
use crate::world::Frames;

/// Counts events of machines of 7.1 and 7.2 with the multi-gen LRU alone.
const NODES: (&str, &str) =
    ("workingset_nodereclaim", "Counts nodes of shadows that reclaim freed");
/// Counts only where a workload gives commands.
const REFUSED: (&str, &str) =
    ("refused_commands", "Counts commands of a workload that were refused");

type Row = (&'static str, &'static str, fn(&Machine) -> u64);
type FrameRow = (&'static str, &'static str, fn(&Frames) -> u64);

/// Every machine has these.
const MACHINE: &[Row] = &[
    ("pgpgin", "Counts KiB read from devices", |m| m.world.device_kib().0),
    ("pgpgout", "Counts KiB written to devices", |m| m.world.device_kib().1),
    ("dev_in", "Counts KiB read from the device of files", |m| {
        kib(m.world.files_device().traffic().sectors_in)
    }),
    ("dev_out", "Counts KiB written to the device of files", |m| {
        kib(m.world.files_device().traffic().sectors_out)
    }),
    ("pswpin", "Counts pages swapped in", |m| m.world.swap.counters().pswpin),
    ("pswpout", "Counts pages swapped out", |m| m.world.swap.counters().pswpout),
    ("swpin_zero", "Counts pages of zeros swapped in, without I/O", |m| {
        m.world.swap.counters().swpin_zero
    }),
    ("swpout_zero", "Counts pages of zeros swapped out, without I/O", |m| {
        m.world.swap.counters().swpout_zero
    }),
    ("pgfault", "Counts page faults", |m| m.world.events.pgfault),
    ("pgmajfault", "Counts faults that needed I/O", |m| m.world.events.pgmajfault),
    ("pgalloc", "Counts pages allocated", |m| m.world.events.pgalloc),
    ("pgfree", "Counts pages given back", |m| m.world.events.pgfree),
    ("readahead_pages", "Counts pages brought in by readahead beyond those asked for", |m| {
        m.world.events.readahead_pages
    }),
    ("nr_free_pages", "Shows free pages now", |m| m.world.zones.free_pages()),
    ("nr_dirty", "Shows dirty pages of files now", |m| m.dirty_pages()),
    ("nr_writeback", "Shows pages under writeback now", |m| m.world.writeback.all_under_way()),
    ("nr_dirtied", "Counts pages dirtied", |m| m.world.writeback.nr_dirtied),
    ("nr_written", "Counts pages written back", |m| m.world.writeback.nr_written),
    ("dirty_paused_us", "Sums the time that writers paused for dirty limits, µs", |m| {
        us(m.world.writeback.paused)
    }),
    ("oom_kill", "Counts tasks killed for want of memory", |m| m.oom_kills),
    ("system_us", "Sums processor time spent in the kernel, µs", |m| us(m.world.system_ns)),
    ("reclaim_us", "Sums the time that tasks spent in reclaim, µs", |m| us(m.reclaim_ns)),
    ("kswapd_us", "Sums processor time of kswapd, µs", |m| {
        us(m.kswapds.iter().map(|k| k.spent).sum())
    }),
    ("lru_lock_wait_us", "Sums the time spent waiting for locks of lruvecs, µs", |m| {
        us(m.locks.waited)
    }),
    ("lru_lock_holds", "Counts holds of these locks in which folios were handled", |m| {
        m.locks.holds
    }),
    ("lru_lock_held_folios", "Counts folios handled in them", |m| m.locks.held_folios),
    ("lru_lock_held_max", "Shows the most folios handled in one hold", |m| m.locks.held_max),
    ("reclaim_requests_short", "Counts requests to `memory.reclaim` that fell short", |m| {
        m.short_requests
    }),
    ("zram_pool_pages", "Shows pages that zram holds for what is compressed", |m| {
        m.world.pool_pages()
    }),
];

/// Machines with page frames have these too.
const FRAMES: &[FrameRow] = &[
    ("compact_stall", "Counts the times that a task compacted before it was given a block", |f| {
        f.stalls[0]
    }),
    ("compact_success", "Counts the times that it got a block", |f| f.stalls[1]),
    ("compact_fail", "Counts the times that it got none", |f| f.stalls[0] - f.stalls[1]),
    ("compact_migrate_scanned", "Counts pages that compaction looked at to move", |f| {
        f.compaction.tally.migrate_scanned
    }),
    ("compact_free_scanned", "Counts pages that compaction looked at to move to", |f| {
        f.compaction.tally.free_scanned
    }),
    ("compact_isolated", "Counts pages that compaction isolated", |f| f.compaction.tally.isolated),
    ("compact_pages_moved", "Counts pages that compaction moved", |f| f.compaction.tally.moved),
    ("compact_pagemigrate_failed", "Counts pages that it put back", |f| {
        f.compaction.tally.put_back
    }),
];

fn kib(sectors: u64) -> u64 {
    sectors / 2
}

fn us(time: Nanos) -> u64 {
    time / 1_000
}

/// Lists all counters that a machine may have, with what each counts; pages unless it says
/// otherwise.
pub fn described() -> impl Iterator<Item = (&'static str, &'static str)> {
    let machine = MACHINE.iter().map(|(name, about, _)| (*name, *about));
    let policy = Counter::ALL.iter().map(|counter| (counter.name(), counter.about()));
    let frames = FRAMES.iter().map(|(name, about, _)| (*name, *about));
    machine.chain([NODES, REFUSED]).chain(policy).chain(frames)
}

impl Machine {
    /// Reads the counters of the whole machine.
    pub(crate) fn machine_counters(&self) -> Figures {
        let mut counters: Figures =
            MACHINE.iter().map(|(name, _, read)| (*name, read(self))).collect();
        if self.world.blind_shadow_limit {
            counters.push((NODES.0, self.world.nodes_dropped));
        }
        if self.refused_commands > 0 {
            counters.push((REFUSED.0, self.refused_commands));
        }
        counters.extend(self.lru.counters().iter());
        let frames = self.world.frames.iter();
        counters.extend(frames.flat_map(|f| FRAMES.iter().map(|(name, _, read)| (*name, read(f)))));
        counters
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_counter_is_described_once_with_or_without_a_final_full_stop() {
        let names: Vec<&str> = described().map(|(name, _)| name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(described().all(|(_, about)| about.len() > 8), "{names:?}");
    }
}
