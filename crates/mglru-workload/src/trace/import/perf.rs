//! Text of `perf script` and of ftrace: page faults with their addresses (`-F +addr`, or the
//! tracepoint `exceptions:page_fault_user`), loads and stores that were sampled (`perf mem`), and
//! of files either reads (`filemap:mm_filemap_get_pages`) or pages that enter the page cache
//! (`filemap:mm_filemap_add_to_page_cache`), and pages that become dirty
//! (`writeback:writeback_dirty_folio`). Other events are passed over.

use super::fields::{Spaces, hexadecimal, number, time, words};
use super::{Found, Parser};
use crate::trace::event::{Event, Head, Operation, TimeUnit};
use crate::trace::record::PAGE_SHIFT;

const NANOSECONDS: u64 = 1_000_000_000;
/// Digits of an address in a call chain.
const ADDRESS_DIGITS: usize = 4;
/// Largest order of pages that a file's folio may have.
const ORDER_MAX: u64 = 20;

/// Tells processes and files apart.
#[derive(Default)]
pub(super) struct Perf {
    spaces: Spaces,
}

impl Parser for Perf {
    fn head(&self) -> Head {
        Head { page_shift: PAGE_SHIFT as u8, time: TimeUnit::Nanosecond, spaces: true }
    }

    fn line(&mut self, line: &[u8], found: &mut Found) -> Result<(), String> {
        let fields: Vec<&[u8]> = words(line).collect();
        if line.starts_with(b"CPU:") && line.ends_with(b"EVENTS]") {
            // ftrace says here that it lost some.
            return Ok(());
        }
        let Some((at, when)) = when(&fields) else {
            let is_chain = line.starts_with(b" ") || line.starts_with(b"\t");
            let is_address =
                |word: &&[u8]| word.len() >= ADDRESS_DIGITS && hexadecimal(word).is_some();
            return match is_chain && fields.first().is_some_and(is_address) {
                true => Ok(()),
                false => Err("a time such as 12.345678: and an event".to_string()),
            };
        };
        let named = fields[at + 1..].iter().position(|word| word.ends_with(b":"));
        let named = named.ok_or("the name of an event behind the time")? + at + 1;
        let (name, rest) = (&fields[named][..fields[named].len() - 1], &fields[named + 1..]);
        let event = match kind(name) {
            Kind::File(operation) => self.file(operation, rest)?,
            Kind::Range => self.range(rest)?,
            Kind::Dirtied => self.dirtied(rest)?,
            Kind::Fault => self.fault(process(&fields[..at]), rest)?,
            Kind::Access(operation) => {
                let address = rest.first().and_then(|word| hexadecimal(word));
                // The instruction's address stands before its symbol, the data's before the former.
                let address = address.filter(|_| !rest.get(1).is_some_and(|word| is_symbol(word)));
                let address =
                    address.ok_or("the data's address behind the event (perf script -F +addr)")?;
                self.memory(process(&fields[..at]), operation, address)?
            }
            Kind::Other => return Ok(()),
        };
        found.push((Event { time: when, ..event }, 1));
        Ok(())
    }

    fn names(&mut self) -> Vec<(u32, String)> {
        self.spaces.names()
    }
}

/// Says what an event is about, by its name.
enum Kind {
    File(Operation),
    Range,
    Dirtied,
    Fault,
    Access(Operation),
    Other,
}

fn kind(name: &[u8]) -> Kind {
    let name = String::from_utf8_lossy(name);
    let has = |part: &str| name.contains(part);
    match () {
        () if has("mm_filemap_add_to_page_cache") => Kind::File(Operation::Read),
        () if has("mm_filemap_delete_from_page_cache") => Kind::File(Operation::Discard),
        () if has("mm_filemap_get_pages") => Kind::Range,
        () if has("writeback_dirty_folio") || has("writeback_dirty_page") => Kind::Dirtied,
        () if has("page_fault_user") || has("page_fault_kernel") => Kind::Fault,
        () if has("mem-stores") => Kind::Access(Operation::Store),
        () if has("mem-loads") => Kind::Access(Operation::Load),
        () if has("page-faults") || has("minor-faults") || has("major-faults") => {
            Kind::Access(Operation::Load)
        }
        () => Kind::Other,
    }
}

impl Perf {
    /// Reads `dev 8:1 ino 1a2b pfn=0x1234 ofs=4096 order=0`.
    fn file(&mut self, operation: Operation, fields: &[&[u8]]) -> Result<Event, String> {
        const EXPECTED: &str = "dev N:N ino N … ofs=BYTES";
        let behind = |word: &[u8]| {
            let at = fields.iter().position(|field| *field == word)?;
            fields.get(at + 1).copied()
        };
        let (device, inode) = behind(b"dev").zip(behind(b"ino")).ok_or(EXPECTED)?;
        let inode = hexadecimal(inode).ok_or(EXPECTED)?;
        let offset = value(fields, b"ofs=").and_then(number).ok_or(EXPECTED)?;
        let order = value(fields, b"order=").map_or(Some(0), number);
        let order = order.filter(|&order| order <= ORDER_MAX).ok_or("an order up to 20")?;
        let space = self.space_of(device, inode)?;
        Ok(Event { time: 0, operation, space, page: offset >> PAGE_SHIFT, nr: 1 << order })
    }

    /// The space of a file, named as the page cache's events name it.
    fn space_of(&mut self, device: &[u8], inode: u64) -> Result<u32, String> {
        self.spaces.number(&[device, format!("{inode:x}").as_bytes()].join(&b' '))
    }

    /// Reads `dev=8:1 ino=1a2b ofs=0-65535`: bytes, both included.
    fn range(&mut self, fields: &[&[u8]]) -> Result<Event, String> {
        const EXPECTED: &str = "dev=N:N ino=N ofs=BYTES-BYTES";
        let (device, inode) = value(fields, b"dev=").zip(value(fields, b"ino=")).ok_or(EXPECTED)?;
        let inode = hexadecimal(inode).ok_or(EXPECTED)?;
        let bytes = value(fields, b"ofs=").ok_or(EXPECTED)?;
        let dash = bytes.iter().position(|&b| b == b'-').ok_or(EXPECTED)?;
        let ends = number(&bytes[..dash]).zip(number(&bytes[dash + 1..])).ok_or(EXPECTED)?;
        if ends.1 < ends.0 {
            return Err("an end behind the beginning".to_string());
        }
        let page = ends.0 >> PAGE_SHIFT;
        let nr = (ends.1 >> PAGE_SHIFT) - page + 1;
        let space = self.space_of(device, inode)?;
        Ok(Event { time: 0, operation: Operation::Read, space, page, nr })
    }

    /// Reads `bdi 8:0: ino=6699 index=16`. Numbers of files are decimal here.
    fn dirtied(&mut self, fields: &[&[u8]]) -> Result<Event, String> {
        const EXPECTED: &str = "bdi NAME: ino=N index=N";
        let device = fields.get(1).and_then(|name| name.strip_suffix(b":")).ok_or(EXPECTED)?;
        let inode = value(fields, b"ino=").and_then(number).ok_or(EXPECTED)?;
        let page = value(fields, b"index=").and_then(number).ok_or(EXPECTED)?;
        let space = self.space_of(device, inode)?;
        Ok(Event { time: 0, operation: Operation::Write, space, page, nr: 1 })
    }

    /// Reads `address=0x7f… ip=0x… error_code=0x6`; the second bit says that it was a store.
    fn fault(&mut self, process: &[u8], fields: &[&[u8]]) -> Result<Event, String> {
        let read = |name| value(fields, name).and_then(hexadecimal);
        let address = read(b"address=").ok_or("address=0x… in hexadecimal")?;
        let code = read(b"error_code=").ok_or("error_code=0x…")?;
        let operation = if code & 2 != 0 { Operation::Store } else { Operation::Load };
        self.memory(process, operation, address)
    }

    fn memory(
        &mut self,
        process: &[u8],
        operation: Operation,
        address: u64,
    ) -> Result<Event, String> {
        let space = self.spaces.number(&[b"process ", process].concat())?;
        Ok(Event { time: 0, operation, space, page: address >> PAGE_SHIFT, nr: 1 })
    }
}

/// True for `main+0x1c`, `[unknown]` and `(/usr/bin/sort)`.
fn is_symbol(word: &[u8]) -> bool {
    word.starts_with(b"[") || word.starts_with(b"(") || word.windows(3).any(|part| part == b"+0x")
}

/// The field `NAME=…` without its name.
fn value<'a>(fields: &[&'a [u8]], name: &[u8]) -> Option<&'a [u8]> {
    fields.iter().find_map(|field| field.strip_prefix(name))
}

/// Finds the time: the first field such as `12.345678:`.
fn when(fields: &[&[u8]]) -> Option<(usize, u64)> {
    fields.iter().enumerate().find_map(|(at, field)| {
        let text = field.strip_suffix(b":").filter(|text| text.contains(&b'.'))?;
        Some((at, time(text, NANOSECONDS)?))
    })
}

/// The process number before the time: `1234`, `1234/1235` or, as ftrace writes it, `name-1234`.
fn process<'a>(fields: &[&'a [u8]]) -> &'a [u8] {
    let number_of = |field: &&'a [u8]| -> Option<&'a [u8]> {
        let field: &'a [u8] = field;
        let own = field.split(|&b| b == b'/').next()?;
        let last = own.rsplit(|&b| b == b'-').next()?;
        (!last.is_empty() && last.iter().all(u8::is_ascii_digit)).then_some(last)
    };
    fields.iter().rev().find_map(number_of).unwrap_or(b"?")
}
