//! Tells which accesses are kept: of each page one a window of instructions, and its first store.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::format::{CODE, LOAD, STORE};
use crate::qemu::Access;
use crate::{QEMU, stream};

/// Log2 of a page's bytes.
const PAGE_SHIFT: u32 = 12;
const PAGE: u64 = 1 << PAGE_SHIFT;
/// Pages of the address space of a program on x86-64: 47 bits of address.
const PAGES: usize = 1 << (47 - PAGE_SHIFT);
/// An access is at most this long, bytes.
const LONGEST: u64 = 64;

const PROT_READ_WRITE: i32 = 3;
const MAP_PRIVATE_ANONYMOUS_NORESERVE: i32 = 0x4022;

/// Instructions so far. Threads add to it without a lock: with several it runs slow.
pub static NOW: AtomicU64 = AtomicU64::new(0);
/// Log2 of the instructions of a window.
static WINDOW: AtomicU32 = AtomicU32::new(0);
/// A word for each page: twice the window that saw it last, and 1 if it saw a store.
static SEEN: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" {
    fn mmap(at: *mut c_void, len: usize, prot: i32, flags: i32, fd: i32, from: i64) -> *mut c_void;
}

/// Begins at an instruction. False: there is no address space for the table.
pub fn begin(now: u64, window: u32) -> bool {
    NOW.store(now, Relaxed);
    WINDOW.store(window, Relaxed);
    // SAFETY: new memory is mapped, wherever there is room.
    let table = unsafe {
        let len = PAGES * size_of::<AtomicU32>();
        let null = std::ptr::null_mut();
        mmap(null, len, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS_NORESERVE, -1, 0)
    };
    SEEN.store(table.cast(), Relaxed);
    table as isize != -1
}

/// Sees a load.
pub extern "C" fn load(_processor: c_uint, access: Access, address: u64, _: *mut c_void) {
    access_at::<LOAD>(access, address);
}

/// Sees a store.
pub extern "C" fn store(_processor: c_uint, access: Access, address: u64, _: *mut c_void) {
    access_at::<STORE>(access, address);
}

fn access_at<const KIND: u8>(access: Access, address: u64) {
    page_at::<KIND>(address >> PAGE_SHIFT);
    if address % PAGE > PAGE - LONGEST {
        let last = address + (1 << size_shift(access)) - 1;
        if last / PAGE != address / PAGE {
            page_at::<KIND>(last >> PAGE_SHIFT);
        }
    }
}

fn size_shift(access: Access) -> u32 {
    // SAFETY: QEMU gave the description for this call.
    QEMU.get().map_or(0, |qemu| unsafe { (qemu.size)(access) })
}

#[inline(always)]
fn page_at<const KIND: u8>(page: u64) {
    if page >= PAGES as u64 {
        return;
    }
    // SAFETY: the table has a word for each page below `PAGES`.
    let seen = unsafe { &*SEEN.load(Relaxed).add(page as usize) };
    let window = ((NOW.load(Relaxed) >> WINDOW.load(Relaxed)) as u32).wrapping_add(1) << 1;
    let before = seen.load(Relaxed);
    let known = if KIND == STORE { before == window | 1 } else { before & !1 == window };
    if !known {
        seen.store(window | u32::from(KIND == STORE), Relaxed);
        stream::access(page, KIND);
    }
}

/// Sees the instructions of a page that are run for the first time.
pub fn code(address: u64) {
    stream::access(address >> PAGE_SHIFT, CODE);
}
