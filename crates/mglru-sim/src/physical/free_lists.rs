//! Free blocks, by order and migratetype: lists linked by the frame number of each block's head.

use super::{MAX_ORDER, MigrateType, Pfn};

const NONE: Pfn = Pfn::MAX;
const ORDERS: usize = MAX_ORDER as usize + 1;

#[derive(Clone, Copy, Debug)]
struct Links {
    prev: Pfn,
    next: Pfn,
}

/// All free lists of a zone.
#[derive(Clone, Debug)]
pub(super) struct FreeLists {
    links: Vec<Links>,
    heads: [[Pfn; MigrateType::ALL.len()]; ORDERS],
    blocks: [[u64; MigrateType::ALL.len()]; ORDERS],
}

impl FreeLists {
    /// No block is free.
    pub(super) fn new(pages: u32) -> Self {
        Self {
            links: vec![Links { prev: NONE, next: NONE }; pages as usize],
            heads: [[NONE; MigrateType::ALL.len()]; ORDERS],
            blocks: [[0; MigrateType::ALL.len()]; ORDERS],
        }
    }

    /// Puts a block at the head of a list.
    pub(super) fn push(&mut self, pfn: Pfn, order: u8, list: MigrateType) {
        let head = &mut self.heads[usize::from(order)][list.index()];
        let next = std::mem::replace(head, pfn);
        self.links[pfn as usize] = Links { prev: NONE, next };
        if next != NONE {
            self.links[next as usize].prev = pfn;
        }
        self.blocks[usize::from(order)][list.index()] += 1;
    }

    /// Takes a block off its list.
    pub(super) fn remove(&mut self, pfn: Pfn, order: u8, list: MigrateType) {
        let Links { prev, next } = self.links[pfn as usize];
        match prev {
            NONE => self.heads[usize::from(order)][list.index()] = next,
            _ => self.links[prev as usize].next = next,
        }
        if next != NONE {
            self.links[next as usize].prev = prev;
        }
        self.blocks[usize::from(order)][list.index()] -= 1;
    }

    /// The block at the head of a list.
    pub(super) fn first(&self, order: u8, list: MigrateType) -> Option<Pfn> {
        Some(self.heads[usize::from(order)][list.index()]).filter(|&pfn| pfn != NONE)
    }

    /// Blocks on one list.
    pub(super) fn on_list(&self, order: u8, list: MigrateType) -> u64 {
        self.blocks[usize::from(order)][list.index()]
    }

    /// Blocks of an order, of every type.
    pub(super) fn of_order(&self, order: u8) -> u64 {
        self.blocks[usize::from(order)].iter().sum()
    }

    /// The blocks of one list, from its head.
    pub(super) fn iter(&self, order: u8, list: MigrateType) -> impl Iterator<Item = Pfn> + '_ {
        let next = |&pfn: &Pfn| Some(self.links[pfn as usize].next).filter(|&p| p != NONE);
        std::iter::successors(self.first(order, list), next)
    }
}
