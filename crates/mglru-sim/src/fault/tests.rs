use super::*;

#[test]
fn pages_that_come_back_are_hits_on_6_12_only() {
    let mut flags = Flags::default();
    assert!(is_map_hit(true, flags) && is_map_hit(false, flags));
    flags.set(Bit::WORKINGSET);
    assert!(is_map_hit(true, flags));
    assert!(!is_map_hit(false, flags));
}
