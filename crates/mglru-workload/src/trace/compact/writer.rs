//! Writes a compact trace.

use std::io::{self, Write};

use super::encode::Encoder;
use super::layout::{BLOCK_EVENTS, BLOCK_HEAD_BYTES, Column, END, NAME_BYTES, NAMES_MAX};
use super::layout::{checksum, head_bytes};
use crate::trace::event::{Event, Head};

/// How hard zstd tries. Higher levels gain little: what is left after the tokens looks random.
const LEVEL: i32 = 3;

/// Writes a compact trace, a block at a time.
pub struct EventWriter<W: Write> {
    out: W,
    head: Head,
    encoder: Encoder,
    compressor: zstd::bulk::Compressor<'static>,
    events: u64,
}

impl<W: Write> EventWriter<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(mut out: W, head: Head) -> io::Result<Self> {
        out.write_all(&head_bytes(head))?;
        let mut encoder = Encoder::default();
        encoder.begin();
        let compressor = zstd::bulk::Compressor::new(LEVEL)?;
        Ok(EventWriter { out, head, encoder, compressor, events: 0 })
    }

    /// Counts the events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Adds an event.
    ///
    /// # Errors
    /// A full block cannot be written.
    ///
    /// # Panics
    /// The event has no page, pages beyond 2^64, or a space that the head rules out.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        assert!(event.nr > 0 && event.page.checked_add(event.nr - 1).is_some(), "{event:?}");
        assert!(self.head.spaces || event.space == 0, "{event:?}");
        self.encoder.event(event);
        self.events += 1;
        if self.encoder.events == BLOCK_EVENTS { self.flush() } else { Ok(()) }
    }

    /// Names a space; a long name is cut.
    ///
    /// # Errors
    /// A full block cannot be written.
    pub fn name(&mut self, space: u32, name: &str) -> io::Result<()> {
        if self.encoder.columns[Column::Names as usize].len() + 2 * NAME_BYTES > NAMES_MAX {
            self.flush()?;
        }
        let ends = (0..=name.len().min(NAME_BYTES)).rev();
        let end = ends.into_iter().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
        self.encoder.name(space, &name.as_bytes()[..end]);
        Ok(())
    }

    /// Writes what is left and the end mark.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        if self.encoder.events > 0 {
            self.flush()?;
        }
        let mut end = [0; 12];
        end[..4].copy_from_slice(&END.to_le_bytes());
        end[4..].copy_from_slice(&self.events.to_le_bytes());
        self.out.write_all(&end)?;
        self.out.write_all(&checksum(&[&end]).to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes the block at hand.
    fn flush(&mut self) -> io::Result<()> {
        self.encoder.complete();
        let mut bytes = (self.encoder.events as u32).to_le_bytes().to_vec();
        bytes.resize(BLOCK_HEAD_BYTES, 0);
        for (at, column) in self.encoder.columns.iter().enumerate().filter(|(_, c)| !c.is_empty()) {
            let packed = self.compressor.compress(column)?;
            let length = (packed.len() as u32).to_le_bytes();
            bytes[4 + 4 * at..8 + 4 * at].copy_from_slice(&length);
            bytes.extend_from_slice(&packed);
        }
        let sum = checksum(&[&bytes]);
        bytes.extend_from_slice(&sum.to_le_bytes());
        self.out.write_all(&bytes)?;
        self.encoder.begin();
        Ok(())
    }
}
