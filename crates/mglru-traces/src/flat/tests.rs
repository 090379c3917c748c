//! Every policy against a naive one made of plain vectors, the optima against exhaustive search.

use mglru_workload::trace::Dense;
use proptest::prelude::*;

use super::*;

/// Misses of the real cache, fed in two blocks.
fn misses(policy: Policy, capacity: u64, pages: &[u32]) -> u64 {
    let mut cache = policy.cache(capacity, 1).unwrap();
    let (first, second) = pages.split_at(pages.len() / 2);
    cache.replay(unique(first), first) + cache.replay(unique(pages), second)
}

fn unique(pages: &[u32]) -> u32 {
    pages.iter().max().map_or(0, |&page| page + 1)
}

/// Counts misses of a rule on a queue of (page, referenced); the rule makes room for one page.
fn naive(
    pages: &[u32],
    capacity: usize,
    mut hit: impl FnMut(&mut Vec<(u32, bool)>, usize),
    mut evict: impl FnMut(&mut Vec<(u32, bool)>),
) -> u64 {
    let mut queue = Vec::new();
    let mut misses = 0;
    for &page in pages {
        if let Some(at) = queue.iter().position(|&(p, _)| p == page) {
            hit(&mut queue, at);
            continue;
        }
        misses += 1;
        if queue.len() == capacity {
            evict(&mut queue);
        }
        queue.push((page, false));
    }
    misses
}

fn oldest(queue: &mut Vec<(u32, bool)>) {
    queue.remove(0);
}

fn naive_lru(pages: &[u32], capacity: usize) -> u64 {
    let hit = |queue: &mut Vec<_>, at| {
        let entry = queue.remove(at);
        queue.push(entry);
    };
    naive(pages, capacity, hit, oldest)
}

fn naive_clock(pages: &[u32], capacity: usize) -> u64 {
    let second_chance = |queue: &mut Vec<(u32, bool)>| {
        while queue[0].1 {
            let (page, _) = queue.remove(0);
            queue.push((page, false));
        }
        queue.remove(0);
    };
    naive(pages, capacity, |queue, at| queue[at].1 = true, second_chance)
}

fn naive_sieve(pages: &[u32], capacity: usize) -> u64 {
    let mut hand: Option<u32> = None;
    let sweep = |queue: &mut Vec<(u32, bool)>| {
        let place = |page| queue.iter().position(|&(p, _)| p == page).unwrap();
        let mut at = hand.map_or(0, place);
        while queue[at].1 {
            queue[at].1 = false;
            at = (at + 1) % queue.len();
        }
        hand = queue.get(at + 1).map(|&(page, _)| page);
        queue.remove(at);
    };
    naive(pages, capacity, |queue, at| queue[at].1 = true, sweep)
}

/// ARC with a fractional target in 2^-20 pages, lists oldest first.
fn naive_arc(pages: &[u32], c: usize) -> u64 {
    let one = 1i64 << 20;
    let (mut t1, mut t2, mut b1, mut b2) = (vec![], vec![], vec![], vec![]);
    let (mut p, mut misses) = (0i64, 0);
    let take = |list: &mut Vec<u32>, page| {
        let at = list.iter().position(|&x| x == page);
        at.map(|at| list.remove(at)).is_some()
    };
    for &x in pages {
        if take(&mut t1, x) || take(&mut t2, x) {
            t2.push(x);
            continue;
        }
        misses += 1;
        let (in_b1, in_b2) = (b1.contains(&x), b2.contains(&x));
        let (n1, n2) = (b1.len() as i64, b2.len() as i64);
        let mut replace = true;
        if in_b1 {
            p = (p + one.max(n2 * one / n1)).min(c as i64 * one);
        } else if in_b2 {
            p = (p - one.max(n1 * one / n2)).max(0);
        } else if t1.len() + b1.len() == c {
            replace = t1.len() < c;
            if replace {
                b1.remove(0)
            } else {
                t1.remove(0)
            };
        } else if t1.len() + t2.len() + b1.len() + b2.len() >= c {
            if t1.len() + t2.len() + b1.len() + b2.len() == 2 * c {
                b2.remove(0);
            }
        } else {
            replace = false;
        }
        let t1_size = t1.len() as i64 * one;
        if replace && !t1.is_empty() && (t1_size > p || (in_b2 && t1_size == p)) {
            b1.push(t1.remove(0));
        } else if replace {
            b2.push(t2.remove(0));
        }
        if take(&mut b1, x) || take(&mut b2, x) { t2.push(x) } else { t1.push(x) }
    }
    misses
}

/// S3-FIFO, queues of (page, count), oldest first.
fn naive_s3fifo(pages: &[u32], c: usize) -> u64 {
    let small_target = (c / 10).max(1);
    let main_size = c - small_target;
    let (mut s, mut m) = (Vec::<(u32, u8)>::new(), Vec::<(u32, u8)>::new());
    let (mut ghosts, mut misses) = (Vec::new(), 0);
    let evict_main = |m: &mut Vec<(u32, u8)>| {
        while let Some(at) = (!m.is_empty()).then(|| m.remove(0)) {
            if at.1 == 0 {
                return;
            }
            m.push((at.0, at.1 - 1));
        }
    };
    for &x in pages {
        if let Some(entry) = s.iter_mut().chain(&mut m).find(|entry| entry.0 == x) {
            entry.1 = (entry.1 + 1).min(3);
            continue;
        }
        misses += 1;
        let ghost = ghosts.iter().position(|&page| page == x);
        ghost.map(|at| ghosts.remove(at));
        while s.len() + m.len() >= c {
            if s.len() < small_target && !m.is_empty() {
                evict_main(&mut m);
                continue;
            }
            while !s.is_empty() {
                let (page, count) = s.remove(0);
                if count <= 1 || main_size == 0 {
                    ghosts.push(page);
                    break;
                }
                if m.len() >= main_size {
                    evict_main(&mut m);
                }
                m.push((page, 0));
            }
            if ghosts.len() > main_size {
                ghosts.remove(0);
            }
        }
        if ghost.is_some() { m.push((x, 0)) } else { s.push((x, 0)) }
    }
    misses
}

/// Fewest misses over all choices of victim (and, with bypass, of refusal).
fn fewest(pages: &[u32], cached: &[u32], capacity: usize, bypass: bool) -> u64 {
    let Some((&page, rest)) = pages.split_first() else { return 0 };
    if cached.contains(&page) {
        return fewest(rest, cached, capacity, bypass);
    }
    let with = |victim: Option<usize>| {
        let mut next = cached.to_vec();
        victim.map(|at| next.remove(at));
        next.push(page);
        fewest(rest, &next, capacity, bypass)
    };
    let full = cached.len() == capacity;
    let victims = (0..cached.len()).filter(|_| full).map(Some);
    let room = (!full).then_some(None);
    let best = victims.chain(room).map(with).min();
    let refused = bypass.then(|| fewest(rest, cached, capacity, bypass));
    1 + best.into_iter().chain(refused).min().unwrap()
}

fn optimum(pages: &[u32], capacity: u64, bypass: Bypass) -> u64 {
    let trace = Dense { ids: pages.to_vec(), unique: unique(pages) };
    min_misses(&trace, &NextUses::of(&trace), capacity, bypass)
}

fn requests() -> impl Strategy<Value = Vec<u32>> {
    let skewed = (0u32..40, 0u32..40).prop_map(|(a, b)| a.min(b));
    proptest::collection::vec(skewed, 0..600)
}

proptest! {
    #[test]
    fn online_policies_equal_naive_ones(pages in requests(), capacity in 1usize..30) {
        let size = capacity as u64;
        let fifo = naive(&pages, capacity, |_, _| {}, oldest);
        prop_assert_eq!(misses(Policy::Lru, size, &pages), naive_lru(&pages, capacity));
        prop_assert_eq!(misses(Policy::Fifo, size, &pages), fifo);
        prop_assert_eq!(misses(Policy::Clock, size, &pages), naive_clock(&pages, capacity));
        prop_assert_eq!(misses(Policy::Sieve, size, &pages), naive_sieve(&pages, capacity));
        prop_assert_eq!(misses(Policy::Arc, size, &pages), naive_arc(&pages, capacity));
        prop_assert_eq!(misses(Policy::S3Fifo, size, &pages), naive_s3fifo(&pages, capacity));
    }

    #[test]
    fn optima_equal_exhaustive_search(
        pages in proptest::collection::vec(0u32..5, 0..12),
        capacity in 1usize..4,
    ) {
        let size = capacity as u64;
        let insert = optimum(&pages, size, Bypass::Forbidden);
        let refuse = optimum(&pages, size, Bypass::Allowed);
        prop_assert_eq!(insert, fewest(&pages, &[], capacity, false));
        prop_assert_eq!(refuse, fewest(&pages, &[], capacity, true));
    }

    #[test]
    fn nothing_beats_the_optimum(pages in requests(), capacity in 1u64..30) {
        let best = optimum(&pages, capacity, Bypass::Forbidden);
        prop_assert!(optimum(&pages, capacity, Bypass::Allowed) <= best);
        for policy in Policy::ALL.into_iter().filter(|policy| policy.bypass().is_none()) {
            prop_assert!(misses(policy, capacity, &pages) >= best, "{}", policy);
        }
    }
}

#[test]
fn a_cache_that_holds_everything_misses_each_page_once() {
    let pages: Vec<u32> = (0..500).chain((0..500).rev()).chain(0..500).collect();
    for policy in Policy::ALL.into_iter().filter(|policy| policy.bypass().is_none()) {
        for capacity in [500, 5000, u64::MAX] {
            assert_eq!(misses(policy, capacity, &pages), 500, "{policy} of {capacity}");
        }
    }
    assert_eq!(optimum(&pages, u64::MAX, Bypass::Forbidden), 500);
}

#[test]
fn one_page_holds_the_last_request() {
    let pages = [1, 1, 2, 1, 2, 2, 3];
    for policy in Policy::ALL.into_iter().filter(|policy| policy.bypass().is_none()) {
        assert_eq!(misses(policy, 1, &pages), 5, "{policy}");
    }
}

#[test]
fn the_log_of_lru_is_compacted_many_times() {
    let mut state = 1u32;
    let mut draw = || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (state >> 16) % 24
    };
    let pages: Vec<u32> = (0..4_000_000).map(|_| draw()).collect();
    assert_eq!(misses(Policy::Lru, 20, &pages), naive_lru(&pages, 20));
}

#[test]
fn random_is_settled_by_its_seed() {
    let pages: Vec<u32> = (0..10_000).map(|i| i * 7 % 100).collect();
    let run = |seed| Random::new(50, seed).replay(100, &pages);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let share = run(1) as f64 / 10_000.0;
    assert!((0.3..0.9).contains(&share), "a random half of a loop hits now and then: {share}");
}

#[test]
fn names_are_parsed_and_unknown_ones_list_the_known() {
    for policy in Policy::ALL {
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    let error = UnknownPolicy::new("lfu", &["after"]).to_string();
    assert!(error.contains("\"lfu\"") && error.contains("min-bypass, random, after"), "{error}");
}
