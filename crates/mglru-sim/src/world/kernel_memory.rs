//! Kernel memory of groups, where it is charged: page tables, the nodes of page caches that hold
//! pages and shadows, and the buffers of what was written to ext4. It is charged whatever the
//! limits, so that the next page feels it.

use mglru::types::{FolioId, MemcgId, NodeId};
use mglru_workload::FileId;

use super::World;
use crate::page_stack::PageStack;
use crate::physical::MigrateType;
use crate::spec::{FileSystem, MachineSpec, PAGE_SIZE};
use crate::zones::Mark;

/// Counts the memory that ext4 keeps of each block that was written through the page cache, as long
/// as that is cached: 39 to a page.
const BUFFER_BYTES: u64 = 105;
/// A node of 64 slots.
pub(super) const NODE_BYTES: u64 = 576;

/// Counts the kernel memory that groups use, in bytes, and the pages that hold it.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelMemory {
    is_charged: bool,
    used: Vec<u64>,
    pages: PageStack,
    /// Files have buffers.
    buffers: bool,
    /// Bytes of the buffers of each folio.
    of_folio: Vec<u32>,
}

impl KernelMemory {
    pub(super) fn new(spec: &MachineSpec) -> Self {
        let buffers = spec.charge_kernel && spec.filesystem == FileSystem::Ext4;
        Self { is_charged: spec.charge_kernel, buffers, ..Self::default() }
    }

    pub(super) fn is_charged(&self) -> bool {
        self.is_charged
    }
}

impl World {
    /// A group uses more kernel memory.
    pub(crate) fn take_kernel(&mut self, memcg: MemcgId, bytes: u64) {
        if !self.kernel.is_charged {
            return;
        }
        let used = self.kernel_used(memcg);
        let more = pages(used + bytes) - pages(used);
        self.kernel.used[memcg.index()] = used + bytes;
        self.memcgs.charge_kernel_anyway(memcg, more);
        for _ in 0..more {
            let page = self.take_page_of(NodeId(0), Mark::None, MigrateType::Unmovable);
            if let Some(page) = page {
                self.kernel.pages.push(page);
            }
        }
    }

    /// A group uses less.
    pub(crate) fn give_kernel(&mut self, memcg: MemcgId, bytes: u64) {
        if !self.kernel.is_charged {
            return;
        }
        let used = self.kernel_used(memcg);
        let less = pages(used) - pages(used - bytes);
        self.kernel.used[memcg.index()] = used - bytes;
        self.memcgs.uncharge_kernel(memcg, less);
        for _ in 0..less {
            if let Some(page) = self.kernel.pages.pop() {
                self.put_page(page);
            }
        }
    }

    /// Charges a file's group for the nodes that its page cache has now.
    pub(crate) fn settle_nodes(&mut self, file: FileId) {
        let open = &mut self.files[file as usize];
        let Some(memcg) = open.owner else { return };
        let (had, has) = (open.nodes, open.cache.nodes());
        open.nodes = has;
        self.count_nodes(memcg, had, has);
        if has > had {
            self.take_kernel(memcg, (has - had) * NODE_BYTES);
        } else if has < had {
            self.give_kernel(memcg, (had - has) * NODE_BYTES);
        }
    }

    /// Charges a group for the buffers of a folio that is written for the first time.
    pub(crate) fn take_buffers(&mut self, memcg: MemcgId, id: FolioId, pages: u64) {
        if !self.kernel.buffers {
            return;
        }
        let of_folio = &mut self.kernel.of_folio;
        if of_folio.len() <= id.index() {
            of_folio.resize(id.index() + 1, 0);
        }
        if of_folio[id.index()] == 0 {
            of_folio[id.index()] = (pages * BUFFER_BYTES) as u32;
            self.take_kernel(memcg, pages * BUFFER_BYTES);
        }
    }

    /// The folio goes, and its buffers with it.
    pub(super) fn give_buffers(&mut self, memcg: MemcgId, id: FolioId) {
        let bytes = self.kernel.of_folio.get_mut(id.index()).map_or(0, std::mem::take);
        if bytes > 0 {
            self.give_kernel(memcg, u64::from(bytes));
        }
    }

    fn kernel_used(&mut self, memcg: MemcgId) -> u64 {
        if self.kernel.used.len() <= memcg.index() {
            self.kernel.used.resize(memcg.index() + 1, 0);
        }
        self.kernel.used[memcg.index()]
    }
}

fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_SIZE)
}
