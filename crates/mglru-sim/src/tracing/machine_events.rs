//! Emits the machine's trace events: kswapd, throttled tasks, the page cache, writeback, kills.

use mglru::host::TraceEvent;
use mglru::types::{FolioId, LruType, MemcgId, Nanos, NodeId};
use mglru::{Reclaim, Throttle};
use mglru_workload::FileId;

use super::{Pass, Who, core_events, nid};
use crate::dirty::{Pause, Reason};
use crate::machine::Machine;
use crate::spec::PAGE_SIZE;
use crate::world::World;
use crate::writeback::Load;

/// The device that files are on, and the one that swap is on, as events name them.
const FILES: &str = "259:0";

/// A group in events: the kernel prints the inode of its directory, which is 1 for the root.
fn cgroup_ino(memcg: MemcgId) -> u32 {
    memcg.0 + 1
}

/// The file's inode.
fn ino(file: FileId) -> u32 {
    file + 12
}

impl World {
    /// Traces an event of the policy.
    pub(crate) fn trace_policy(&mut self, event: &TraceEvent) {
        let now = self.now;
        if let Some(tracer) = &mut self.tracer {
            let (name, fields) = core_events::tracepoint(event);
            let who = tracer.who;
            tracer.add(now, who, name, fields);
        }
    }

    /// Traces a folio of a file that was cached or left the cache.
    #[inline]
    pub(crate) fn trace_cached(
        &mut self,
        came: bool,
        file: FileId,
        index: u64,
        folio: FolioId,
        pages: u64,
    ) {
        let name = match came {
            true => "mm_filemap_add_to_page_cache",
            false => "mm_filemap_delete_from_page_cache",
        };
        self.trace(name, || {
            let (ino, ofs, order) = (ino(file), index * PAGE_SIZE, pages.trailing_zeros());
            format!("dev {FILES} ino {ino:x} pfn=0x{:x} ofs={ofs} order={order}", folio.0)
        });
    }

    /// Traces a page that reclaim writes.
    pub(crate) fn trace_write(&mut self, folio: FolioId, lru_type: LruType) {
        self.trace("mm_vmscan_write_folio", || {
            let id = folio.0;
            format!("page={id:016x} pfn=0x{id:x} flags={}", core_events::flags(lru_type))
        });
    }

    /// Traces an allocation that wakes a node's kswapd.
    pub(crate) fn trace_wakeup(&mut self, node: NodeId) {
        let is_awake = self.tracer.as_ref().is_some_and(|t| t.awake[node.index()]);
        let by_kswapd = self.tracer.as_ref().is_some_and(|t| matches!(t.who, Who::Kswapd(_)));
        if !is_awake && !by_kswapd {
            self.trace("mm_vmscan_wakeup_kswapd", || {
                format!("nid={} order=0 gfp_flags=GFP_HIGHUSER_MOVABLE", nid(node))
            });
        }
    }

    /// Traces a node's kswapd that begins to work or goes to sleep; one that changes nothing emits
    /// no event.
    pub(crate) fn trace_kswapd(&mut self, node: NodeId, awake: bool, order: u8) {
        let Some(tracer) = &mut self.tracer else { return };
        if std::mem::replace(&mut tracer.awake[node.index()], awake) == awake {
            return;
        }
        match awake {
            true => {
                self.trace("mm_vmscan_kswapd_wake", || format!("nid={} order={order}", nid(node)))
            }
            false => self.trace("mm_vmscan_kswapd_sleep", || format!("nid={}", nid(node))),
        }
    }

    /// A reclaimer that was throttled goes on.
    pub(crate) fn trace_throttled(&mut self, who: Who, slept: &Slept) {
        let now = self.now;
        let Some(tracer) = &mut self.tracer else { return };
        let reason = match slept.reason {
            Throttle::Writeback => "VMSCAN_THROTTLE_WRITEBACK",
            Throttle::Isolated => "VMSCAN_THROTTLE_ISOLATED",
            Throttle::Noprogress => "VMSCAN_THROTTLE_NOPROGRESS",
            Throttle::Congested => "VMSCAN_THROTTLE_CONGESTED",
            Throttle::Folio(_) => return,
        };
        let (at_most, took) = (slept.at_most / 1000, now.saturating_sub(slept.since) / 1000);
        let node = nid(slept.node);
        let fields =
            format!("nid={node} usec_timeout={at_most} usect_delayed={took} reason={reason}");
        tracer.add(now, who, "mm_vmscan_throttled", fields);
    }

    /// A flusher writes pages for a reason; `None`: it has no more to do.
    pub(crate) fn trace_flusher(&mut self, memcg: MemcgId, run: Option<(Reason, u64)>) {
        let Some(tracer) = &mut self.tracer else { return };
        let before = tracer.passes[memcg.index()];
        match (before, run) {
            (Some(pass), Some((reason, pages))) if pass.reason == reason => {
                let pages = pass.pages + pages;
                tracer.passes[memcg.index()] = Some(Pass { reason, pages });
                return;
            }
            _ => tracer.passes[memcg.index()] = run.map(|(reason, pages)| Pass { reason, pages }),
        }
        if let Some(Pass { reason, pages }) = before {
            self.trace("writeback_written", || work(memcg, reason));
            self.trace("writeback_pages_written", || format!("{pages}"));
        }
        if let Some((reason, _)) = run {
            self.trace("writeback_start", || work(memcg, reason));
        }
    }

    /// Too much is dirty: the flusher is asked to write in the background.
    pub(crate) fn trace_background(&mut self, memcg: MemcgId) {
        self.trace("writeback_wake_background", || {
            format!("bdi {FILES}: cgroup_ino={}", cgroup_ino(memcg))
        });
    }

    /// A writer asks whether it must slow down. The kernel's figures for the device and its rates
    /// are 0: the model keeps its own.
    pub(crate) fn trace_balance(&mut self, memcg: MemcgId, load: Load, dirtied: u64, pause: Pause) {
        let ns = match pause {
            Pause::None => return,
            Pause::Sleep(ns) | Pause::Hold(ns) => ns,
        };
        self.trace("balance_dirty_pages", || {
            let limit = load.limits.limit;
            let (setpoint, dirty) =
                (load.limits.freerun().midpoint(limit), load.dirty + load.writeback);
            let pause = ns / 1_000_000;
            format!(
                "bdi {FILES}: limit={limit} setpoint={setpoint} dirty={dirty} bdi_setpoint=0 \
                 bdi_dirty=0 dirty_ratelimit=0 task_ratelimit=0 dirtied={dirtied} \
                 dirtied_pause=32 paused=0 pause={pause} period={pause} think=0 cgroup_ino={}",
                cgroup_ino(memcg)
            )
        });
    }
}

/// A flusher's piece of work.
fn work(memcg: MemcgId, reason: Reason) -> String {
    let name = match reason {
        Reason::Sync => "sync",
        Reason::Vmscan => "vmscan",
        Reason::Background => "background",
        Reason::Periodic => "periodic",
    };
    let (sync, kupdate) = (u8::from(reason == Reason::Sync), u8::from(reason == Reason::Periodic));
    let background = u8::from(reason == Reason::Background);
    format!(
        "bdi {FILES}: sb_dev 0:0 nr_pages=0 sync_mode={sync} kupdate={kupdate} range_cyclic=1 \
         background={background} reason={name} cgroup_ino={}",
        cgroup_ino(memcg)
    )
}

/// How a reclaimer sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slept {
    pub(crate) node: NodeId,
    pub(crate) reason: Throttle,
    pub(crate) at_most: Nanos,
    pub(crate) since: Nanos,
}

impl Slept {
    pub(crate) fn new(reclaim: &Reclaim, reason: Throttle, at_most: Nanos, since: Nanos) -> Self {
        Self { node: reclaim.throttled_on(), reason, at_most, since }
    }
}

impl Machine {
    /// An address space is killed for want of memory.
    pub(crate) fn trace_victim(&mut self, t: usize, mm: u32) {
        if self.world.tracer.is_none() {
            return;
        }
        let kib = |pages: u64| pages * (PAGE_SIZE / 1024);
        let rss = kib(self.world.spaces.footprint(mm));
        let pid = super::FIRST_PID + t as u32;
        let comm = self.world.tracer.as_ref().map_or_else(String::new, |x| x.comms[t].clone());
        self.world.trace("mark_victim", || {
            format!(
                "pid={pid} comm={comm} total-vm={rss}kB anon-rss={rss}kB file-rss:0kB \
                 shmem-rss:0kB uid=0 pgtables=0kB oom_score_adj=0"
            )
        });
    }
}
