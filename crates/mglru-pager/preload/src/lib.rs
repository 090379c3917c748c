//! What `mglru exec` preloads: shared file mappings and private anonymous memory of an unmodified
//! program become mappings of a pager within its own process, under one byte budget. A malloc
//! that asks mmap for its memory (jemalloc, which the launcher preloads too) is in it.
//!
//! The functions in `calls` stand in for the C library's. They keep what a page cache promises
//! within the process: `read` sees what was stored, `write` is seen by loads, `fsync` and `msync`
//! make both durable. Two mappings of one file share their addresses.
//!
//! Not kept, and said so: buffered streams (stdio) on a managed file read and write it behind the
//! library's back, but may go to and from managed memory; so does a signal handler that comes upon
//! its thread in one of these calls; other processes see stores when they are written back, not at
//! once; stores since the last write-back are lost when the process is killed; a forked child sees
//! managed files as they were and read-only. Private mappings of files stay with the kernel: their
//! clean pages are page cache, and stores to them are few.

mod calls;
mod candidate;
mod claim;
mod fork;
mod heap;
mod lengths;
mod locks;
mod managed;
mod memory;
mod next;
mod places;
mod settings;
mod signals;
mod start;
mod transfers;
mod vectors;
