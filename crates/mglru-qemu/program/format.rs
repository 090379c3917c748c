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

/// The program reads memory.
pub const LOAD: u8 = 0;
/// The program writes memory.
pub const STORE: u8 = 1;
/// Instructions of this page are run for the first time.
pub const CODE: u8 = 2;
/// Memory is mapped: start, bytes, device, inode (both 0 for none), offset, 1 if private.
pub const MAP: u8 = 8;
/// Memory is unmapped: start, bytes.
pub const UNMAP: u8 = 9;
/// A mapping moves: start, bytes, new start, new bytes.
pub const MOVE: u8 = 10;
/// A file is read: device, inode, offset, bytes.
pub const READ: u8 = 11;
/// A file is written: device, inode, offset, bytes.
pub const WRITE: u8 = 12;
/// A file has a name: device, inode, the name.
pub const NAME: u8 = 13;
/// The process is about to fork.
pub const FORK: u8 = 14;
/// The process begins: as a copy of its parent at the last fork, or with a new program.
pub const BORN: u8 = 15;
/// The process runs another program: its path.
pub const EXEC: u8 = 16;
/// The process runs a program that cannot be recorded: its path.
pub const OUTSIDE: u8 = 17;
/// The process ends.
pub const EXIT: u8 = 18;
