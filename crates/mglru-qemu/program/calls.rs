//! Watches system calls: what is mapped, which pages of files are read and written, what is run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_uint;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use crate::format as entry;
use crate::interface::Id;
use crate::lock::Lock;
use crate::{guest, run, stream};

const MAP_PRIVATE: u64 = 2;
const MAP_ANONYMOUS: u64 = 0x20;
const CURRENT: i32 = 1;

/// System calls of x86-64, by number.
mod number {
    pub const READ: i64 = 0;
    pub const WRITE: i64 = 1;
    pub const MMAP: i64 = 9;
    pub const MUNMAP: i64 = 11;
    pub const PREAD: i64 = 17;
    pub const PWRITE: i64 = 18;
    pub const READV: i64 = 19;
    pub const WRITEV: i64 = 20;
    pub const MREMAP: i64 = 25;
    pub const SENDFILE: i64 = 40;
    pub const EXECVE: i64 = 59;
    pub const PREADV: i64 = 295;
    pub const PWRITEV: i64 = 296;
    pub const COPY_FILE_RANGE: i64 = 326;
    pub const PREADV2: i64 = 327;
    pub const PWRITEV2: i64 = 328;
}
use number::*;

/// Holds what is remembered between calls.
pub struct State {
    /// Arguments of the call that a processor is in.
    waiting: BTreeMap<c_uint, [u64; 6]>,
    /// Files that were named.
    named: BTreeSet<(u64, u64)>,
}

pub static STATE: Lock<State> =
    Lock::new(State { waiting: BTreeMap::new(), named: BTreeSet::new() });

unsafe extern "C" {
    fn lseek(fd: i32, to: i64, from: i32) -> i64;
}

/// Sees a system call before it is made.
#[allow(clippy::too_many_arguments)]
pub extern "C" fn before(
    _id: Id,
    processor: c_uint,
    number: i64,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    _g: u64,
    _h: u64,
) {
    match number {
        EXECVE => run::replace(a, b, c),
        READ | WRITE | MMAP | MUNMAP | PREAD | PWRITE | READV | WRITEV | MREMAP | SENDFILE
        | PREADV | PWRITEV | COPY_FILE_RANGE | PREADV2 | PWRITEV2 => {
            STATE.with(|state| state.waiting.insert(processor, [a, b, c, d, e, f]));
        }
        _ => {}
    }
}

/// Sees what a system call returned.
pub extern "C" fn after(_id: Id, processor: c_uint, number: i64, returned: i64) {
    let Some(args) = STATE.with(|state| state.waiting.remove(&processor)) else { return };
    // The addresses -4095 to -1 are error numbers.
    if (-4095..0).contains(&returned) {
        return;
    }
    let [a, b, c, d, e, f] = args;
    let done = returned as u64;
    match number {
        MMAP => mapped(done, b, d, e as i32, f),
        MUNMAP => stream::numbers(entry::UNMAP, [a, b]),
        MREMAP => stream::numbers(entry::MOVE, [a, b, done, c]),
        READ | READV => transfer(entry::READ, a, Place::Behind, done),
        WRITE | WRITEV => transfer(entry::WRITE, a, Place::Behind, done),
        PREAD | PREADV | PREADV2 => transfer(entry::READ, a, Place::at(d), done),
        PWRITE | PWRITEV | PWRITEV2 => transfer(entry::WRITE, a, Place::at(d), done),
        SENDFILE => transfer(entry::READ, b, Place::pointed(c), done),
        COPY_FILE_RANGE => {
            transfer(entry::READ, a, Place::pointed(b), done);
            transfer(entry::WRITE, c, Place::pointed(d), done);
        }
        _ => {}
    }
}

/// Says where in a file a transfer began.
enum Place {
    /// Says that the descriptor's place is behind what was transferred.
    Behind,
    /// Says that the transfer began at this offset.
    At(u64),
    /// Says that the offset at this address is behind what was transferred.
    Pointed(u64),
}

impl Place {
    fn at(offset: u64) -> Self {
        if offset == u64::MAX { Place::Behind } else { Place::At(offset) }
    }

    fn pointed(address: u64) -> Self {
        if address == 0 { Place::Behind } else { Place::Pointed(address) }
    }

    fn begin(&self, fd: i32, done: u64) -> u64 {
        let behind = match *self {
            Place::At(offset) => return offset,
            // SAFETY: it asks for a place only.
            Place::Behind => unsafe { lseek(fd, 0, CURRENT) as u64 },
            // SAFETY: the call that just succeeded wrote to this address.
            Place::Pointed(address) => unsafe { guest::number(address) },
        };
        behind.saturating_sub(done)
    }
}

/// Tells device and inode of a regular file, and names it the first time.
fn identity(fd: i32) -> Option<(u64, u64)> {
    // SAFETY: the file is not closed when it goes, the descriptor stays the program's.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let meta = file.metadata().ok().filter(|meta| meta.is_file())?;
    let file = (meta.dev(), meta.ino());
    if STATE.with(|state| state.named.insert(file)) {
        if let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{fd}")) {
            name(file, path.as_os_str().as_bytes());
        }
    }
    Some(file)
}

fn name((device, inode): (u64, u64), path: &[u8]) {
    let numbers = [device.to_ne_bytes(), inode.to_ne_bytes()].concat();
    stream::text(entry::NAME, &[&numbers, path].concat());
}

fn transfer(kind: u8, fd: u64, place: Place, done: u64) {
    if done == 0 || fd > i32::MAX as u64 {
        return;
    }
    if let Some((device, inode)) = identity(fd as i32) {
        stream::numbers(kind, [device, inode, place.begin(fd as i32, done), done]);
    }
}

fn mapped(start: u64, bytes: u64, flags: u64, fd: i32, offset: u64) {
    let anonymous = flags & MAP_ANONYMOUS != 0;
    let (device, inode) = if anonymous { None } else { identity(fd) }.unwrap_or((0, 0));
    let private = u64::from(flags & MAP_PRIVATE != 0);
    stream::numbers(entry::MAP, [start, bytes, device, inode, offset, private]);
}

/// Says which files the loader mapped: lines of `/proc/self/maps` that were not there before.
pub fn loaded(maps: &str, before: &BTreeSet<u64>) {
    for area in maps.lines().filter_map(Area::read).filter(|area| !before.contains(&area.start)) {
        let Some(meta) = std::fs::metadata(area.path).ok().filter(|meta| meta.is_file()) else {
            continue;
        };
        let (device, inode) = (meta.dev(), meta.ino());
        if STATE.with(|state| state.named.insert((device, inode))) {
            name((device, inode), area.path.as_bytes());
        }
        let bytes = area.end - area.start;
        let start = guest::address(area.start);
        stream::numbers(entry::MAP, [start, bytes, device, inode, area.offset, 1]);
    }
}

/// Tells where the areas of `/proc/self/maps` start.
pub fn starts(maps: &str) -> BTreeSet<u64> {
    maps.lines().filter_map(|line| u64::from_str_radix(line.split_once('-')?.0, 16).ok()).collect()
}

/// A line of `/proc/self/maps` that has a path.
struct Area<'a> {
    start: u64,
    end: u64,
    offset: u64,
    path: &'a str,
}

impl<'a> Area<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let offset = rest.split(' ').nth(1)?;
        let path = &rest[rest.find('/')?..];
        Some(Area { start: number(start)?, end: number(end)?, offset: number(offset)?, path })
    }
}

/// Tells the path of the area that has an address.
pub fn path_at(maps: &str, address: u64) -> Option<&str> {
    let mut areas = maps.lines().filter_map(Area::read);
    areas.find(|area| (area.start..area.end).contains(&address)).map(|area| area.path)
}
