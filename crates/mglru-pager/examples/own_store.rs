//! Backing of your own: a store that computes what was never written and keeps what was, by page.
//! Where pages come from (an object store, a log, another machine) is up to you.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use mglru_pager::{Map, PagerOptions, Store};

const PAGE: usize = 4096;
const LEN: usize = 32 << 20;

/// The squares, except where somebody stored something else.
#[derive(Default)]
struct Squares {
    written: Mutex<HashMap<u64, Vec<u8>>>,
}

impl Store for Squares {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if let Some(page) = self.written.lock().expect("no writer panics").get(&offset) {
            out.copy_from_slice(page);
            return Ok(());
        }
        for (nth, word) in out.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&square(offset / 8 + nth as u64).to_le_bytes());
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        self.written.lock().expect("no writer panics").insert(offset, content.to_vec());
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn square(n: u64) -> u64 {
    n * n
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pager = PagerOptions::new().memory_max(6 << 20).open()?;
    let store = Arc::new(Squares::default());
    // SAFETY: a page reads as it was last written.
    let mut map = unsafe { pager.root().map(Map::store(store.clone(), LEN)) }?;
    let word = |map: &[u8], n: usize| u64::from_le_bytes(map[n * 8..][..8].try_into().unwrap());
    let wrong = (0..LEN / 8).filter(|&n| word(&map, n) != square(n as u64)).count();
    for page in (0..LEN).step_by(16 * PAGE) {
        map[page..][..8].copy_from_slice(&7u64.to_le_bytes());
    }
    map.flush()?;
    let kept = (0..LEN).step_by(16 * PAGE).filter(|&page| word(&map, page / 8) == 7).count();
    println!("{wrong} wrong of {} squares, {kept} of {} stores kept", LEN / 8, LEN / PAGE / 16);
    println!("{} pages in the store", store.written.lock().expect("no writer panics").len());
    Ok(())
}
