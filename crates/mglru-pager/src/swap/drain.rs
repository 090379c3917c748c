//! A smaller budget has no room for the pool of a larger one: the pool keeps its share of the
//! budget, and what it holds beyond that goes on to the file.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use mglru::MemcgId;

use super::slots::{Place, Write};
use super::{Held, Swap};
use crate::account::NO_LIMIT;
use crate::pages::Slot;
use crate::sys::direct::Buffer;
use crate::sys::{PAGE, raw};

/// Pages that are moved at once.
const BATCH: usize = 32;

/// Holds pages on their way from the pool to the file.
pub struct Drain {
    pages: Buffer,
    scratch: Vec<u8>,
    /// Where to look for the next one.
    hand: Slot,
}

impl Drain {
    /// Creates an empty one.
    pub fn new() -> io::Result<Self> {
        Ok(Self { pages: Buffer::new(BATCH * PAGE)?, scratch: Vec::new(), hand: 0 })
    }
}

impl Swap {
    /// Takes note of `memory.max`. The first is the one that the pool's size was chosen for.
    pub fn fit_pool(&self, max: u64) {
        let [first, last] = &self.budget;
        if last.swap(max, Ordering::Relaxed) == max {
            return;
        }
        let chosen_for = first.load(Ordering::Relaxed);
        if chosen_for == 0 {
            first.store(max, Ordering::Relaxed);
        } else {
            let most = share(self.pool_bytes, max, chosen_for);
            self.most.store(most, Ordering::Relaxed);
        }
    }

    /// Tells whether the pool holds more than its share and there is a file for the rest.
    pub fn is_over_share(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        let has_file = self.file.as_ref().is_some_and(|file| !file.has_failed());
        self.pool_bytes > most && has_file && self.held().pool.size() > most
    }

    /// Moves pages on while the pool has more than its share and the file has room: how many bytes
    /// of the pool each group need not pay for any more. Faults wait meanwhile.
    pub fn drain(&self, drain: &mut Drain) -> Vec<(MemcgId, u64)> {
        let mut held = self.held();
        let fits = held.pool.size() <= self.most.load(Ordering::Relaxed);
        let file = self.file.as_ref().filter(|file| !fits && !file.has_failed());
        let Some((lazy, file)) = file.and_then(|lazy| Some((lazy, lazy.get()?))) else {
            return Vec::new();
        };
        let moves = self.unpack(&mut held, drain);
        let (mut at, mut freed) = (0, Vec::new());
        for run in moves.chunk_by(|a, b| a.1 + 1 == b.1) {
            let bytes = &drain.pages[at * PAGE..][..run.len() * PAGE];
            let wrote = raw::write_all(file.as_fd(), bytes, u64::from(run[0].1) * PAGE as u64);
            at += run.len();
            match wrote {
                Ok(()) => {
                    let pages = run.iter().zip(bytes.chunks(PAGE));
                    freed.extend(pages.map(|(&to, page)| held.move_one(to, page)));
                }
                Err(error) => {
                    lazy.note(&error);
                    run.iter().for_each(|&(_, block)| held.slots.give_back_block(block));
                }
            }
        }
        freed
    }

    /// Fills the buffer with pages of the pool and finds each a block.
    fn unpack(&self, held: &mut Held, drain: &mut Drain) -> Vec<(Slot, u32)> {
        let Drain { pages, scratch, hand } = drain;
        let pooled = |&(_, place): &(Slot, Place)| matches!(place, Place::Pooled { .. });
        let mut found: Vec<_> = held.slots.taken(*hand).filter(pooled).take(BATCH).collect();
        if found.is_empty() {
            found.extend(held.slots.taken(0).filter(pooled).take(BATCH));
        }
        *hand = found.last().map_or(0, |(slot, _)| slot + 1);
        let mut moves = Vec::new();
        for (nth, (slot, place)) in found.drain(..).enumerate() {
            let Some(block) = held.slots.take_block() else { break };
            let Place::Pooled { object, raw, .. } = place else { unreachable!("it is pooled") };
            let page = &mut pages[nth * PAGE..][..PAGE];
            if raw {
                page.copy_from_slice(held.pool.get(object));
            } else {
                scratch.clear();
                scratch.extend_from_slice(held.pool.get(object));
                self.codec.unpack(scratch, page);
            }
            moves.push((slot, block));
        }
        moves
    }
}

impl Held {
    /// The slot's page is in its block now: returns the group that pays no more, and how much.
    fn move_one(&mut self, (slot, block): (Slot, u32), page: &[u8]) -> (MemcgId, u64) {
        let &Place::Pooled { object, payer, .. } = self.slots.get(slot) else {
            unreachable!("the lock was held since it was found there")
        };
        let sum = crc32fast::hash(page);
        self.slots.replace(slot, Place::File { block, sum, state: Write::Done });
        self.pool.free(object);
        (payer, object.size())
    }
}

/// The share of a pool under a limit.
fn share(pool: u64, max: u64, chosen_for: u64) -> u64 {
    if max >= chosen_for || chosen_for == NO_LIMIT {
        return NO_LIMIT;
    }
    (u128::from(pool) * u128::from(max) / u128::from(chosen_for)) as u64
}

#[cfg(test)]
mod tests {
    use super::super::{Loaded, Stored, SwapOptions};
    use super::*;

    fn page(n: u32) -> Vec<u8> {
        let mut page = vec![n as u8; PAGE];
        // Half of it does not pack.
        let mut x = n * 2 + 1;
        for byte in &mut page[..PAGE / 2] {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            *byte = x as u8;
        }
        page
    }

    #[test]
    fn a_pool_keeps_its_share_of_a_smaller_budget_and_every_page() {
        let folder = tempfile::tempdir().unwrap();
        let options = SwapOptions::in_memory(1 << 20).with_file_in(folder.path(), 1 << 20);
        let swap = Swap::new(&options).unwrap();
        let mut drain = Drain::new().unwrap();
        swap.fit_pool(4 << 20);
        let (mut scratch, mut out) = (Vec::new(), Buffer::new(PAGE).unwrap());
        let mut slots = Vec::new();
        for n in 0..200 {
            match swap.store(&page(n), MemcgId(n % 3), &mut scratch) {
                Stored::Pooled(slot, _) => slots.push(slot),
                other => panic!("{other:?}"),
            }
        }
        swap.free(slots.remove(7));
        assert!(swap.drain(&mut drain).is_empty(), "the pool is within its share");
        swap.fit_pool(1 << 20);
        let mut freed = 0;
        while let some @ [_, ..] = &*swap.drain(&mut drain) {
            freed += some.iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
        let left = swap.held().pool.size();
        assert!(left <= 256 << 10 && freed > 150 << 10, "{left} {freed}");
        for (&slot, n) in slots.iter().zip((0..200).filter(|n| *n != 7)) {
            if let Loaded::ToRead(_) = swap.load(slot, &mut out, &mut scratch) {
                swap.read(slot, &mut out).unwrap();
            }
            assert!(*out == page(n), "page {n}");
        }
        let next = swap.store(&page(1), MemcgId(0), &mut scratch);
        assert!(matches!(next, Stored::Pooled(..) | Stored::ToWrite(_)));
        swap.fit_pool(4 << 20);
        assert!(!swap.is_over_share());
    }

    #[test]
    fn a_pool_stays_as_it_is_once_the_file_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let options = SwapOptions::in_memory(1 << 20).with_file_in(folder.path(), 1 << 20);
        let swap = Swap::new(&options).unwrap();
        swap.fit_pool(4 << 20);
        for n in 0..200 {
            swap.store(&page(n), MemcgId(0), &mut Vec::new());
        }
        swap.fit_pool(1 << 20);
        assert!(swap.is_over_share());
        swap.note_error(&io::Error::from_raw_os_error(libc::EIO));
        assert!(!swap.is_over_share());
    }
}
