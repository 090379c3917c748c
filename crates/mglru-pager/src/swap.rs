//! Where anonymous pages go: compressed into a pool in memory, and when that is full to a file.
//! Pages of zeros take nothing; pages that do not compress are kept as they are.

mod codec;
mod drain;
mod paid;
mod pool;
mod slots;

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use mglru::MemcgId;

pub use codec::Codec;
use codec::Packed;
pub use drain::Drain;
pub use paid::PaidSwap;
use pool::Pool;
use slots::{Place, Slots};

use crate::account::Account;
use crate::pages::Slot;
use crate::sys::{PAGE, idle, raw};

mod file;
use file::LazyFile;
pub use file::{SwapFile, check, room};

/// Holds the options of a pager's swap.
#[derive(Clone, Debug, Default)]
pub struct SwapOptions {
    /// Selects how pages are compressed.
    pub codec: Codec,
    /// Bounds the bytes of the compressed pool; it is charged to the groups whose pages it holds.
    pub pool_bytes: u64,
    /// Names the folder of a file for what finds no room in the pool, and its size in bytes. The
    /// file has no name, and takes room when the first page is to go there.
    pub file: Option<(std::path::PathBuf, u64)>,
}

/// The policy asks nothing more of swap that has fewer pages left.
const LAST: u64 = 64;

/// Tells where a page that leaves memory is kept.
#[derive(Debug, PartialEq, Eq)]
pub enum Stored {
    /// Says that the page is zeros: nothing needs to be kept.
    Zeros,
    /// Says that the page is in the pool, which takes so many bytes for it.
    Pooled(Slot, u64),
    /// Holds a place in the file; the caller writes the page there.
    ToWrite(Slot),
    /// Says that swap is full.
    Full,
}

/// Tells where the content of a loaded page is.
#[derive(Debug, PartialEq, Eq)]
pub enum Loaded {
    /// Returns the page's content.
    Content,
    /// Says that the page must be read from the file, at this offset.
    ToRead(u64),
}

/// Holds the swap space of a pager.
#[derive(Debug)]
pub struct Swap {
    codec: Codec,
    file: Option<LazyFile>,
    held: Mutex<Held>,
    pool_bytes: u64,
    /// The first `memory.max` and the last, bytes, and what the pool may take now (`drain`).
    budget: [AtomicU64; 2],
    most: AtomicU64,
}

#[derive(Debug)]
struct Held {
    slots: Slots,
    pool: Pool,
    /// Charged for the unused parts of the pool's chunks, bytes.
    slack: u64,
}

impl Held {
    fn pool(&mut self, bytes: &[u8], raw: bool, payer: MemcgId) -> Option<Stored> {
        let object = self.pool.put(bytes)?;
        Some(Stored::Pooled(self.slots.add(Place::Pooled { object, raw, payer }), object.size()))
    }
}

impl Swap {
    /// Creates the swap that the options ask for; without options there is none.
    pub fn new(options: &SwapOptions) -> io::Result<Self> {
        let blocks = options.file.as_ref().map_or(Ok(0), |(_, bytes)| file::blocks(*bytes))?;
        let file = options.file.clone();
        let file = file.map(|(folder, bytes)| LazyFile::new(folder, bytes));
        let pool = Pool::new(options.pool_bytes as usize)?;
        let held = Mutex::new(Held { slots: Slots::new(blocks), pool, slack: 0 });
        let (pool_bytes, budget) = (options.pool_bytes, Default::default());
        Ok(Self {
            codec: options.codec,
            file,
            held,
            pool_bytes,
            budget,
            most: AtomicU64::new(u64::MAX),
        })
    }

    /// Returns the file that overflows go to.
    pub fn file(&self) -> Option<&SwapFile> {
        self.file.as_ref().and_then(LazyFile::get)
    }

    /// Notes that a write to the file failed.
    pub fn note_error(&self, error: &io::Error) {
        self.file.iter().for_each(|file| file.note(error));
    }

    /// Says whether it may take no more pages. The pool counts as if nothing compressed.
    pub fn is_full(&self) -> bool {
        self.free_pages() < LAST || self.file.as_ref().is_some_and(LazyFile::has_failed)
    }

    /// Says why it takes no more pages.
    pub fn why_full(&self) -> String {
        self.file.as_ref().map_or_else(|| "there is no swap file".into(), LazyFile::why_full)
    }

    /// Counts the pages that it may still take, at least: the pool counts as if nothing compressed.
    pub fn free_pages(&self) -> u64 {
        let held = self.held();
        (held.pool.room() / PAGE) as u64 + u64::from(held.slots.free_blocks())
    }

    /// Charges the root for what the pool takes beyond what its pages are charged for.
    pub fn settle_slack(&self, root: &Account) {
        let mut held = self.held();
        let (before, now) = (held.slack, held.pool.slack());
        held.slack = now;
        root.charge_anyway(now.saturating_sub(before));
        root.uncharge(before.saturating_sub(now));
    }

    /// Finds a place for a page; zeros need none.
    pub fn store(&self, page: &[u8], payer: MemcgId, scratch: &mut Vec<u8>) -> Stored {
        if codec::is_zeros(page) { Stored::Zeros } else { self.keep(page, payer, scratch) }
    }

    /// Finds a place for a page, whatever it holds. One that does not compress would take as much
    /// of the pool as it gives back: it goes to the file, as long as that has room.
    pub fn keep(&self, page: &[u8], payer: MemcgId, scratch: &mut Vec<u8>) -> Stored {
        let raw = matches!(self.codec.pack(page, scratch), Packed::Raw);
        let mut held = self.held();
        if raw || held.pool.size() >= self.most.load(Ordering::Relaxed) {
            let bytes = if raw { page } else { scratch };
            self.to_file(&mut held, page).or_else(|| held.pool(bytes, raw, payer))
        } else {
            held.pool(scratch, false, payer).or_else(|| self.to_file(&mut held, page))
        }
        .unwrap_or(Stored::Full)
    }

    fn to_file(&self, held: &mut Held, page: &[u8]) -> Option<Stored> {
        let block = self.file().and_then(|_| held.slots.take_block())?;
        let place = Place::File { block, sum: crc32fast::hash(page), state: slots::Write::Under };
        Some(Stored::ToWrite(held.slots.add(place)))
    }

    /// Brings a page back, or says where to read it. The slot stays.
    pub fn load(&self, slot: Slot, out: &mut [u8], scratch: &mut Vec<u8>) -> Loaded {
        let held = self.held();
        let (object, raw) = match held.slots.get(slot) {
            Place::Pooled { object, raw, .. } => (*object, *raw),
            Place::File { block, .. } => return Loaded::ToRead(u64::from(*block) * PAGE as u64),
        };
        if raw {
            out.copy_from_slice(held.pool.get(object));
            return Loaded::Content;
        }
        scratch.clear();
        scratch.extend_from_slice(held.pool.get(object));
        drop(held);
        self.codec.unpack(scratch, out);
        Loaded::Content
    }

    /// Loads as [`Self::load`] does, without allocating: false where that cannot be, or the page is
    /// in the file.
    pub fn load_in_place(
        &self,
        slot: Slot,
        out: &mut [u8; PAGE],
        scratch: &mut [u8; PAGE],
    ) -> bool {
        let held = self.held();
        let Place::Pooled { object, raw, .. } = held.slots.get(slot) else { return false };
        let packed = held.pool.get(*object);
        if *raw {
            out.copy_from_slice(packed);
            return true;
        }
        if self.codec != Codec::Lz4 {
            return false;
        }
        let packed = &mut scratch[..packed.len()];
        packed.copy_from_slice(held.pool.get(*object));
        drop(held);
        self.codec.unpack(packed, out);
        true
    }

    /// Reads what a slot in the file holds, and waits for it.
    ///
    /// # Errors
    /// The read failed, or as [`Self::check`].
    pub fn read(&self, slot: Slot, out: &mut [u8]) -> io::Result<()> {
        let offset = self.offset(slot).expect("the slot is in the file");
        let file = self.file().expect("there is a file");
        raw::read_all(file.as_fd(), out, offset)?;
        self.check(slot, out)
    }

    /// Checks that this is what was written to the slot's block.
    ///
    /// # Errors
    /// It is not; which block, so that it differs from a read that failed.
    pub fn check(&self, slot: Slot, page: &[u8]) -> io::Result<()> {
        match self.held().slots.get(slot) {
            Place::File { block, sum, state } if *sum != crc32fast::hash(page) => {
                let seen = match state {
                    slots::Write::Done if codec::is_zeros(page) => " (it is zeros)",
                    slots::Write::Done => "",
                    _ => " (its write is not over)",
                };
                Err(io::Error::other(format!(
                    "block {block} of the swap file does not hold what was written there{seen}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns the offset in the file where the slot's page belongs, bytes.
    pub fn offset(&self, slot: Slot) -> Option<u64> {
        match self.held().slots.get(slot) {
            Place::File { block, .. } => Some(u64::from(*block) * PAGE as u64),
            Place::Pooled { .. } => None,
        }
    }

    /// Tells whether the file does not hold the slot's page yet.
    pub fn is_being_written(&self, slot: Slot) -> bool {
        slot != 0 && self.held().slots.is_being_written(slot)
    }

    /// Notes that the write of a slot's block ended; a slot freed meanwhile is free now.
    pub fn written(&self, slot: Slot) {
        self.held().slots.written(slot);
    }

    /// Gives a slot a second owner, which frees it too.
    pub fn share(&self, slot: Slot) -> Slot {
        self.held().slots.share(slot);
        slot
    }

    /// Frees a slot. If nobody else has a share of it: the bytes of the pool that were charged.
    pub fn free(&self, slot: Slot) -> Option<u64> {
        let mut held = self.held();
        if !held.slots.unshare(slot) {
            return None;
        }
        match held.slots.free(slot) {
            Some(object) => {
                held.pool.free(object);
                Some(object.size())
            }
            None => Some(0),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        idle::lock(&self.held)
    }
}

impl SwapOptions {
    /// Compresses pages in memory only, `pool_bytes` at most.
    pub fn in_memory(pool_bytes: u64) -> Self {
        Self { pool_bytes, ..Self::default() }
    }

    /// Adds a file of `bytes` in a folder behind the pool.
    pub fn with_file_in(mut self, folder: &Path, bytes: u64) -> Self {
        self.file = Some((folder.to_path_buf(), bytes));
        self
    }
}

#[cfg(test)]
mod tests;
