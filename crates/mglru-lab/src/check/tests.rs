use super::*;
use crate::plan::Plan;
use crate::record::example;

pub(super) fn bounds(text: &str) -> Vec<Bound> {
    let text = format!("name = \"t\"\ntitle = \"t\"\nvariants = [\"a\"]\n{text}");
    Plan::parse("t.toml", &text, &[]).unwrap().bounds
}

pub(super) fn run(variant: &str, seed: u64, pgpgin: u64) -> Record {
    let mut record = example(variant, seed, 5.0);
    record.counters.insert("pgpgin".to_string(), pgpgin);
    record.counters.insert("oom_kill".to_string(), 0);
    let phases = serde_json::json!([
        { "name": "scan", "seconds": 2.0, "ops": 4, "accesses": 9, "counters": { "pgpgin": 8 } }
    ]);
    record.custom.insert("phases".to_string(), phases);
    record
}

fn verdicts(text: &str, records: &[Record]) -> Vec<Verdict> {
    judge(&bounds(text), records, &Stored::new())
}

#[test]
fn a_bound_holds_on_every_run_or_is_broken() {
    let text = "[[bound]]\nmetric = \"pgpgin / ops\"\nat_most = 4\nat_least = 1";
    let of = |pages: [u64; 2]| {
        let runs = [run("a", 1, pages[0]), run("a", 2, pages[1])];
        let all = verdicts(text, &runs);
        (all[0].judged, all[0].found.clone(), status(&all))
    };
    assert_eq!(of([40, 40]), (Judged::Holds, "4".to_string(), 0));
    assert_eq!(of([40, 41]), (Judged::Broken, "4, 4.100".to_string(), 1));
    assert_eq!(of([9, 40]).0, Judged::Broken);
}

#[test]
fn a_phase_has_figures_of_its_own() {
    let bound = |metric: &str, phase: &str| {
        let text = format!(
            "[[bound]]\nmetric = \"{metric}\"\nphase = \"{phase}\"\nat_most = 2\nat_least = 2"
        );
        verdicts(&text, &[run("a", 1, 100)]).remove(0)
    };
    assert_eq!(bound("pgpgin/ops", "scan").judged, Judged::Holds);
    assert_eq!(bound("ops_per_s", "scan").judged, Judged::Holds);
    let unknown = bound("pgpgin", "scn");
    assert_eq!(unknown.judged, Judged::Unknown);
    assert_eq!(unknown.found, "no phase scn (did you mean scan?)");
}

#[test]
fn what_cannot_be_judged_is_passed_over_unless_something_is_broken() {
    let typo = "[[bound]]\nmetric = \"pgpgn\"\nat_most = 4\n";
    let all = verdicts(typo, &[run("a", 1, 4)]);
    assert_eq!(
        (status(&all), all[0].found.as_str()),
        (125, "no figure pgpgn (did you mean pgpgin?)")
    );
    let both = format!("{typo}[[bound]]\nmetric = \"pgpgin\"\nat_most = 4");
    assert_eq!(status(&verdicts(&both, &[run("a", 1, 5)])), 1);
    assert_eq!(status(&verdicts(&both, &[run("a", 1, 4)])), 125);
    assert_eq!(status(&[]), 125, "no bound is said of what ran");
    let divided = "[[bound]]\nmetric = \"ops / zero\"\nat_most = 4";
    assert!(verdicts(divided, &[run("a", 1, 4)])[0].found.ends_with("divided by 0"));
}

#[test]
fn a_stored_record_is_a_measure() {
    let bounds = bounds("[[bound]]\nmetric = \"pgpgin\"\nrecord = \"r\"\nwithin = \"5%\"");
    let judged = |pages: u64, stored: &[Record]| {
        let stored = Stored::from([(PathBuf::from("r"), stored.to_vec())]);
        judge(&bounds, &[run("a", 1, pages)], &stored).remove(0)
    };
    let other = [run("b", 1, 1000)];
    assert_eq!(judged(1050, &other).judged, Judged::Holds, "the only one of this seed");
    assert_eq!(judged(949, &other).judged, Judged::Broken);
    assert_eq!(judged(949, &other).found, "949 against 1000");
    let several = [run("b", 1, 1), run("c", 1, 1), run("a", 2, 1)];
    assert_eq!(judged(1000, &several).found, "r: no record of seed 1");
    assert_eq!(judged(1000, &[run("b", 1, 1), run("a", 1, 1000)]).judged, Judged::Holds);
}

#[test]
fn kills_and_generations_are_judged() {
    let text = "[[bound]]\nno_oom_kill = true\n[[bound]]\nsound_generations = true";
    let mut record = run("a", 1, 1);
    let all = verdicts(text, std::slice::from_ref(&record));
    assert_eq!((all[0].judged, all[1].judged), (Judged::Holds, Judged::Unknown));
    record.custom.insert("lru_gen".to_string(), "memcg 1 /\n node 0\n 0 1 2 3\n".into());
    record.counters.insert("oom_kill".to_string(), 2);
    let all = verdicts(text, std::slice::from_ref(&record));
    assert_eq!((all[0].judged, all[1].judged), (Judged::Broken, Judged::Holds));
    assert_eq!(all[0].found, "2 killed");
    record.counters.insert("oom_kill".to_string(), 0);
    record.custom.insert("stopped".to_string(), "Kernel panic".into());
    assert_eq!(verdicts(text, &[record])[0].found, "Kernel panic");
}

#[test]
fn a_bound_may_be_said_of_one_variant() {
    let text = "[[bound]]\nmetric = \"pgpgin\"\nat_most = 4\nvariant = \"b\"";
    let all = verdicts(text, &[run("a", 1, 9), run("b", 1, 4)]);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].variant.as_str(), all[0].judged), ("b", Judged::Holds));
}

fn example_verdicts() -> Vec<Verdict> {
    let verdict = |name: &str, judged, found: &str| Verdict {
        name: name.to_string(),
        variant: "k".to_string(),
        wanted: "at most <2>".to_string(),
        judged,
        found: found.to_string(),
    };
    vec![
        verdict("one", Judged::Holds, "1"),
        verdict("a & #b", Judged::Broken, "it's 3"),
        verdict("c", Judged::Unknown, "no\nfigure \u{1b}"),
    ]
}

#[test]
fn people_read_a_line_a_bound() {
    insta::assert_snapshot!(lines("p", Ok(&example_verdicts()[..2])), @r"
    ok       k: one: 1 (at most <2>)
    BROKEN   k: a & #b: it's 3 (at most <2>)
    p: 1 of 2 bounds hold
    ");
    assert_eq!(lines("p", Err("no\nboot")), "unjudged p: no boot\n");
}

#[test]
fn tap_is_escaped() {
    insta::assert_snapshot!(tap(Ok(&example_verdicts())), @r"
    TAP version 13
    1..3
    ok 1 - k: one
      ---
      found: '1'
      wanted: 'at most <2>'
      ...
    not ok 2 - k: a & \#b
      ---
      found: 'it''s 3'
      wanted: 'at most <2>'
      ...
    ok 3 - k: c # SKIP no figure
    ");
    assert_eq!(tap(Err("it\ndied")), "TAP version 13\nBail out! it died\n");
}

#[test]
fn junit_is_escaped() {
    let text = junit("p", Ok(&example_verdicts()));
    assert!(text.contains("tests=\"3\" failures=\"1\""), "{text}");
    assert!(text.contains("name=\"a &amp; #b\"") && text.contains("&lt;2&gt;"), "{text}");
    assert!(!text.contains(char::from(27)), "{text}");
    assert!(junit("p", Err("<x>")).contains("<error message=\"&lt;x&gt;\"/>"));
}
