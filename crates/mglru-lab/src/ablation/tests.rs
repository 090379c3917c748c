use super::*;
use crate::record::example;

fn named(mode: Mode, patch: &str) -> Arm {
    let arms = arms(&[mode], "before", "after").unwrap();
    arms.into_iter().find(|arm| arm.patch == patch).unwrap()
}

fn sides(arm: &Arm) -> [&str; 2] {
    [&arm.without, &arm.with]
}

#[test]
fn each_mode_sets_a_patch_against_its_absence() {
    let p02 = named(Mode::Cumulative, "p02");
    assert_eq!(sides(&p02), ["before+p01", "before+p01+p02"]);
    let p10 = named(Mode::OneIn, "p10");
    assert_eq!(sides(&p10), ["before+p04+p05+p09", "before+p04+p05+p09+p10"]);
    let p08 = named(Mode::LeaveOneOut, "p08");
    assert_eq!((sides(&p08), p08.along.len()), (["after+p08=false", "after"], 0));
}

#[test]
fn what_needs_a_patch_is_left_out_with_it() {
    let p10 = named(Mode::LeaveOneOut, "p10");
    assert_eq!(p10.along, ["p12", "p13", "p14"]);
    assert_eq!(p10.without, "after+p10=false+p12=false+p13=false+p14=false");
}

#[test]
fn every_variant_runs_once() {
    let modes = [Mode::Cumulative, Mode::OneIn, Mode::LeaveOneOut, Mode::Versions];
    let arms = arms(&modes, "before", "after").unwrap();
    let names = variants(&arms, &modes);
    for name in ["before", "before+p01", "after", "v2", "after+p14=false"] {
        assert_eq!(names.iter().filter(|n| *n == name).count(), 1, "{name}");
    }
    for name in &names {
        policy::config(&toml::Table::new(), &Variant::parse(name).unwrap()).unwrap();
    }
}

#[test]
fn equal_unknown_and_other_variants_are_refused() {
    let error = |from, to| arms(&[Mode::OneIn], from, to).unwrap_err().to_string();
    assert_eq!(error("after", "after"), "--to = after: no patch distinguishes it from after");
    assert!(error("befor", "after").contains("unknown"));
    assert!(error("classic", "k7.2").contains("another LRU than classic"));
}

/// Three seeds of a variant, a counter at this value.
fn seeds(variant: &str, counter: &str, value: u64) -> Vec<Record> {
    let record = |seed| {
        let mut record = example(variant, seed, 1.0);
        record.counters.insert(counter.to_string(), value + seed);
        record
    };
    (1..=3).map(record).collect()
}

#[test]
fn a_comparison_with_company_is_shown_and_does_not_count() {
    let arms = arms(&[Mode::LeaveOneOut], "before", "after").unwrap();
    let p10 = named(Mode::LeaveOneOut, "p10");
    let mut records = seeds(&p10.without, "flusher_wakeups", 10);
    records.extend(seeds("after", "flusher_wakeups", 100));
    let table = Table::new(&records);
    let all = rows(&arms, &table, "");
    let row = all.iter().find(|row| row.metric == "flusher_wakeups").unwrap();
    assert_eq!(row.cells[0].finding, Finding::Confirmed);
    assert_eq!(row.finding, Finding::NotJudged);
    let p07 = arms.iter().find(|arm| arm.patch == "p07").unwrap();
    let mut records = seeds(&p07.without, "zero_progress_reclaims", 100);
    records.extend(seeds("after", "zero_progress_reclaims", 10));
    let table = Table::new(&records);
    let all = rows(&arms, &table, "");
    let row = all.iter().find(|row| row.metric == "zero_progress_reclaims").unwrap();
    assert_eq!(row.finding, Finding::Confirmed);
    assert!(row.cells[0].effect.as_ref().unwrap().ratio.unwrap() < 0.2);
}

#[test]
fn releases_are_distinguished_by_the_series_and_their_own_rules() {
    let own = |from: &str, to: &str| {
        let all = arms(&[Mode::Cumulative], from, to).unwrap();
        let own = all.into_iter().filter(|arm| !arm.patch.starts_with('p'));
        own.map(|arm| arm.patch).collect::<Vec<_>>()
    };
    let added = ["drain_entry", "touch_ladder", "goal_stop", "swapin_drain"];
    assert_eq!(own("k7.1", "k7.2"), added);
    assert_eq!(
        own("after+couple_both+blind_shadow_limit+reparent+stale_protection", "k7.2"),
        added
    );
}

#[test]
fn what_a_release_dropped_is_set_against_its_absence_too() {
    let of = |mode, patch: &str| {
        let all = arms(&[mode], "k7.2", "k7.3").unwrap();
        all.into_iter().find(|arm| arm.patch == patch).unwrap()
    };
    let blind = of(Mode::OneIn, "blind_shadow_limit");
    assert_eq!(sides(&blind), ["k7.2+blind_shadow_limit=false", "k7.2"]);
    let blind = of(Mode::LeaveOneOut, "blind_shadow_limit");
    assert_eq!(sides(&blind), ["k7.3", "k7.3+blind_shadow_limit"]);
    let reversed = arms(&[Mode::OneIn], "after", "before").unwrap();
    let p10 = reversed.iter().find(|arm| arm.patch == "p10").unwrap();
    assert_eq!((p10.with.as_str(), p10.along.len()), ("after", 3));
    assert!(p10.without.contains("+p10=false"), "{}", p10.without);
    for (from, to) in [("k6.12", "k7.1"), ("k7.2", "k7.3"), ("k7.3", "k6.12"), ("after", "before")]
    {
        let modes = [Mode::Cumulative, Mode::OneIn, Mode::LeaveOneOut];
        for name in variants(&arms(&modes, from, to).unwrap(), &modes) {
            let variant = Variant::parse(&name).unwrap();
            policy::config(&toml::Table::new(), &variant).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}
