use super::*;
use crate::text::table;
use crate::verdict::Direction;

fn report(version: &str) -> Report {
    let id = "6mix.pread_z0.99.off.s1.r0".to_string();
    let row = Compared {
        id,
        version: version.into(),
        mglru: false,
        counter: "pgmajfault",
        kernel: 100,
        kernel_spread: 0.01,
        model: 150,
        rel_error: 0.5,
    };
    let summary = Summary { median_abs_rel_error: 0.5, p90_abs_rel_error: 0.5, n: 1 };
    let direction = Direction {
        job: "6mix.pread_z0.99".into(),
        counter: "pgmajfault",
        kernel: 0.1,
        model: -0.1,
        right: false,
    };
    let verdicts = Verdicts {
        runs: vec![row],
        summary: [("pgmajfault".to_string(), summary)].into(),
        directions: vec![direction],
        left_out: [("8dd.x".to_string(), "is no job".to_string())].into(),
        ..Verdicts::default()
    };
    let (rules, version) = (version::rules(version).ok(), version.to_string());
    Report::of(vec![Release { version, rules, verdicts }])
}

#[test]
fn a_variant_may_hold_dots() {
    assert_eq!(job_of("1mmap.z0.99_n8.on.s1.r0"), "1mmap.z0.99_n8");
}

#[test]
fn the_table_names_the_worst_and_the_wrong() {
    let text = table(&report("6.12.117"));
    assert!(text.contains("the direction is right in 0 of 1\n- wrong: 6mix.pread_z0.99"));
    assert!(text.contains("6mix.pread_z0.99.off.s1.r0"), "{text}");
    assert!(text.contains("+50.0 %") && text.contains("not replayed, is no job: 8dd.x"));
}

#[test]
fn the_page_gives_a_cause_to_what_is_far_off() {
    let text = markdown(&report("6.12.117"));
    assert!(
        text.contains("- 6mix.pread_z0.99 off `pgmajfault` +50.0 %:\n  when the kernel"),
        "{text}"
    );
    assert!(text.contains("| 6mix.pread_z0.99 | off | pgmajfault | 100 | 1.0 % | 150 |"));
}

#[test]
fn a_cause_found_on_one_version_explains_no_other() {
    let text = markdown(&report("7.3.4"));
    assert!(!text.contains("when the kernel sums up"), "{text}");
    assert!(text.contains("| 7.3.4 | `k7.3` | off | 50.0 % | 50.0 % | 1 | – | – | 0 |"), "{text}");
}
