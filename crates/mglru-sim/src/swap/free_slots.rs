//! Which swap slots are free: those given back, and those beyond `opened` that were never used.
//!
//! zram has no places, so the slot given back last is given again: the tables stay as small as the
//! most ever used. On a device the search goes on from the last slot given, so that what is swapped
//! out together lies together; it comes round to the start, rather than open new ground, once a
//! fifth of what was opened is free, which keeps the tables within a quarter more than needed.

use super::Slot;
use crate::bit_tree::BitTree;

#[derive(Clone, Debug)]
pub(super) struct FreeSlots {
    total: u32,
    opened: u32,
    given_back: GivenBack,
}

#[derive(Clone, Debug)]
enum GivenBack {
    Anywhere(Vec<Slot>),
    InOrder { slots: BitTree, cursor: Slot },
}

impl FreeSlots {
    pub(super) fn anywhere(total: u32) -> Self {
        Self { total, opened: 0, given_back: GivenBack::Anywhere(Vec::new()) }
    }

    pub(super) fn in_order(total: u32) -> Self {
        let given_back = GivenBack::InOrder { slots: BitTree::new(), cursor: 0 };
        Self { total, opened: 0, given_back }
    }

    pub(super) fn count(&self) -> u64 {
        let given_back = match &self.given_back {
            GivenBack::Anywhere(slots) => slots.len() as u64,
            GivenBack::InOrder { slots, .. } => slots.count(),
        };
        u64::from(self.total - self.opened) + given_back
    }

    pub(super) fn take(&mut self) -> Option<Slot> {
        match &mut self.given_back {
            GivenBack::Anywhere(slots) => slots.pop().or_else(|| self.open()),
            GivenBack::InOrder { slots, cursor } => {
                let room = self.opened < self.total;
                let come_round = !room || slots.count() * 5 >= u64::from(self.opened);
                let start = || come_round.then(|| slots.next(0)).flatten();
                let found = slots.next(u64::from(*cursor)).or_else(start);
                let slot = match found {
                    Some(slot) => {
                        slots.remove(slot);
                        slot as Slot
                    }
                    None => self.open()?,
                };
                self.leave_cursor(slot + 1);
                Some(slot)
            }
        }
    }

    pub(super) fn give_back(&mut self, slot: Slot) {
        match &mut self.given_back {
            GivenBack::Anywhere(slots) => slots.push(slot),
            GivenBack::InOrder { slots, .. } => {
                slots.insert(u64::from(slot));
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.given_back {
            GivenBack::Anywhere(slots) => slots.capacity() * size_of::<Slot>(),
            GivenBack::InOrder { slots, .. } => slots.bytes(),
        }
    }

    fn open(&mut self) -> Option<Slot> {
        (self.opened < self.total).then(|| {
            self.opened += 1;
            self.opened - 1
        })
    }

    fn leave_cursor(&mut self, at: Slot) {
        if let GivenBack::InOrder { cursor, .. } = &mut self.given_back {
            *cursor = at;
        }
    }
}
