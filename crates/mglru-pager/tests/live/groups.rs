//! Groups: each within its own limit, protections kept, generations in the kernel's layout.

use crate::{MIB, PAGE, pager};
use mglru_pager::Limit;

#[test]
fn a_group_stays_within_its_limit_and_leaves_others_alone() {
    let Some(pager) = pager(64 * MIB) else { return };
    let (small, large) =
        (pager.root().create("small").unwrap(), pager.root().create("large").unwrap());
    small.set_limit(Limit::Max, Some(6 << 20));
    let mut a = small.map_anon(12 * MIB).unwrap();
    let mut b = large.map_anon(12 * MIB).unwrap();
    b.fill(2);
    for round in 1..4 {
        a.iter_mut().step_by(PAGE).for_each(|byte| *byte = round);
        assert!(a.iter().step_by(PAGE).all(|&byte| byte == round));
    }
    assert!(small.peak() <= 6 << 20, "{}", small.peak());
    assert_eq!(b.resident().unwrap(), 12 * MIB as u64, "the other group was not reclaimed from");
    let stat = large.stat().unwrap();
    assert_eq!(stat.get("pgsteal_anon"), Some(0));
    assert!(pager.root().current() >= small.current() + large.current());
    assert!(pager.root().create("small").is_err(), "taken");
    assert!(pager.root().create("a/b").is_err(), "not a name");
    pager.check().unwrap();
}

#[test]
fn a_protected_group_keeps_its_pages() {
    let Some(pager) = pager(24 * MIB) else { return };
    let (kept, other) =
        (pager.root().create("kept").unwrap(), pager.root().create("other").unwrap());
    kept.set_limit(Limit::Min, Some(12 << 20));
    let mut a = kept.map_anon(8 * MIB).unwrap();
    a.fill(1);
    let mut b = other.map_anon(32 * MIB).unwrap();
    b.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    assert_eq!(a.resident().unwrap(), 8 * MIB as u64);
    assert!(pager.root().peak() <= 24 << 20);
}

#[test]
fn generations_are_dumped_as_the_kernel_does() {
    let Some(pager) = pager(16 * MIB) else { return };
    let group = pager.root().create("app").unwrap();
    let mut map = group.map_anon(MIB).unwrap();
    map.fill(1);
    let pages = |line: &str| line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap();
    let sum = |text: &str| text.lines().skip(2).map(pages).sum::<u64>();
    // The thread that stored the last page goes on a moment before the policy hears of it.
    let known = (0..1000).map(|_| group.lru_gen().unwrap()).find(|text| sum(text) == 256);
    let text = known.expect("all pages are known soon");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["memcg     1 /app", " node     0"]);
    let youngest = |text: &str| {
        let line = text.lines().last().unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    assert!(group.age().unwrap());
    assert_eq!(youngest(&group.lru_gen().unwrap()), youngest(&text) + 1);
    // What is used is young after the walk, what is not grows old.
    (0..2).for_each(|_| {
        assert!(map[..MIB / 2].iter().step_by(PAGE).all(|&b| b == 1));
        group.age().unwrap();
    });
    let old = group.lru_gen().unwrap();
    let oldest = pages(old.lines().nth(2).unwrap());
    assert_eq!(oldest, 128, "half was not used since:\n{old}");
}
