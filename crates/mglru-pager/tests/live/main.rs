//! The pager on real memory. Needs userfaultfd and io_uring; where they are refused each test says
//! so and is skipped.

#![allow(unsafe_code)]

mod control;
mod copies;
mod durability;
mod events;
mod faults;
mod files;
mod first_use;
mod groups;
mod heap;
mod killed;
mod limits;
mod migration;
mod sigbus;
mod stress;
mod what_if;
mod writes;

use std::io::{Read, Write};
use std::time::Duration;

use mglru_pager::{Advice, MappingMut, Pager, PagerOptions, SwapOptions, probe};

/// Bytes of a page.
const PAGE: usize = 4096;
/// A mebibyte.
const MIB: usize = 1 << 20;

/// A pager with swap in memory, or `None` with the reason printed.
fn pager(max: usize) -> Option<Pager> {
    open(PagerOptions::new().memory_max(max as u64).swap(SwapOptions::in_memory(max as u64)))
}

fn open(options: PagerOptions) -> Option<Pager> {
    if let Some(fact) = probe().into_iter().find(|fact| fact.required && !fact.ok) {
        println!("skipped: {} ({})", fact.detail, fact.fix);
        return None;
    }
    Some(options.open().expect("the host has all that is required"))
}

/// Content that names its page and its version.
fn pattern(page: usize, version: u32) -> Vec<u8> {
    let seed = (page as u32).wrapping_mul(0x9E37_79B9) ^ version.wrapping_mul(0x85EB_CA6B);
    (0..PAGE / 4).flat_map(|i| (seed ^ (i as u32 / 7)).to_le_bytes()).collect()
}

/// Does it again until it holds: the policy may not know yet of a fault that ended a moment ago,
/// may still write, or may be about to end a reclaim of its own.
fn until(what: impl Fn(), holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        what();
        if holds() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Pages out until this much is resident.
fn page_out(map: &MappingMut, left: usize) {
    let resident = || map.resident().unwrap();
    until(|| map.advise(Advice::PageOut).unwrap(), || resident() <= left as u64);
    assert_eq!(resident(), left as u64);
}

/// Columns of lru_gen.
const ANON_COLUMN: usize = 2;
const FILE_COLUMN: usize = 3;

/// Pages of the two youngest generations: what a walk found used, and what came since.
fn nr_young(pager: &Pager, column: usize) -> u64 {
    let text = pager.root().lru_gen().unwrap();
    let nr = |line: &str| line.split_whitespace().nth(column).and_then(|n| n.parse::<u64>().ok());
    text.lines().rev().take(2).map(|line| nr(line).expect("generation, age, anon, file")).sum()
}

/// A file of this content.
fn file_of(len: usize, byte: impl Fn(usize) -> u8) -> std::fs::File {
    let mut file = tempfile::tempfile_in(".").expect("the directory can be written");
    let content: Vec<u8> = (0..len).map(byte).collect();
    file.write_all(&content).expect("the disk has room");
    file
}

fn content(mut file: &std::fs::File) -> Vec<u8> {
    use std::io::Seek;
    let mut all = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut all).unwrap();
    all
}
