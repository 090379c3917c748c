//! A compact trace that is being read: block by block, as requests or as events.

use std::path::Path;

use hashbrown::HashMap;

use super::decode::{Decoder, Item};
use super::layout::{
    BLOCK_EVENTS, BLOCK_HEAD_BYTES, CHECKSUM_BYTES, COLUMNS, Column, END, END_BYTES, HEAD_BYTES,
    MAGIC, checksum, read_head,
};
use super::place::Place;
use crate::trace::error::TraceError;
use crate::trace::event::{Event, Head};
use crate::trace::input::Input;
use crate::trace::record::Request;
use crate::trace::source;

/// Log2 of the consecutive pages of a space that stay together where spaces become one.
const CHUNK_SHIFT: u32 = 20;

/// Reads blocks from a borrowed [`Input`].
pub(in crate::trace) struct CompactReader {
    head: Head,
    decoder: Decoder,
    decompressor: zstd::bulk::Decompressor<'static>,
    bytes: Vec<u8>,
    events: u64,
    ended: bool,
    /// Keeps the rest of an access for which there was no room.
    rest: Option<Item>,
    flat: Flat,
}

impl CompactReader {
    /// Reads the head.
    pub(in crate::trace) fn begin(input: &mut Input) -> Result<Self, TraceError> {
        let (mut bytes, offset) = (Vec::new(), input.offset());
        input.take(HEAD_BYTES, &mut bytes)?;
        if !bytes.starts_with(&MAGIC) {
            return Err(damaged(input, offset, "no compact trace: it begins otherwise"));
        }
        let Some(head) = bytes.first_chunk() else { return Err(truncated(input)) };
        let head = read_head(head).map_err(|what| damaged(input, offset, what))?;
        let failed = |source| TraceError::Open { path: input.path().to_path_buf(), source };
        Ok(CompactReader {
            head,
            decoder: Decoder::default(),
            decompressor: zstd::bulk::Decompressor::new().map_err(failed)?,
            bytes,
            events: 0,
            ended: false,
            rest: None,
            flat: Flat::default(),
        })
    }

    /// Appends requests up to `limit` of them; false at the end of the trace. Events that are no
    /// accesses are passed over.
    pub(in crate::trace) fn fill(
        &mut self,
        input: &mut Input,
        requests: &mut Vec<Request>,
        limit: usize,
    ) -> Result<bool, TraceError> {
        while requests.len() < limit {
            if self.rest.is_none() && self.decoder.left() == 0 && !self.block(input)? {
                return Ok(false);
            }
            self.decode(requests, limit).ok_or_else(|| senseless(input))?;
        }
        Ok(true)
    }

    /// Appends requests of the block at hand; nothing if an event makes no sense.
    fn decode(&mut self, requests: &mut Vec<Request>, limit: usize) -> Option<()> {
        while requests.len() < limit {
            let item = match self.rest.take() {
                Some(rest) => rest,
                None if self.decoder.left() == 0 => break,
                None => self.sound()?,
            };
            if item.operation.is_access() {
                self.expand(item, requests, limit);
            }
        }
        Some(())
    }

    /// Appends as many requests of an access as there is room for.
    #[inline]
    fn expand(&mut self, item: Item, requests: &mut Vec<Request>, limit: usize) {
        let write = item.operation.is_write();
        let mut nr = item.nr.min((limit - requests.len()) as u64);
        let mut first = item.place.page;
        if self.head.spaces {
            first = self.flat.page(item.place);
            nr = nr.min((1 << CHUNK_SHIFT) - (first & ((1 << CHUNK_SHIFT) - 1)));
        }
        if nr == 1 {
            requests.push(Request { page: first, write });
        } else {
            requests.extend((0..nr).map(|at| Request { page: first + at, write }));
        }
        if nr < item.nr {
            let place = Place { page: item.place.page + nr, ..item.place };
            self.rest = Some(Item { place, nr: item.nr - nr, ..item });
        }
    }

    /// The next event of the block at hand, of which there is one.
    #[inline]
    fn sound(&mut self) -> Option<Item> {
        self.decoder.next().filter(|item| self.head.spaces || item.place.space == 0)
    }

    /// The next event.
    fn event(&mut self, input: &mut Input) -> Result<Option<Event>, TraceError> {
        let Some(Item { place, operation, nr }) = self.item(input)? else { return Ok(None) };
        let time = self.decoder.next_time().ok_or_else(|| senseless(input))?;
        Ok(Some(Event { time, operation, space: place.space, page: place.page, nr }))
    }

    fn item(&mut self, input: &mut Input) -> Result<Option<Item>, TraceError> {
        while self.decoder.left() == 0 {
            if !self.block(input)? {
                return Ok(None);
            }
        }
        self.sound().map(Some).ok_or_else(|| senseless(input))
    }

    /// Reads a block; false at the end mark.
    fn block(&mut self, input: &mut Input) -> Result<bool, TraceError> {
        let offset = input.offset();
        if self.ended {
            return Ok(false);
        }
        self.bytes.clear();
        input.take(4, &mut self.bytes)?;
        let events = number(&self.bytes).ok_or_else(|| truncated(input))?;
        if events == END {
            self.end(input, offset)?;
            return Ok(false);
        }
        let events = events as usize;
        if events > BLOCK_EVENTS {
            return Err(damaged(input, offset, "damaged: a block of too many events"));
        }
        self.read(input, offset, events)?;
        self.unpack(input, offset, events)?;
        self.events += events as u64;
        match self.decoder.begin(events) {
            true => Ok(true),
            false => Err(damaged(input, offset, "damaged: columns of a block are cut")),
        }
    }

    /// Reads what follows the number of events, and checks it.
    fn read(&mut self, input: &mut Input, offset: u64, events: usize) -> Result<(), TraceError> {
        input.take(BLOCK_HEAD_BYTES - 4, &mut self.bytes)?;
        let mut length = 0;
        for (at, column) in Column::ALL.into_iter().enumerate() {
            let packed = number(self.bytes.get(4 + 4 * at..).unwrap_or_default());
            let packed = packed.ok_or_else(|| truncated(input))? as usize;
            if packed > zstd::zstd_safe::compress_bound(column.most(events)) {
                return Err(damaged(input, offset, "damaged: a column of a block is too long"));
            }
            length += packed;
        }
        input.take(length, &mut self.bytes)?;
        let sum = checksum(&[&self.bytes]);
        let whole = self.bytes.len();
        input.take(CHECKSUM_BYTES, &mut self.bytes)?;
        match number(&self.bytes[whole..]) {
            Some(found) if found == sum => Ok(()),
            Some(_) => Err(damaged(input, offset, "damaged: the checksum of a block is another")),
            None => Err(truncated(input)),
        }
    }

    fn unpack(&mut self, input: &Input, offset: u64, events: usize) -> Result<(), TraceError> {
        let mut at = BLOCK_HEAD_BYTES;
        for (column, out) in Column::ALL.into_iter().zip(&mut self.decoder.columns) {
            let place = 4 + 4 * column as usize;
            let packed = number(&self.bytes[place..]).unwrap_or_default() as usize;
            out.clear();
            if packed > 0 {
                out.reserve(column.most(events));
                let bytes = &self.bytes[at..at + packed];
                let done = self.decompressor.decompress_to_buffer(bytes, out);
                done.map_err(|e| damaged(input, offset, format!("damaged: a column: {e}")))?;
            }
            at += packed;
        }
        Ok(())
    }

    fn end(&mut self, input: &mut Input, offset: u64) -> Result<(), TraceError> {
        self.ended = true;
        input.take(END_BYTES - 4, &mut self.bytes)?;
        let Some(end) = self.bytes.first_chunk::<END_BYTES>() else { return Err(truncated(input)) };
        let events = end[4..12].try_into().map(u64::from_le_bytes);
        let is_right = number(&end[12..]) == Some(checksum(&[&end[..12]]));
        if !is_right || events.ok() != Some(self.events) {
            return Err(damaged(input, offset, "damaged: the end mark counts other events"));
        }
        let mut junk = Vec::new();
        input.take(1, &mut junk)?;
        match junk.is_empty() {
            true => Ok(()),
            false => Err(damaged(input, offset, "trailing junk behind the end mark")),
        }
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_le_bytes)
}

fn senseless(input: &Input) -> TraceError {
    damaged(input, input.offset(), "damaged: an event in the block before makes no sense")
}

fn damaged(input: &Input, offset: u64, what: impl Into<String>) -> TraceError {
    TraceError::Damaged { path: input.path().to_path_buf(), offset, what: what.into() }
}

fn truncated(input: &Input) -> TraceError {
    let (path, offset) = (input.path().to_path_buf(), input.offset());
    TraceError::Truncated { path, offset, stream: "compact" }
}

/// Page numbers for the pages of several spaces: chunks get theirs as they appear.
#[derive(Default)]
struct Flat {
    chunks: HashMap<(u32, u64), u64>,
    last: Option<((u32, u64), u64)>,
}

impl Flat {
    #[inline]
    fn page(&mut self, place: Place) -> u64 {
        let key = (place.space, place.page >> CHUNK_SHIFT);
        let number = match self.last {
            Some((last, number)) if last == key => number,
            _ => {
                let next = self.chunks.len() as u64;
                *self.chunks.entry(key).or_insert(next)
            }
        };
        self.last = Some((key, number));
        number << CHUNK_SHIFT | place.page & ((1 << CHUNK_SHIFT) - 1)
    }
}

/// Reads a compact trace as events.
pub struct EventReader {
    input: Input,
    reader: CompactReader,
}

impl EventReader {
    /// Opens a compact trace.
    ///
    /// # Errors
    /// The file cannot be opened or is no compact trace.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut input = Input::new(path, Box::new(source::open(path)?))?;
        let reader = CompactReader::begin(&mut input)?;
        Ok(EventReader { input, reader })
    }

    /// Says whether a file begins as a compact trace does.
    ///
    /// # Errors
    /// The file cannot be opened or decompressed.
    pub fn is_compact(path: &Path) -> Result<bool, TraceError> {
        let input = Input::new(path, Box::new(source::open(path)?))?;
        Ok(input.data().starts_with(&MAGIC))
    }

    /// Describes all events.
    pub fn head(&self) -> Head {
        self.reader.head
    }

    /// Reads the next event; nothing at the end.
    ///
    /// # Errors
    /// The trace is truncated or damaged.
    pub fn event(&mut self) -> Result<Option<Event>, TraceError> {
        self.reader.event(&mut self.input)
    }

    /// Lists the names of spaces that the block of the last event brought.
    ///
    /// # Errors
    /// The names make no sense.
    pub fn names(&self) -> Result<Vec<(u32, String)>, TraceError> {
        self.reader.decoder.names().ok_or_else(|| senseless(&self.input))
    }
}

const _: () = assert!(COLUMNS == Column::ALL.len());
