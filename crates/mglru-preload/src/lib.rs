//! The library that `mglru exec` preloads: file mappings, shared and private, and private
//! anonymous memory of an unmodified program become mappings of a pager within its own process,
//! under one byte budget. A malloc that asks mmap for its memory (jemalloc, which the launcher
//! preloads too) is in it.
//!
//! The functions in `calls`, `descriptors` and others stand in for the C library's. They keep
//! what a page cache promises within the process: `read` sees what was stored, `write` is seen
//! by loads, `fsync` and `msync` make both durable. Two shared mappings of one file share their
//! addresses; the file may grow into what is mapped beyond its end. Processes that only read a
//! file may each manage it, one that writes it is alone. Files that are memory themselves
//! (tmpfs, POSIX shared memory) stay as they are.
//!
//! Where faults are signals (`--faults sigbus`), reads, writes, messages and buffered streams that
//! are given managed memory are given other memory in its place (`bounce`).
//!
//! Calls about memory (`advice`, `remap`, `locks`) answer as the kernel's do. Memory that
//! the pager sets aside counts against no limit of the program (`limits`).
//!
//! It counts and reports what stays with the kernel all the same (`unmanaged`).
//!
//! Shared mappings of files stay with the kernel unless the launcher asks for them
//! (`--manage-shared-files`). Then these are not kept, and said so: buffered streams (stdio) on a
//! managed file read and write it behind the library's back; so does a signal handler that comes
//! upon its thread in one of these calls; other processes see stores when they are written back,
//! not at once; SIGKILL loses what was stored since; a forked child sees managed files as they
//! were and read-only. Always: a forked child's private mappings are the kernel's; a private
//! mapping may not show what is written to its file after it was made; where faults are signals,
//! other calls and those that are not made through the C library (io_uring) get EFAULT where
//! managed memory is not there.

mod advice;
mod apart;
mod bounce;
mod calls;
mod candidate;
mod claim;
mod close;
mod descriptors;
mod ends;
mod fatal;
mod fork;
mod heap;
mod last;
mod lengths;
mod limits;
mod locks;
mod managed;
mod maps;
mod memory;
mod messages;
mod next;
mod places;
mod remap;
mod settings;
mod signals;
mod snapshot;
mod start;
mod streams;
mod sync;
mod table;
mod trace_events;
mod transfers;
mod unmanaged;
mod vectors;
