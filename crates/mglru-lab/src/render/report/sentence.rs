//! Says in one sentence what a run found.

use crate::compare::Comparison;
use crate::render::count;
use crate::report::Report;

/// Says what the first metric of the plan became under the first variant after the base.
pub fn of(report: &Report) -> String {
    let differs =
        |c: &&Comparison| c.variant != c.base && (c.ratio.is_some() || c.mean != c.base_mean);
    match report.comparisons.iter().find(differs) {
        Some(comparison) if comparison.ratio.is_none() => beside_zero(comparison),
        Some(comparison) => compared(comparison),
        None => alone(report),
    }
}

/// Nothing is a multiple of zero: both values are said.
fn beside_zero(c: &Comparison) -> String {
    let Comparison { variant, metric, base, mean, base_mean, .. } = c;
    let (place, runs) = (place(c), count(c.n as u64, "pair of runs", "pairs of runs"));
    format!("{variant}{place}: {metric} is {mean} where it is {base_mean} under {base} ({runs}).")
}

fn place(c: &Comparison) -> String {
    if c.point.is_empty() { String::new() } else { format!(" at {}", c.point) }
}

fn compared(c: &Comparison) -> String {
    let ratio = c.ratio.unwrap_or(1.0);
    let place = place(c);
    let change = change(ratio);
    let Some([low, high]) = c.ci95 else {
        return format!(
            "{}{place}: {} is {change} under {} in a single pair of runs.",
            c.variant, c.metric, c.base
        );
    };
    if low <= 1.0 && high >= 1.0 {
        return format!(
            "{}{place}: no change of {} against {} shows in {} pairs of runs \
             (95 % interval {} to {}).",
            c.variant,
            c.metric,
            c.base,
            c.n,
            percent(low),
            percent(high)
        );
    }
    format!(
        "{}{place}: {} is {change} under {} (95 % interval {} to {}, {} pairs of runs).",
        c.variant,
        c.metric,
        c.base,
        percent(low),
        percent(high),
        c.n
    )
}

fn alone(report: &Report) -> String {
    let runs = count(report.records.len() as u64, "run", "runs");
    format!("{runs}; nothing to compare: a single variant, or no metric that both have.")
}

fn change(ratio: f64) -> String {
    let word = if ratio < 1.0 { "lower" } else { "higher" };
    match ratio {
        r if r >= 3.0 => format!("{r:.1} times that"),
        r => format!("{:.1} % {word} than", 100.0 * (r - 1.0).abs()),
    }
}

fn percent(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * (ratio - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::record::example;

    fn said(after: &[f64]) -> String {
        let text = "name=\"t\"\ntitle=\"t\"\nvariants=[\"before\",\"after\"]\n\
                    metrics=[\"ops_per_s\"]";
        let plan = Plan::parse("t", text, &[]).unwrap();
        let pair = |(seed, &ops): (usize, &f64)| {
            [example("before", seed as u64, 100.0), example("after", seed as u64, ops)]
        };
        of(&Report::new(&plan, "sim", after.iter().enumerate().flat_map(pair).collect()))
    }

    #[test]
    fn a_change_a_single_pair_and_no_change_are_distinguished() {
        let clear = said(&[120.0, 121.0, 119.0]);
        assert!(
            clear.starts_with("after: ops_per_s is 20.0 % higher than under before"),
            "{clear}"
        );
        assert!(clear.contains("3 pairs of runs"), "{clear}");
        assert!(said(&[80.0]).contains("20.0 % lower than under before in a single pair"));
        assert!(said(&[80.0, 130.0]).contains("no change of ops_per_s"));
        assert!(said(&[420.0]).contains("ops_per_s is 4.2 times that under before"));
    }

    #[test]
    fn what_is_beside_zero_is_said_by_its_values() {
        let text = "name=\"t\"\ntitle=\"t\"\nvariants=[\"before\",\"after\"]\n\
                    metrics=[\"oom_kill\", \"ops_per_s\"]";
        let plan = Plan::parse("t", text, &[]).unwrap();
        let run = |variant: &str, kills: u64| {
            let mut record = example(variant, 1, 100.0);
            record.counters.insert("oom_kill".to_string(), kills);
            record
        };
        let of = |kills: [u64; 2]| {
            let records = vec![run("before", kills[0]), run("after", kills[1])];
            of(&Report::new(&plan, "sim", records))
        };
        let said = "after: oom_kill is 1 where it is 0 under before (1 pair of runs).";
        assert_eq!(of([0, 1]), said);
        assert!(of([0, 0]).starts_with("after: ops_per_s is 0.0 % "), "{}", of([0, 0]));
    }
}
