//! What a fault costs: the raw round trip of userfaultfd beside the pager's, and aging.
//!
//! `cargo run --release -p mglru-pager --example fault_cost`. Medians over single faults, so that
//! the machine's other work matters little; first touches of both sides are made on the first
//! processor.

use std::time::{Duration, Instant};

use mglru_pager::yardsticks::{on_first_processor, raw_round_trip};
use mglru_pager::{Advice, FaultEngine, PagerOptions, SwapOptions};

const PAGE: usize = 4096;
const FAULTS: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let raw = raw_round_trip(FAULTS)?;
    println!("raw userfaultfd, read() and UFFDIO_COPY in a thread: {}", spread(raw));
    for engine in [FaultEngine::Thread, FaultEngine::Sigbus] {
        println!("{engine:?}");
        first_touch(engine)?;
        under_pressure(engine)?;
    }
    aging()
}

fn first_touch(engine: FaultEngine) -> Result<(), Box<dyn std::error::Error>> {
    let pager = PagerOptions::new().memory_max(1 << 30).fault_engine(engine).open()?;
    let mut map = pager.root().map_anon(FAULTS * PAGE)?;
    let mut touch = |page| timed(|| map[page * PAGE] = 1);
    let times = on_first_processor(|| (0..FAULTS).map(&mut touch).collect());
    println!("pager, first touch, room: {}", spread(times));
    Ok(())
}

fn under_pressure(engine: FaultEngine) -> Result<(), Box<dyn std::error::Error>> {
    let swap = SwapOptions::in_memory(1 << 30);
    let pager = PagerOptions::new().memory_max(32 << 20).swap(swap).fault_engine(engine).open()?;
    let mut map = pager.root().map_anon(FAULTS * PAGE)?;
    let mut x = 1u64;
    let mut touch = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let page = (x >> 33) as usize % FAULTS;
        timed(|| map[page * PAGE] = 1)
    };
    (0..4 * FAULTS).for_each(|_| assert!(touch() < Duration::MAX));
    let begin = Instant::now();
    let times: Vec<_> = (0..8 * FAULTS).map(|_| touch()).collect();
    let faults: Vec<_> = times.iter().copied().filter(|&t| t > Duration::from_micros(2)).collect();
    let wall = begin.elapsed();
    println!("pager, random stores at 40 % budget, misses: {}", spread(faults));
    println!("  {:.0} stores/s", times.len() as f64 / wall.as_secs_f64());
    println!("  {:?}", map.stat());
    Ok(())
}

fn aging() -> Result<(), Box<dyn std::error::Error>> {
    let pager = PagerOptions::new().memory_max(2 << 30).open()?;
    let mut map = pager.root().map_anon(1 << 30)?;
    map.advise(Advice::Random)?;
    map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    let lap = timed(|| assert!(pager.root().age().is_ok()));
    let again = timed(|| map.iter().step_by(PAGE).for_each(|byte| assert_eq!(*byte, 1)));
    println!("aging 1 GiB: {lap:?} a lap, and {again:?} for all of it to be used again");
    Ok(())
}

fn timed(what: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    what();
    begin.elapsed()
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("p50 {:?} p99 {:?} p99.9 {:?} n {}", at(0.5), at(0.99), at(0.999), times.len())
}
