//! The core against a naive model of the same rules (spec §3 to §6, §10.2): the same inputs and the
//! same answers of the machine must give the same generations, the same flags of every folio, the
//! same evictions in the same order and the same counters, after every input.

#[path = "model/naive.rs"]
mod naive;
#[path = "model/pair.rs"]
mod pair;
#[path = "toy/toy.rs"]
mod toy;

use mglru::Config;
use pair::Pair;

/// Runs `seeds` walks of `steps` inputs each.
fn agree(config: &Config, seeds: std::ops::Range<u64>, steps: usize) {
    for seed in seeds {
        let mut pair = Pair::new(config.clone(), seed);
        for step in 0..steps {
            let input = pair.next_input();
            pair.apply(input);
            pair.compare(&format!("seed {seed}, step {step}: {input:?}"));
        }
        assert!(pair.naive.counts.stolen > 0, "seed {seed}: nothing was ever evicted");
    }
}

fn variant(name: &str) -> Config {
    Config::variant(name).expect("a known variant")
}

#[test]
fn after_agrees_with_the_naive_model() {
    agree(&variant("after"), 0..12, 400);
}

#[test]
fn before_agrees_with_the_naive_model() {
    agree(&variant("before"), 100..112, 400);
}

#[test]
fn k612_agrees_with_the_naive_model() {
    agree(&variant("k6.12"), 200..212, 400);
}

#[test]
fn mainline_612_agrees_with_the_naive_model() {
    let mut config = variant("k6.12");
    config.stable_612 = false;
    config.patches.p09 = false;
    // With it nothing is protected here: kswapd never runs.
    config.releases.stale_protection = false;
    agree(&config, 300..308, 400);
}

#[test]
fn every_step_of_the_series_agrees_with_the_naive_model() {
    let mut config = variant("before");
    let order = [
        "p01", "p02", "p03", "p04", "p05", "p06", "p06p", "p07", "p08", "p09", "p10", "p11", "p12",
        "p13", "p14", "prefault",
    ];
    for (i, patch) in order.into_iter().enumerate() {
        config.set(patch, "true").expect("a known switch");
        let first = 400 + 10 * i as u64;
        agree(&config, first..first + 3, 300);
    }
}

#[test]
fn floors_agree_with_the_naive_model() {
    for (i, name) in ["v2", "v4", "v5"].into_iter().enumerate() {
        let first = 700 + 10 * i as u64;
        agree(&variant(name), first..first + 4, 300);
    }
}

#[test]
fn without_proportional_protection_they_agree() {
    for (i, name) in ["after", "before"].into_iter().enumerate() {
        let mut config = variant(name);
        config.proportional_protection = false;
        let first = 800 + 10 * i as u64;
        agree(&config, first..first + 6, 400);
    }
}

#[test]
fn with_the_hierarchy_iterator_they_agree() {
    for (i, name) in ["after", "before"].into_iter().enumerate() {
        let mut config = variant(name);
        config.set("memcg_walk", "iter").expect("a known key");
        let first = 1000 + 10 * i as u64;
        agree(&config, first..first + 6, 400);
    }
}

#[test]
fn with_moves_in_bulk_they_agree() {
    for (i, name) in ["after", "before", "k6.12"].into_iter().enumerate() {
        let mut config = variant(name);
        for key in ["bulk_counters", "bulk_moves", "bulk_prefetch"] {
            config.set(key, "true").expect("a known key");
        }
        let first = 1100 + 10 * i as u64;
        agree(&config, first..first + 8, 400);
    }
}

#[test]
fn with_any_number_of_generations_they_agree() {
    for (i, name) in ["after", "before", "k6.12"].into_iter().enumerate() {
        for (k, n) in ["2", "3", "5", "8", "64"].into_iter().enumerate() {
            let mut config = variant(name);
            config.set("generations", n).expect("a known key");
            let first = 1200 + 50 * i as u64 + 10 * k as u64;
            agree(&config, first..first + 4, 400);
        }
    }
}

#[test]
fn without_page_table_walks_they_agree() {
    for (i, name) in ["after", "before", "k6.12"].into_iter().enumerate() {
        let mut config = variant(name);
        config.set("young_source", "rmap").expect("a known key");
        let first = 900 + 10 * i as u64;
        agree(&config, first..first + 6, 400);
    }
}

/// As many more walks as `MODEL_WALKS` says, for a night (200 take two minutes): a few otherwise.
#[test]
fn many_walks_agree() {
    let walks = std::env::var("MODEL_WALKS").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    for name in ["after", "before", "k6.12", "v2", "v5"] {
        agree(&variant(name), 10_000..10_000 + walks, 800);
    }
}
