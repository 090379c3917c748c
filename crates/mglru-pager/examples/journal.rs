//! A file mapped as a journal: its head stays in memory, and what was committed is durable.

#![allow(unsafe_code)]

use std::fs::File;

use mglru_pager::{Map, MappingMut, PagerError, PagerOptions};

const PAGE: usize = 4096;
const RECORDS: usize = 4096;

/// Makes a record durable, then the head that counts it: in this order a crash loses at most the
/// last one.
fn commit(journal: &mut MappingMut, nth: usize) -> Result<(), PagerError> {
    let at = (nth + 1) * PAGE;
    journal[at..at + PAGE].fill(nth as u8);
    journal.flush_range(at..at + PAGE)?;
    journal[..8].copy_from_slice(&(nth as u64 + 1).to_le_bytes());
    journal.flush_range(0..8)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("mglru-journal-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    file.set_len(((RECORDS + 1) * PAGE) as u64)?;
    let pager = PagerOptions::new().memory_max(6 << 20).open()?;
    // SAFETY: the file has no name: nobody else changes it.
    let mut journal = unsafe { pager.root().map(Map::file_mut(&file)?) }?;
    // What goes out by RDMA or O_DIRECT must not move: a pin keeps it. It outlives no mapping.
    journal.pin(0..PAGE)?.keep();
    (0..64).try_for_each(|nth| commit(&mut journal, nth))?;
    // A bulk load needs one flush, not one a record.
    for nth in 64..RECORDS {
        journal[(nth + 1) * PAGE..][..PAGE].fill(nth as u8);
    }
    journal[..8].copy_from_slice(&(RECORDS as u64).to_le_bytes());
    journal.flush()?;
    let right = |nth: &usize| journal[(nth + 1) * PAGE..][..PAGE].iter().all(|&b| b == *nth as u8);
    println!("{} of {RECORDS} records as committed", (0..RECORDS).filter(right).count());
    journal.unpin_range(0..PAGE)?;
    Ok(())
}
