//! A table four times as large as its budget: `cargo run --release -p mglru-pager --example table`.

use mglru_pager::{PagerError, PagerOptions, SwapOptions};

const ROWS: usize = 8 << 20;

fn main() -> Result<(), PagerError> {
    let swap = SwapOptions::in_memory(12 << 20);
    let pager = PagerOptions::new().memory_max(16 << 20).swap(swap).open()?;
    let mut table = pager.root().map_anon(ROWS * 8)?;
    for (row, bytes) in table.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&value(row).to_le_bytes());
    }
    let right = |(row, bytes): (usize, &[u8])| bytes == value(row).to_le_bytes();
    let wrong = table.chunks_exact(8).enumerate().filter(|&row| !right(row)).count();
    let stat = pager.root().stat()?;
    let of = |key| stat.get(key).unwrap_or(0);
    println!("{ROWS} rows, {wrong} wrong",);
    println!("memory.peak {} MiB, {} pages evicted", of("memory.peak") >> 20, of("pgsteal_anon"));
    Ok(())
}

fn value(row: usize) -> u64 {
    row as u64 / 64 * 7
}
