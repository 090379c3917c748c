//! Runs what a phone runs all the time: navigation, a voice assistant, music.

use super::{AndroidParams, LOG, MUSIC, TILES};
use crate::op::{FileId, Op};
use crate::pages::PAGE_BYTES;
use crate::rng::Rng;

/// Bytes a second of the phone: map tiles, navigation's log, music.
const TILE_BYTES: u64 = 500 << 10;
const LOG_BYTES: u64 = 100 << 10;
const MUSIC_BYTES: u64 = 64 << 10;
const LOG_PAGES: u64 = 1024;

/// A task that never ends.
#[derive(Debug)]
pub(super) struct Background {
    rng: Rng,
    /// Pages it uses, and how many of them each time.
    pub(super) pages: u32,
    touched: u32,
    /// Times a second.
    rate: u64,
    second_ns: u64,
    streams: Vec<Stream>,
}

/// Bytes read or written in order, again from the start when the file is over.
#[derive(Clone, Copy, Debug)]
struct Stream {
    file: FileId,
    file_bytes: u64,
    each: u64,
    write: bool,
    done: u64,
}

/// All background tasks, each with random numbers of its own.
pub(super) fn all(params: &AndroidParams, rng: impl Fn(u32) -> Rng) -> Vec<Background> {
    let tiles = u64::from(params.tile_pages) * PAGE_BYTES;
    // A phone of half the size runs twice as fast: bytes each time shrink with the second.
    let each = |bytes: u64| {
        let bytes = u128::from(bytes) * u128::from(params.second_ns) / 1_000_000_000;
        (bytes as u64).clamp(1, tiles.min(LOG_PAGES * PAGE_BYTES))
    };
    let stream = |file, file_bytes, bytes, write| Stream {
        file,
        file_bytes,
        each: each(bytes),
        write,
        done: 0,
    };
    let read = stream(TILES, tiles, TILE_BYTES, false);
    let log = stream(LOG, LOG_PAGES * PAGE_BYTES, LOG_BYTES, true);
    let music = stream(MUSIC, tiles, MUSIC_BYTES, false);
    let background = |lane, pages: u32, part: u32, rate, streams| Background {
        rng: rng(lane),
        pages,
        touched: pages / part,
        rate,
        second_ns: params.second_ns,
        streams,
    };
    let mut all = vec![
        background(0, params.navigation_pages, 10, 1, vec![read, log]),
        background(1, params.voice_pages, 20, 20, Vec::new()),
    ];
    all.extend(params.music.then(|| background(2, 1, 1, 1, vec![music])));
    all
}

impl Background {
    /// Uses some of its memory and files, then sleeps until the next time.
    pub(super) fn step(&mut self, region: u32, out: &mut Vec<Op>) {
        for _ in 0..self.touched {
            let page = self.rng.below(u64::from(self.pages)) as u32;
            out.push(Op::Touch { region, page, write: true });
        }
        out.extend(self.streams.iter_mut().map(Stream::next));
        out.push(Op::Think { ns: (self.second_ns / self.rate).max(1) });
    }
}

impl Stream {
    fn next(&mut self) -> Op {
        if self.done + self.each > self.file_bytes {
            self.done = 0;
        }
        let (file, off, len) = (self.file, self.done, self.each as u32);
        self.done += self.each;
        match self.write {
            true => Op::Write { file, off, len },
            false => Op::Read { file, off, len },
        }
    }
}
