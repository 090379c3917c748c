//! Decides how much to reclaim so that pressure stays under a bound: what nobody misses goes, and
//! no limit stands in the way of a program that grows.

/// Most of a group that goes at once: one hundredth, as a request that is too large would show in
/// the pressure only when it is done.
const STEP: u64 = 100;
/// Less is not worth a request, bytes.
const LEAST: u64 = 64 << 10;

/// Tells how many bytes to reclaim from a group that has `current` bytes and whose tasks waited
/// for memory for `stalled` percent of the time since the last look, where `bound` is allowed: a
/// hundredth without pressure, less the nearer the bound is, nothing from there on.
pub fn step(current: u64, stalled: f64, bound: f64) -> u64 {
    let share = 1.0 - stalled / bound;
    if share <= 0.0 {
        return 0;
    }
    let bytes = ((current / STEP) as f64 * share) as u64;
    if bytes < LEAST { 0 } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn pressure_slows_reclaim_and_the_bound_ends_it() {
        let bytes = 1_000_000_000;
        assert_eq!(step(bytes, 0.0, 0.1), bytes / 100);
        assert_eq!(step(bytes, 0.05, 0.1), bytes / 200);
        assert_eq!(step(bytes, 0.1, 0.1), 0);
        assert_eq!(step(bytes, 5.0, 0.1), 0);
        assert_eq!(step(1 << 20, 0.0, 0.1), 0, "too little to ask for");
    }
}
