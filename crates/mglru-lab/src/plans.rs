//! Where plans are found: `./plans/NAME.toml` first, so that an edited copy counts, then the copies
//! compiled in; anything with a `/` or ending in `.toml` is a path.

use std::fs;
use std::path::Path;

use crate::dotted::Assignment;
use crate::plan::Plan;
use mglru_error::{Error, did_you_mean_or_list};

/// Lists the plans compiled in, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("quickstart", include_str!("../../../plans/quickstart.toml")),
    ("mongodb", include_str!("../../../plans/mongodb.toml")),
    ("fio-zipf", include_str!("../../../plans/fio-zipf.toml")),
    ("fio-zipf-advised", include_str!("../../../plans/fio-zipf-advised.toml")),
    ("fio-uniform", include_str!("../../../plans/fio-uniform.toml")),
    ("chrome-node", include_str!("../../../plans/chrome-node.toml")),
    ("mysql", include_str!("../../../plans/mysql.toml")),
    ("kernel-build", include_str!("../../../plans/kernel-build.toml")),
    ("memcached-bulk", include_str!("../../../plans/memcached-bulk.toml")),
    ("bulk-move", include_str!("../../../plans/bulk-move.toml")),
    ("memcg-fairness", include_str!("../../../plans/memcg-fairness.toml")),
    ("tiny-groups", include_str!("../../../plans/tiny-groups.toml")),
    ("aging-oom", include_str!("../../../plans/aging-oom.toml")),
    ("throttle-oom", include_str!("../../../plans/throttle-oom.toml")),
    ("postmark", include_str!("../../../plans/postmark.toml")),
    ("fsmark", include_str!("../../../plans/fsmark.toml")),
    ("dd", include_str!("../../../plans/dd.toml")),
    ("android-launch", include_str!("../../../plans/android-launch.toml")),
    ("android-heavy", include_str!("../../../plans/android-heavy.toml")),
    ("highalloc", include_str!("../../../plans/highalloc.toml")),
    ("trace", include_str!("../../../plans/trace.toml")),
    ("read-scan", include_str!("../../../plans/read-scan.toml")),
    ("advice", include_str!("../../../plans/advice.toml")),
    ("large-folios", include_str!("../../../plans/large-folios.toml")),
    ("vm-dd", include_str!("../../../plans/vm-dd.toml")),
    ("vm-throttle-oom", include_str!("../../../plans/vm-throttle-oom.toml")),
    ("vm-stress", include_str!("../../../plans/vm-stress.toml")),
    ("vm-aging-oom", include_str!("../../../plans/vm-aging-oom.toml")),
    ("vm-fio-zipf", include_str!("../../../plans/vm-fio-zipf.toml")),
    ("vm-fio-uniform", include_str!("../../../plans/vm-fio-uniform.toml")),
    ("vm-mysql", include_str!("../../../plans/vm-mysql.toml")),
    ("vm-memcached", include_str!("../../../plans/vm-memcached.toml")),
    ("vm-fio-memcgs", include_str!("../../../plans/vm-fio-memcgs.toml")),
    ("vm-stale-oom", include_str!("../../../plans/vm-stale-oom.toml")),
    ("vm-anon-swap", include_str!("../../../plans/vm-anon-swap.toml")),
    ("vm-kswapd", include_str!("../../../plans/vm-kswapd.toml")),
    ("vm-protected", include_str!("../../../plans/vm-protected.toml")),
    ("vm-removed", include_str!("../../../plans/vm-removed.toml")),
    ("check-scan", include_str!("../../../plans/check-scan.toml")),
    ("real-anon", include_str!("../../../plans/real-anon.toml")),
    ("real-mix", include_str!("../../../plans/real-mix.toml")),
    ("real-groups", include_str!("../../../plans/real-groups.toml")),
];

const FOLDER: &str = "plans";

/// Finds and reads a plan.
///
/// # Errors
/// When there is no such plan, or it is not valid.
pub fn find(name: &str, sets: &[Assignment]) -> Result<Plan, Error> {
    let (file, text) = source(name)?;
    Plan::parse(&file, &text, sets)
}

/// Lists names of all plans that can be found by name, with title and size.
///
/// # Errors
/// When a plan in `./plans` is not valid.
pub fn all() -> Result<Vec<(String, String)>, Error> {
    let mut names: Vec<String> = BUILT_IN.iter().map(|(name, _)| name.to_string()).collect();
    names.extend(in_folder().into_iter().filter(|n| !BUILT_IN.iter().any(|(b, _)| b == n)));
    names.into_iter().map(|name| Ok((name.clone(), about(&find(&name, &[])?)))).collect()
}

/// Says what a plan is and how much of it is run: runs, and the scale unless it is 1.
fn about(plan: &Plan) -> String {
    let runs = match plan.variants.len() * plan.seeds.len() {
        1 => "1 run".to_string(),
        runs => format!("{runs} runs"),
    };
    match plan.scale {
        1.0 => format!("{} ({runs})", plan.title),
        scale => format!("{} ({runs} at 1/{})", plan.title, (1.0 / scale).round()),
    }
}

fn source(name: &str) -> Result<(String, String), Error> {
    let local = format!("{FOLDER}/{name}.toml");
    let path = match name.contains('/') || name.ends_with(".toml") {
        true => name,
        false => &local,
    };
    if path == name || Path::new(path).is_file() {
        let text = fs::read_to_string(path).map_err(|e| Error::io(Path::new(path), e))?;
        return Ok((path.to_string(), text));
    }
    let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
    built_in.map(|(_, text)| (format!("plan {name}"), text.to_string())).ok_or_else(|| {
        let folder = in_folder();
        let known = BUILT_IN.iter().map(|(n, _)| *n).chain(folder.iter().map(String::as_str));
        let near = did_you_mean_or_list(name, known, "mglru list plans");
        Error::Request(format!("no plan named {name}{near}"))
    })
}

fn in_folder() -> Vec<String> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let name = |path: std::path::PathBuf| {
        let toml = path.extension().is_some_and(|e| e == "toml");
        toml.then(|| path.file_stem().map(|s| s.to_string_lossy().into_owned())).flatten()
    };
    let mut names: Vec<String> = entries.filter_map(|e| name(e.path())).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_plan_is_valid_and_named_like_its_file() {
        for (name, text) in BUILT_IN {
            let plan = Plan::parse(name, text, &[]).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(plan.name, *name);
            assert!(!plan.title.is_empty() && !plan.metrics.is_empty(), "{name}");
        }
    }

    #[test]
    fn every_plan_of_the_source_tree_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.file_stem().unwrap().to_string_lossy();
            let plan = path.extension().is_some_and(|e| e == "toml");
            assert!(!plan || BUILT_IN.iter().any(|(known, _)| *known == name), "{name}");
        }
    }

    #[test]
    fn unknown_plans_list_near_names() {
        let error = find("mongdb", &[]).unwrap_err().to_string();
        assert_eq!(error, "no plan named mongdb (did you mean mongodb?)");
    }
}
