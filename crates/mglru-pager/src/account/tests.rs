use super::*;

fn family() -> (Arc<Account>, Arc<Account>) {
    let root = Arc::new(Account::new("/".into(), MemcgId::ROOT, None));
    let child = Arc::new(Account::new("/a".into(), MemcgId(1), Some(root.clone())));
    (root, child)
}

#[test]
fn a_refused_charge_leaves_no_trace() {
    let (root, child) = family();
    root.set(Setting::Max, 10_000 + 10_000 / 15 + 1);
    assert!(child.try_charge(9_000).is_ok());
    let full = child.try_charge(2_000).map_err(|account| account.path.clone());
    assert_eq!(full, Err("/".to_string()));
    assert_eq!((root.usage(), child.usage()), (9_000, 9_000));
    assert_eq!((root.peak(), child.peak()), (9_000, 9_000));
    child.set(Setting::Max, 10_200);
    let full = child.try_charge(600).map_err(|account| account.path.clone());
    assert_eq!(full, Err("/a".to_string()));
    child.uncharge(9_000);
    assert_eq!((root.usage(), child.usage()), (0, 0));
}

#[test]
fn swap_is_bounded_by_the_tightest_group() {
    let (root, child) = family();
    root.set(Setting::SwapMax, 2 * PAGE as u64);
    child.set(Setting::SwapMax, PAGE as u64);
    assert!(child.try_charge_swap());
    assert!(!child.try_charge_swap() && root.try_charge_swap());
    child.uncharge_swap();
    assert_eq!((root.swap(), child.swap()), (PAGE as u64, 0));
}

#[test]
fn the_reserve_lies_below_the_limit() {
    let (root, _) = family();
    assert_eq!(root.background_from(), NO_LIMIT);
    for max in [1 << 16, 1 << 20, 1 << 27, 1 << 40] {
        root.set(Setting::Max, max);
        assert!(root.background_until() < root.background_from());
        assert!(root.background_from() < max && root.background_until() >= max / 2);
    }
    root.set(Setting::High, 4096);
    assert_eq!((root.background_from(), root.background_until()), (4096, 4096));
}
