//! Names in bounds that no kernel is to blame for: a typo must not pass for a kernel that cannot be
//! judged, or `git bisect` skips every version.

use super::{figures, killed};
use crate::counters;
use crate::plan::bound::Bound;
use crate::record::Record;
use mglru_error::{KeyError, did_you_mean};

/// Figures that a record may lack, for want of time or of operations.
const RATES: [&str; 9] = [
    "ops",
    "ops_per_s",
    "virtual_s",
    "latency_us.mean",
    "latency_us.p50",
    "latency_us.p90",
    "latency_us.p95",
    "latency_us.p99",
    "latency_us.max",
];

/// Finds the first bound that names a phase or a figure that its runs do not have.
///
/// # Errors
/// Names the bound's key, with near names. A bound that is `optional` may name any figure.
pub fn check(bounds: &[Bound], records: &[Record]) -> Result<(), KeyError> {
    for (at, bound) in bounds.iter().enumerate() {
        let meant = |run: &&Record| bound.variant.as_ref().is_none_or(|name| *name == run.variant);
        for run in records.iter().filter(meant) {
            one(bound, run).map_err(|e| e.within(&format!("bound[{at}]")))?;
        }
    }
    Ok(())
}

fn one(bound: &Bound, run: &Record) -> Result<(), KeyError> {
    let Some(metric) = &bound.metric else { return Ok(()) };
    let run = match figures(run, bound.phase.as_deref()) {
        Ok(run) => run,
        // A run that was cut short may not have come to the phase.
        Err(_) if !killed(run).holds => return Ok(()),
        Err(problem) => {
            return Err(KeyError::value("phase", bound.phase.as_deref().unwrap_or(""), problem));
        }
    };
    match unknown(&run, metric) {
        Some(name) if !bound.optional => {
            let near = did_you_mean(name, run.counters.keys().map(String::as_str));
            let problem = format!("no figure of that name{near}; optional = true allows it");
            Err(KeyError::value("metric", name, problem))
        }
        _ => Ok(()),
    }
}

/// The part of a metric that neither the run nor this program knows.
fn unknown<'a>(run: &Record, metric: &'a str) -> Option<&'a str> {
    let known = |name: &str| {
        let name = name.trim();
        let is_counter = counters::is_known(name);
        run.metric(name).is_some() || is_counter || RATES.contains(&name)
    };
    unknown_part(metric, known)
}

/// Finds the part of a metric that is not known. `None`: the metric is, or both sides of a
/// quotient are.
pub(crate) fn unknown_part(metric: &str, known: impl Fn(&str) -> bool) -> Option<&str> {
    let mut quotients = metric.match_indices('/').map(|(at, _)| metric.split_at(at));
    if known(metric) || quotients.any(|(over, under)| known(over) && known(&under[1..])) {
        return None;
    }
    match metric.starts_with('/') {
        true => Some(metric),
        false => metric.split('/').map(str::trim).find(|name| !known(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::{bounds, run};

    fn mistake(text: &str) -> Result<(), String> {
        let text = format!("[[bound]]\nat_most = 1\n{text}");
        check(&bounds(&text), &[run("a", 1, 4)]).map_err(|e| e.to_string())
    }

    #[test]
    fn a_name_that_nothing_has_is_a_mistake() {
        assert_eq!(
            mistake("metric = \"pgpgn\"").unwrap_err(),
            "bound[0].metric = pgpgn: no figure of that name (did you mean pgpgin?); \
             optional = true allows it"
        );
        let message = mistake("metric = \"pgpgin / opps\"").unwrap_err();
        assert!(message.starts_with("bound[0].metric = opps: no figure"), "{message}");
        let message = mistake("metric = \"/b:anon / ops\"").unwrap_err();
        assert!(message.starts_with("bound[0].metric = /b:anon / ops: no figure"), "{message}");
        let message = mistake("metric = \"pgpgin\"\nphase = \"scn\"").unwrap_err();
        assert_eq!(message, "bound[0].phase = scn: no phase scn (did you mean scan?)");
    }

    #[test]
    fn what_a_kernel_may_lack_is_none() {
        for text in [
            "metric = \"pgpgin / zero\"",
            "metric = \"/a:anon / ops\"",
            "metric = \"pswpin\"",
            "metric = \"pgsteal_direct / pgscan_direct\"",
            "metric = \"latency_us.p99\"",
            "metric = \"of_my_own\"\noptional = true",
            "metric = \"typo\"\nvariant = \"b\"",
        ] {
            assert_eq!(mistake(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_run_that_was_cut_short_need_not_have_every_phase() {
        let mut cut = run("a", 1, 4);
        cut.custom.insert("stopped".to_string(), "Kernel panic".into());
        let bounds = bounds("[[bound]]\nmetric = \"pgpgin\"\nphase = \"late\"\nat_most = 1");
        assert_eq!(check(&bounds, &[cut]), Ok(()));
    }
}
