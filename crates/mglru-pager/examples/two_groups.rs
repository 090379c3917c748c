//! Two groups under one budget: an index that is protected, and a scan that has what is left.

use mglru_pager::{Limit, PagerError, PagerOptions, SwapOptions};

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

fn main() -> Result<(), PagerError> {
    let swap = SwapOptions::in_memory(16 << 20);
    let pager = PagerOptions::new().memory_max(24 << 20).swap(swap).open()?;
    let (index, scan) = (pager.root().create("index")?, pager.root().create("scan")?);
    index.set_limit(Limit::Min, Some(12 << 20));
    scan.set_limit(Limit::Max, Some(10 << 20));
    let mut hot = index.map_anon(8 * MIB)?;
    let mut cold = scan.map_anon(48 * MIB)?;
    for round in 0..3 {
        hot.iter_mut().step_by(PAGE).for_each(|byte| *byte = round);
        cold.iter_mut().step_by(PAGE).for_each(|byte| *byte = round);
    }
    let resident = hot.resident()? >> 20;
    println!("index: {resident} of 8 MiB resident, {} major faults", hot.stat().major);
    println!(
        "scan: memory.peak {} MiB of 10, {} major faults",
        scan.peak() >> 20,
        cold.stat().major
    );
    Ok(())
}
