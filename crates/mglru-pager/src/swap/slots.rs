//! Swap slots: names for swapped pages, 1 upwards, and the blocks of the swap file.

use std::collections::BTreeMap;

use mglru::MemcgId;

use super::pool::Object;
use crate::pages::Slot;

/// Says how far the write of a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Is under way.
    Under,
    /// Is under way, and the slot was freed meanwhile.
    Orphaned,
    /// Is done.
    Done,
}

/// Says where the page of a slot lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Lies in an object of the pool.
    Pooled {
        /// Which.
        object: Object,
        /// Kept as it was.
        raw: bool,
        /// The group that pays for it.
        payer: MemcgId,
    },
    /// Lies in a block of the file.
    File {
        /// Which.
        block: u32,
        /// Checksum of what belongs there.
        sum: u32,
        /// Its write.
        state: Write,
    },
}

/// Holds all slots.
#[derive(Debug)]
pub struct Slots {
    places: Vec<Option<Place>>,
    /// Shares of a slot beyond the first: of children of a fork. What a slot holds never changes.
    shares: BTreeMap<Slot, u32>,
    free: Vec<Slot>,
    free_blocks: Vec<u32>,
    /// Blocks that were never used.
    fresh: std::ops::Range<u32>,
}

impl Slots {
    /// Creates slots, none of them taken; the file has so many blocks.
    pub fn new(blocks: u32) -> Self {
        let (places, free, free_blocks) = (vec![None], Vec::new(), Vec::new());
        Self { places, shares: BTreeMap::new(), free, free_blocks, fresh: 0..blocks }
    }

    /// Counts the blocks nobody has.
    pub fn free_blocks(&self) -> u32 {
        self.free_blocks.len() as u32 + self.fresh.len() as u32
    }

    /// Takes a block of the file.
    pub fn take_block(&mut self) -> Option<u32> {
        self.free_blocks.pop().or_else(|| self.fresh.next())
    }

    /// Returns a block that is not needed after all.
    pub fn give_back_block(&mut self, block: u32) {
        self.free_blocks.push(block);
    }

    /// Lists the taken slots from one on, and what they stand for.
    pub fn taken(&self, from: Slot) -> impl Iterator<Item = (Slot, Place)> {
        let places = self.places.iter().enumerate().skip(from as usize);
        places.filter_map(|(slot, place)| Some((slot as Slot, (*place)?)))
    }

    /// Records that a slot's page is at another place from now on.
    pub fn replace(&mut self, slot: Slot, place: Place) {
        self.places[slot as usize] = Some(place);
    }

    /// Adds a slot for a page at this place.
    pub fn add(&mut self, place: Place) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.places[slot as usize] = Some(place);
            return slot;
        }
        self.places.push(Some(place));
        (self.places.len() - 1) as Slot
    }

    /// Tells where the page of a taken slot lies.
    pub fn get(&self, slot: Slot) -> &Place {
        self.places[slot as usize].as_ref().expect("the slot is taken")
    }

    /// Tells whether the slot's block does not hold its page yet.
    pub fn is_being_written(&self, slot: Slot) -> bool {
        let place = self.places.get(slot as usize).and_then(Option::as_ref);
        matches!(place, Some(Place::File { state: Write::Under, .. }))
    }

    /// Notes that the write of the slot's block ended.
    pub fn written(&mut self, slot: Slot) {
        let place = self.places[slot as usize].as_mut().expect("the slot is taken");
        let Place::File { state, .. } = place else { return };
        if *state == Write::Orphaned {
            *state = Write::Done;
            self.free(slot);
        } else {
            *state = Write::Done;
        }
    }

    /// Adds an owner to a slot.
    pub fn share(&mut self, slot: Slot) {
        *self.shares.entry(slot).or_default() += 1;
    }

    /// Removes an owner from a slot. True: it was the last, and the slot is to be freed.
    pub fn unshare(&mut self, slot: Slot) -> bool {
        match self.shares.get_mut(&slot) {
            None => return true,
            Some(1) => drop(self.shares.remove(&slot)),
            Some(n) => *n -= 1,
        }
        false
    }

    /// Frees a slot, later if it is being written. The pool's object that it stood for.
    pub fn free(&mut self, slot: Slot) -> Option<Object> {
        let place = self.places[slot as usize].as_mut().expect("the slot is taken");
        let object = match place {
            Place::File { state: state @ Write::Under, .. } => {
                *state = Write::Orphaned;
                return None;
            }
            Place::File { block, .. } => {
                self.free_blocks.push(*block);
                None
            }
            Place::Pooled { object, .. } => Some(*object),
        };
        self.places[slot as usize] = None;
        self.free.push(slot);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_slots_are_listed_from_one_on() {
        let mut slots = Slots::new(8);
        let place = |block| Place::File { block, sum: 0, state: Write::Done };
        let [first, second, third] = [1, 2, 3].map(|block| slots.add(place(block)));
        slots.free(second);
        let from = |slot| slots.taken(slot).map(|(slot, _)| slot).collect::<Vec<_>>();
        assert_eq!((from(0), from(second)), (vec![first, third], vec![third]));
        assert!(from(third + 9).is_empty());
    }
}
