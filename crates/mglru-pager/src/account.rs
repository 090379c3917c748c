//! Accounts for what each group holds and may hold: hierarchical, in bytes, checked before a fault
//! returns.
//!
//! A charge of a page includes what the pager keeps for it, so that the budget bounds the pager
//! too. Names and meanings are those of cgroup v2.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use mglru::MemcgId;

use crate::faults::Faults;
use crate::pressure::Pressure;
use crate::sys::{PAGE, clock};

/// Gives the bytes a resident page costs: itself, and its folio and links in the policy's slab.
pub const PAGE_COST: u64 = PAGE as u64 + 40;
/// Means that a setting has no limit.
pub const NO_LIMIT: u64 = u64::MAX;
/// Bytes that one batch of reclaim may add to swap's pool before it frees its pages.
const RECLAIM_BYTES: u64 = 64 * PAGE as u64;
/// The free reserve is a share of the limit, within bounds: enough for a burst of faults while
/// the policy thread wakes, little enough not to be missed.
const RESERVE_SHARE: u64 = 256;
const RESERVE_BYTES: (u64, u64) = (16 * PAGE as u64, 1024 * PAGE as u64);

/// Names a limit or protection of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Holds `memory.min`, bytes.
    Min,
    /// Holds `memory.low`, bytes.
    Low,
    /// Holds `memory.high`, bytes.
    High,
    /// Holds `memory.max`, bytes.
    Max,
    /// Holds `memory.swap.max`, bytes.
    SwapMax,
}

/// Names a count of events of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Counts reclaims from the group although it was below `memory.low`.
    Low,
    /// Counts the times that the group was over `memory.high`.
    High,
    /// Counts faults that met `memory.max`.
    Max,
    /// Counts failures of reclaim to make room.
    Oom,
    /// Counts pages that found no room in swap.
    SwapFail,
    /// Counts pages that went to the compressed pool.
    Zswpout,
    /// Counts pages written to the swap file.
    Pswpout,
    /// Counts pages read back from the swap file.
    Pswpin,
    /// Counts pages of zeros, which need no swap.
    SwpoutZero,
    /// Counts warnings about faults that waited too long.
    Stuck,
}

impl Happened {
    /// Counts the kinds of events.
    pub const ALL: usize = Self::Stuck as usize + 1;
}

/// Holds the usage, limits and events of one group.
#[derive(Debug)]
pub struct Account {
    /// Holds the group's path below the root, `/` for the root itself.
    pub path: String,
    /// Names the group to the policy.
    pub memcg: MemcgId,
    /// Says that reclaim is wanted and the policy knows.
    pub wanted: AtomicBool,
    parent: Option<Arc<Account>>,
    usage: AtomicU64,
    peak: AtomicU64,
    swap: AtomicU64,
    settings: [AtomicU64; 5],
    swappiness: AtomicU8,
    events: [AtomicU64; Happened::ALL],
    /// Counts the group's faults, those of groups below it not included.
    pub faults: Faults,
    /// Counts time lost for want of memory, in the group and below.
    pub pressure: Pressure,
    /// Holds the number of the oldest eviction that belongs to the working set (`distance`).
    pub recent: AtomicU32,
    removed: AtomicBool,
}

impl Account {
    /// Creates the account of a group without limits.
    pub fn new(path: String, memcg: MemcgId, parent: Option<Arc<Self>>) -> Self {
        let settings = [0, 0, NO_LIMIT, NO_LIMIT, NO_LIMIT].map(AtomicU64::new);
        Self {
            path,
            memcg,
            wanted: AtomicBool::new(false),
            parent,
            usage: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            swap: AtomicU64::new(0),
            settings,
            swappiness: AtomicU8::new(60),
            events: Default::default(),
            faults: Faults::default(),
            pressure: Pressure::new(clock::monotonic()),
            recent: AtomicU32::new(u32::MAX),
            removed: AtomicBool::new(false),
        }
    }

    /// Removes the group; its number is not used again.
    pub fn remove(&self) {
        self.removed.store(true, Ordering::Release);
    }

    /// Tells whether the group was removed.
    pub fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    /// Tells whether this is `other` or a group below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.ancestry().any(|above| std::ptr::eq(above, other))
    }

    /// Returns the group above it.
    pub fn parent(&self) -> Option<&Arc<Self>> {
        self.parent.as_ref()
    }

    /// Adds `more` to the threads that stall in this group and those above it.
    pub fn shift_stalls(&self, more: i32) {
        let now = clock::monotonic();
        self.ancestry().for_each(|account| account.pressure.shift(now, more));
    }

    /// Lists this group and those above it.
    pub fn ancestry(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |account| account.parent.as_deref())
    }

    /// Returns `memory.current`, bytes.
    pub fn usage(&self) -> u64 {
        self.usage.load(Ordering::Relaxed)
    }

    /// Returns `memory.peak`, bytes.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Returns `memory.swap.current`, bytes.
    pub fn swap(&self) -> u64 {
        self.swap.load(Ordering::Relaxed)
    }

    /// Returns a limit or protection.
    pub fn get(&self, setting: Setting) -> u64 {
        self.settings[setting as usize].load(Ordering::Relaxed)
    }

    /// Sets a limit or protection.
    pub fn set(&self, setting: Setting, bytes: u64) {
        self.settings[setting as usize].store(bytes, Ordering::Relaxed);
    }

    /// Returns `memory.swappiness`, 0 to 200.
    pub fn swappiness(&self) -> u8 {
        self.swappiness.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn set_swappiness(&self, swappiness: u8) {
        self.swappiness.store(swappiness.min(200), Ordering::Relaxed);
    }

    /// Lists how often each event happened.
    pub fn all_events(&self) -> impl Iterator<Item = u64> + '_ {
        self.events.iter().map(|event| event.load(Ordering::Relaxed))
    }

    /// Counts an event and returns how often it happened before.
    pub fn note(&self, what: Happened) -> u64 {
        self.events[what as usize].fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the room left for pages of faults below this group's own `memory.max`, bytes.
    pub fn room(&self) -> u64 {
        self.fault_max().saturating_sub(self.usage())
    }

    /// The part that faults may fill: the rest is for reclaim, which packs pages before it frees
    /// them.
    fn fault_max(&self) -> u64 {
        let max = self.get(Setting::Max);
        if max == NO_LIMIT { NO_LIMIT } else { max - RECLAIM_BYTES.min(max / 16) }
    }

    /// Charges a fault's page to the group and all above it, or to none.
    ///
    /// # Errors
    /// The group that is full.
    pub fn try_charge(&self, bytes: u64) -> Result<(), &Self> {
        for account in self.ancestry() {
            let most = account.fault_max();
            let fits = |usage: u64| usage.checked_add(bytes).filter(|&after| after <= most);
            if account.usage.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_err() {
                for below in self.ancestry().take_while(|below| !std::ptr::eq(*below, account)) {
                    below.usage.fetch_sub(bytes, Ordering::AcqRel);
                }
                return Err(account);
            }
        }
        self.note_peaks();
        Ok(())
    }

    /// Charges whatever the limits: what is already in use.
    pub fn charge_anyway(&self, bytes: u64) {
        for account in self.ancestry() {
            account.usage.fetch_add(bytes, Ordering::AcqRel);
        }
        self.note_peaks();
    }

    /// Charges what reclaim needs to bring usage down, where `memory.max` is exceeded already: a
    /// lower one would never be reached otherwise.
    pub fn charge_over(&self, bytes: u64) -> bool {
        let over = self.usage() > self.get(Setting::Max);
        if over {
            self.charge_anyway(bytes);
        }
        over
    }

    fn note_peaks(&self) {
        for account in self.ancestry() {
            account.peak.fetch_max(account.usage(), Ordering::Relaxed);
        }
    }

    /// Gives back what was charged.
    pub fn uncharge(&self, bytes: u64) {
        for account in self.ancestry() {
            account.usage.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Charges a page to swap, if no group has its `memory.swap.max` full.
    pub fn try_charge_swap(&self) -> bool {
        let bytes = PAGE as u64;
        if self.swap_room() < bytes {
            return false;
        }
        for account in self.ancestry() {
            account.swap.fetch_add(bytes, Ordering::AcqRel);
        }
        true
    }

    /// Uncharges a page that leaves swap.
    pub fn uncharge_swap(&self) {
        for account in self.ancestry() {
            account.swap.fetch_sub(PAGE as u64, Ordering::AcqRel);
        }
    }

    /// Counts the bytes that the group may still put into swap.
    pub fn swap_room(&self) -> u64 {
        let room = |a: &Self| a.get(Setting::SwapMax).saturating_sub(a.swap());
        self.ancestry().map(room).min().unwrap_or(0)
    }

    /// Returns the bytes to keep free below `memory.max`: where reclaim begins, and where it ends.
    pub fn reserve(&self) -> (u64, u64) {
        let (least, most) = RESERVE_BYTES;
        let max = self.fault_max();
        let low = (max / RESERVE_SHARE).clamp(least, most).min(max / 4);
        // A burst of evictions is short: it takes a processor that a fault may want.
        (low, low + (low / 4).max(least).min(low / 2))
    }

    /// Returns the usage from which on reclaim works in the background, bytes.
    pub fn background_from(&self) -> u64 {
        let max = self.fault_max();
        let below_max = if max == NO_LIMIT { NO_LIMIT } else { max - self.reserve().0 };
        below_max.min(self.get(Setting::High))
    }

    /// Tells whether there is room for pages that nobody asked for.
    pub fn has_plenty(&self) -> bool {
        self.ancestry().all(|account| account.usage() + PAGE_COST <= account.background_from())
    }

    /// Returns the usage at which background reclaim stops again, bytes.
    pub fn background_until(&self) -> u64 {
        let max = self.fault_max();
        let below_max = if max == NO_LIMIT { NO_LIMIT } else { max - self.reserve().1 };
        below_max.min(self.get(Setting::High))
    }
}

#[cfg(test)]
mod tests;
