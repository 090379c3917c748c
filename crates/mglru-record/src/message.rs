//! Reads what the plugin sends.

use mglru_qemu::format::{BORN, EXEC, EXIT, FORK, MAP, MOVE, NAME, OUTSIDE, READ, UNMAP, WRITE};
use mglru_qemu::format::{CODE, HEAD_WORDS, LOAD, MAGIC, STORE};

/// Addresses of programs have 48 bits.
const MOST_BYTES: u64 = 1 << 48;

/// Names a file: device and inode; both are 0 for none.
pub(crate) type File = (u64, u64);

/// One message of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Process number on this host.
    pub(crate) process: u64,
    /// Its parent's.
    pub(crate) parent: u64,
    /// Number of the message in its process, from 0; a new program begins again.
    pub(crate) number: u64,
    words: Vec<u64>,
}

/// Something that a process did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Instructions of the process so far.
    pub(crate) time: u64,
    pub(crate) deed: Deed,
}

/// Says what it did. Addresses, offsets and lengths are bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Access { page: u64, store: bool },
    Map { start: u64, bytes: u64, file: File, offset: u64, private: bool },
    Unmap { start: u64, bytes: u64 },
    Move { start: u64, bytes: u64, to: u64, to_bytes: u64 },
    Transfer { write: bool, file: File, offset: u64, bytes: u64 },
    Name { file: File, name: String },
    Fork,
    Born,
    Exec { path: String },
    Outside { path: String },
    Exit,
}

impl Message {
    /// Reads the head. `None`: the plugin did not send this.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().expect("eight bytes"));
        let words: Vec<u64> = bytes.chunks_exact(8).map(word).collect();
        let is_whole = bytes.len() % 8 == 0 && words.len() >= HEAD_WORDS;
        (is_whole && words[0] == MAGIC).then(|| Message {
            process: words[1],
            parent: words[2],
            number: words[3],
            words,
        })
    }

    /// Lists the entries; `None` where one is cut or unknown.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Option<Entry>> {
        let mut rest = &self.words[HEAD_WORDS..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let entry = entry(&mut rest);
            if entry.is_none() {
                rest = &[];
            }
            Some(entry)
        })
    }
}

fn entry(rest: &mut &[u64]) -> Option<Entry> {
    let (head, behind) = rest.split_at_checked(2)?;
    let (time, kind, number) = (head[0], head[1] as u8, head[1] >> 8);
    *rest = behind;
    if matches!(kind, LOAD | STORE | CODE) {
        return Some(Entry { time, deed: Deed::Access { page: number, store: kind == STORE } });
    }
    let words = usize::try_from(number).ok()?.div_ceil(8);
    let (payload, behind) = rest.split_at_checked(words)?;
    *rest = behind;
    let deed = deed(kind, payload, number as usize).filter(Deed::is_possible)?;
    Some(Entry { time, deed })
}

impl Deed {
    /// False where a range is larger than any address space.
    fn is_possible(&self) -> bool {
        match *self {
            Deed::Map { bytes, .. } | Deed::Unmap { bytes, .. } | Deed::Transfer { bytes, .. } => {
                bytes <= MOST_BYTES
            }
            Deed::Move { bytes, to_bytes, .. } => bytes.max(to_bytes) <= MOST_BYTES,
            _ => true,
        }
    }
}

fn deed(kind: u8, words: &[u64], bytes: usize) -> Option<Deed> {
    Some(match (kind, words) {
        (MAP, &[start, bytes, device, inode, offset, private]) => {
            Deed::Map { start, bytes, file: (device, inode), offset, private: private != 0 }
        }
        (UNMAP, &[start, bytes]) => Deed::Unmap { start, bytes },
        (MOVE, &[start, bytes, to, to_bytes]) => Deed::Move { start, bytes, to, to_bytes },
        (READ | WRITE, &[device, inode, offset, bytes]) => {
            Deed::Transfer { write: kind == WRITE, file: (device, inode), offset, bytes }
        }
        (NAME, &[device, inode, ref name @ ..]) => {
            Deed::Name { file: (device, inode), name: text(name, bytes.checked_sub(16)?) }
        }
        (FORK, _) => Deed::Fork,
        (BORN, _) => Deed::Born,
        (EXEC, path) => Deed::Exec { path: text(path, bytes) },
        (OUTSIDE, path) => Deed::Outside { path: text(path, bytes) },
        (EXIT, _) => Deed::Exit,
        _ => return None,
    })
}

fn text(words: &[u64], len: usize) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take(len).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(entries: &[&[u64]]) -> Vec<u8> {
        let words = [&[MAGIC, 7, 6, 0], entries.concat().as_slice()].concat();
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn deeds(bytes: &[u8]) -> Vec<Option<Deed>> {
        let message = Message::read(bytes).unwrap();
        message.entries().map(|entry| Some(entry?.deed)).collect()
    }

    #[test]
    fn accesses_and_names_are_distinguished() {
        let name = u64::from_ne_bytes(*b"/mnt/fil");
        let last = u64::from_ne_bytes(*b"e\0\0\0\0\0\0\0");
        let bytes = message(&[
            &[100, 5 << 8 | u64::from(STORE)],
            &[101, 25 << 8 | u64::from(NAME), 1, 2, name, last],
            &[102, u64::from(EXIT)],
        ]);
        let file = Deed::Name { file: (1, 2), name: "/mnt/file".into() };
        let store = Deed::Access { page: 5, store: true };
        assert_eq!(deeds(&bytes), [Some(store), Some(file), Some(Deed::Exit)]);
    }

    #[test]
    fn a_cut_entry_ends_the_message() {
        let whole = message(&[&[100, 16 << 8 | u64::from(UNMAP), 4096, 8192]]);
        assert_eq!(deeds(&whole), [Some(Deed::Unmap { start: 4096, bytes: 8192 })]);
        assert_eq!(deeds(&whole[..whole.len() - 8]), [None]);
        assert_eq!(deeds(&message(&[&[100, 99]])), [None]);
    }

    #[test]
    fn what_others_send_is_no_message() {
        assert_eq!(Message::read(b""), None);
        assert_eq!(Message::read(&[0; 64]), None);
        let whole = message(&[]);
        assert_eq!(Message::read(&whole[..whole.len() - 1]), None);
    }
}
