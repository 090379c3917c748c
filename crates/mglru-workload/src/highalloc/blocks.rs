//! Tracks the file system's own blocks that change when a build writes objects: the maps of free
//! blocks, inode tables, directories, and the block that says where an object lies, which any file
//! of more than twelve blocks has.

use crate::op::{FileId, Op};
use crate::pages::PAGE_BYTES;

/// Pages of an object (experiments E9).
const OBJECT_PAGES: u64 = 30;
/// Files made with each: the command that made it, and what it depends on.
const FILES_PER_OBJECT: u64 = 3;
/// Bytes of an inode.
const INODE_BYTES: u64 = 256;
const INODES_PER_PAGE: u64 = PAGE_BYTES / INODE_BYTES;
/// Objects of a directory.
const OBJECTS_PER_DIRECTORY: u64 = 10;
/// Blocks whose use one page of the map says: a bit each.
const BLOCKS_PER_MAP: u64 = 8 * PAGE_BYTES;

const OBJECTS: u64 = super::TREE_PAGES / OBJECT_PAGES + 1;
const INODES: u64 = super::TREE_PAGES / BLOCKS_PER_MAP + 1;
const DIRECTORIES: u64 = INODES + OBJECTS * FILES_PER_OBJECT / INODES_PER_PAGE + 1;
const INDIRECT: u64 = DIRECTORIES + OBJECTS / OBJECTS_PER_DIRECTORY + 1;
/// The file system's own pages that go with one tree.
pub(super) const TREE_BLOCKS: u64 = INDIRECT + OBJECTS;

/// Changes when a build's objects have grown from page `from` to page `to`.
pub(super) fn changes(file: FileId, build: u32, from: u64, to: u64, ops: &mut Vec<Op>) {
    let start = u64::from(build) * TREE_BLOCKS;
    let mut change = |page: u64, bytes: u64| {
        let off = (start + page) * PAGE_BYTES;
        ops.push(Op::Write { file, off, len: bytes as u32 });
    };
    for object in from.div_ceil(OBJECT_PAGES)..to.div_ceil(OBJECT_PAGES) {
        change(object * OBJECT_PAGES / BLOCKS_PER_MAP, 4);
        change(INODES + object * FILES_PER_OBJECT / INODES_PER_PAGE, INODE_BYTES);
        change(DIRECTORIES + object / OBJECTS_PER_DIRECTORY, 64);
        change(INDIRECT + object, PAGE_BYTES);
    }
}
