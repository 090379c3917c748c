//! userfaultfd's requests, structures and flags, as the kernel defines them.

use super::uffd::Span;

pub const API: u64 = 0xAA;
pub const IOC_NEW: libc::c_ulong = 0xAA00;
pub const IOC_API: libc::c_ulong = 0xC018_AA3F;
pub const IOC_REGISTER: libc::c_ulong = 0xC020_AA00;
pub const IOC_UNREGISTER: libc::c_ulong = 0x8010_AA01;
pub const IOC_WAKE: libc::c_ulong = 0x8010_AA02;
pub const IOC_COPY: libc::c_ulong = 0xC028_AA03;
pub const IOC_WRITEPROTECT: libc::c_ulong = 0xC018_AA06;
pub const IOC_POISON: libc::c_ulong = 0xC020_AA08;
pub const IOC_RWPROTECT: libc::c_ulong = 0xC018_AA09;

pub const REGISTER_MISSING: u64 = 1;
pub const REGISTER_WP: u64 = 2;
pub const REGISTER_RWP: u64 = 8;
pub const COPY_WP: u64 = 2;
pub const PROTECT: u64 = 1;
pub const UNPROTECT_DONT_WAKE: u64 = 2;
pub const USER_MODE_ONLY: libc::c_int = 1;

pub const EVENT_PAGEFAULT: u8 = 0x12;
pub const FLAG_WRITE: u64 = 1;

pub const IOC_MOVE: libc::c_ulong = 0xC028_AA05;
pub const EVENT_FORK: u8 = 0x13;
pub const EVENT_REMOVE: u8 = 0x15;
pub const EVENT_UNMAP: u8 = 0x16;
pub const FLAG_WP: u64 = 2;

#[repr(C)]
pub struct ApiArg {
    pub api: u64,
    pub features: u64,
    pub ioctls: u64,
}

#[repr(C)]
pub struct RegisterArg {
    pub span: Span,
    pub mode: u64,
    pub ioctls: u64,
}

#[repr(C)]
pub struct CopyArg {
    pub dst: u64,
    pub src: u64,
    pub len: u64,
    pub mode: u64,
    pub copied: i64,
}

#[repr(C)]
pub struct ProtectArg {
    pub span: Span,
    pub mode: u64,
}

#[repr(C)]
pub struct PoisonArg {
    pub span: Span,
    pub mode: u64,
    pub updated: i64,
}

#[repr(C)]
pub struct MoveArg {
    pub dst: u64,
    pub src: u64,
    pub len: u64,
    pub mode: u64,
    pub moved: i64,
}
