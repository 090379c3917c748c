//! How a simple workload reaches its pages: through a mapping, a descriptor or memory of its own.

use serde::Deserialize;

use crate::op::{
    Advice, FileSpec, GroupId, GroupSpec, Layout, Op, RegionKind, RegionSpec, TaskSpec,
};

/// Gives the size of a page in bytes.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes that one call of a program going over a file carries here.
pub(crate) const CALL_BYTES: u64 = 8 * PAGE_BYTES;

/// Tells how pages are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Maps a file, shared.
    Mmap,
    /// Maps a file, shared, advised to be accessed at random.
    MmapRandom,
    /// Reads and writes a file, buffered.
    Pread,
    /// Uses anonymous memory.
    Anon,
    /// Uses shared memory.
    Shmem,
}

impl Engine {
    /// Tells whether the engine uses memory of its own rather than a file.
    pub fn is_memory(self) -> bool {
        matches!(self, Self::Anon | Self::Shmem)
    }

    /// Adds what the engine needs to a layout: a file of `bytes` bytes, or a region of address
    /// space `mm` that is `pages` long, or both.
    pub fn declare(self, layout: &mut Layout, mm: u32, name: &str, pages: u32, bytes: u64) {
        let is_file = matches!(self, Self::Mmap | Self::MmapRandom | Self::Pread);
        if is_file {
            // A mapping must be backed to its end.
            let bytes = if self == Self::Pread { bytes } else { u64::from(pages) * PAGE_BYTES };
            layout.files.push(FileSpec { name: name.to_owned(), bytes });
        }
        let kind = match self {
            Self::Pread => return,
            Self::Anon => RegionKind::Anon,
            Self::Shmem => RegionKind::Shmem,
            Self::Mmap | Self::MmapRandom => {
                RegionKind::File { file: layout.files.len() as u32 - 1, first_page: 0 }
            }
        };
        let advice = if self == Self::MmapRandom { Advice::Random } else { Advice::Normal };
        layout.regions.push(RegionSpec { advice, ..RegionSpec::plain(mm, kind, pages) });
    }
}

/// Adds a counted task of address space `mm`, in the group of this path (empty: the root), which
/// is declared if it is new.
pub(crate) fn add_task(layout: &mut Layout, mm: u32, group: &str) {
    let group = (!group.is_empty()).then(|| group_id(layout, group));
    layout.tasks.push(TaskSpec { mm, group, node: None, background: false });
}

fn group_id(layout: &mut Layout, name: &str) -> GroupId {
    let known = layout.groups.iter().position(|group| group.name == name);
    let id = known.unwrap_or_else(|| {
        layout.groups.push(GroupSpec { name: name.to_owned(), parent: None });
        layout.groups.len() - 1
    });
    id as GroupId
}

/// The calls of a program that goes over the bytes `from..to` of a file.
pub(crate) fn calls(from: u64, to: u64, mut call: impl FnMut(u64, u32)) {
    let mut off = from;
    while off < to {
        let len = CALL_BYTES.min(to - off);
        call(off, len as u32);
        off += len;
    }
}

/// Holds a declared run of pages.
#[derive(Clone, Copy, Debug)]
pub struct Pages {
    /// Says how they are reached.
    pub engine: Engine,
    /// Numbers the region, or the file for [`Engine::Pread`].
    pub place: u32,
}

impl Pages {
    /// Appends the operations that read or write the bytes `from..to`.
    #[inline]
    pub fn access(self, from: u64, to: u64, write: bool, out: &mut Vec<Op>) {
        if self.engine == Engine::Pread {
            let (file, off, len) = (self.place, from, (to - from) as u32);
            let read = Op::Read { file, off, len };
            out.push(if write { Op::Write { file, off, len } } else { read });
            return;
        }
        for page in from / PAGE_BYTES..to.div_ceil(PAGE_BYTES) {
            out.push(Op::Touch { region: self.place, page: page as u32, write });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_touch_every_page_and_descriptors_read_once() {
        let ops = |engine| {
            let mut out = Vec::new();
            Pages { engine, place: 0 }.access(4000, 8200, false, &mut out);
            out
        };
        let touch = |page| Op::Touch { region: 0, page, write: false };
        assert_eq!(ops(Engine::Shmem), [touch(0), touch(1), touch(2)]);
        assert_eq!(ops(Engine::Pread), [Op::Read { file: 0, off: 4000, len: 4200 }]);
    }

    #[test]
    fn engines_declare_what_they_need() {
        for (engine, files, regions) in
            [(Engine::Mmap, 1, 1), (Engine::Pread, 1, 0), (Engine::Anon, 0, 1)]
        {
            let mut layout = Layout::default();
            engine.declare(&mut layout, 0, "f", 3, 9000);
            assert_eq!((layout.files.len(), layout.regions.len()), (files, regions));
        }
    }
}
