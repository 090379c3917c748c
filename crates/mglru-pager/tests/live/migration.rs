//! Pages that the kernel moves about in physical memory while the pager takes them.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::heap::{fill, fork, heap, map, status, wrong};
use crate::{MIB, PAGE};
use mglru_pager::ForkPolicy;

/// How long: where pages were lost it took a tenth.
const LONG: Duration = Duration::from_secs(4);
/// Pages that are written together.
const RUN: usize = 8;

/// Has all of memory compacted, again and again, until it is over. False: that is not for us.
fn compact(over: &AtomicBool) -> bool {
    let open = std::fs::OpenOptions::new().write(true).open("/proc/sys/vm/compact_memory");
    let Ok(mut compact) = open else { return false };
    while !over.load(Ordering::Relaxed) {
        compact.write_all(b"1").unwrap();
    }
    true
}

#[test]
fn pages_that_are_migrated_meanwhile_are_not_lost() {
    let Some((pager, heap, _dir)) = heap(6 * MIB, ForkPolicy::Serve) else { return };
    let memory = map(&heap, 16 * MIB);
    let runs = memory.len() / PAGE / RUN;
    let mut versions = vec![0; runs];
    memory.chunks_mut(RUN * PAGE).for_each(|run| fill(run, 0));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| compact(&over));
        let (begin, mut x, mut lost) = (Instant::now(), 1_u64, 0);
        while begin.elapsed() < LONG && lost == 0 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if x >> 56 == 0 {
                // What a child shares and leaves makes holes, into which pages are migrated.
                assert_eq!(status(fork(|| 0)), 0);
            }
            let nth = (x >> 40) as usize % runs;
            let run = &mut memory[nth * RUN * PAGE..][..RUN * PAGE];
            lost += wrong(run, versions[nth]);
            versions[nth] += 1;
            fill(run, versions[nth]);
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(lost, 0, "of {RUN} pages after {:?}", begin.elapsed());
        if !compacting.join().unwrap() {
            println!("skipped: memory cannot be compacted here");
        }
    });
    pager.check().unwrap();
}
