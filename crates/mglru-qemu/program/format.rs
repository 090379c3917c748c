//! Lays out what the plugin sends: words of 64 bits in the host's byte order.
//!
//! A message is one connection: [`MAGIC`], the process, its parent, the number of the message in
//! its process, then entries. An entry is a time (instructions of the process), a word with the
//! kind in its low byte, and a payload. Of accesses the upper bits name the page, of others they
//! count the payload's bytes, which are filled up to whole words.

/// Begins each message.
pub const MAGIC: u64 = 0x6d67_6c72_7500_0001;
/// Counts the words in front of the entries.
pub const HEAD_WORDS: usize = 4;

/// Marks a load from memory.
pub const LOAD: u8 = 0;
/// Marks a store to memory.
pub const STORE: u8 = 1;
/// Instructions of this page are run for the first time.
pub const CODE: u8 = 2;
/// Marks memory that is mapped: start, bytes, device, inode (both 0 for none), offset, 1 if
/// private.
pub const MAP: u8 = 8;
/// Marks memory that is unmapped: start, bytes.
pub const UNMAP: u8 = 9;
/// Marks a mapping that moves: start, bytes, new start, new bytes.
pub const MOVE: u8 = 10;
/// Marks a read of a file: device, inode, offset, bytes.
pub const READ: u8 = 11;
/// Marks a write to a file: device, inode, offset, bytes.
pub const WRITE: u8 = 12;
/// Names a file: device, inode, the name.
pub const NAME: u8 = 13;
/// Marks a process that is about to fork.
pub const FORK: u8 = 14;
/// Marks the beginning of a process: as a copy of its parent at the last fork, or with a new
/// program.
pub const BORN: u8 = 15;
/// Marks a process that runs another program: its path.
pub const EXEC: u8 = 16;
/// Marks a process that runs a program which cannot be recorded: its path.
pub const OUTSIDE: u8 = 17;
/// Marks the end of a process.
pub const EXIT: u8 = 18;
