//! `mglru doctor`: what each feature needs on this host, and the line to type for what is missing.

mod features;
mod readable;

use std::fmt::Write;

use serde_json::{Value as Json, json};

use self::features::{Feature, Name};
use super::Answer;
use mglru_error::Error;
use mglru_lab::backend::kernel::{Finding, install};
use mglru_lab::render;

const EXAMPLES: &str = "\
Examples:
  mglru doctor                  every feature
  mglru doctor exec capture     these alone; the exit status is of them
  mglru doctor --install        fetch QEMU, kernels and programs that are missing
  mglru doctor --json

Exit status: 0 the features work; 1 one lacks something that it needs.";

/// Arguments of `mglru doctor`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Look at these features [default: all]
    #[arg(value_enum, value_name = "FEATURE")]
    features: Vec<Name>,
    /// Install what is missing (Debian: apt-get) and fetch the default kernel and the newest into
    /// the cache
    #[arg(long)]
    install: bool,
    /// Do not boot a guest to find out whether KVM works, and do not build the guest program
    #[arg(long)]
    quick: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Answer {
    if args.install {
        install().map_err(Error::Request)?;
    }
    let wanted = |name: &Name| args.features.is_empty() || args.features.contains(name);
    let names = Name::ALL.into_iter().filter(wanted);
    let features: Vec<Feature> = names.map(|name| Feature::of(name, !args.quick)).collect();
    let works = features.iter().all(Feature::works);
    let text = if args.json { document(&features, works) } else { table(&features) };
    Ok((text, u8::from(!works)))
}

fn word(ok: bool) -> &'static str {
    if ok { "ok" } else { "missing" }
}

fn table(features: &[Feature]) -> String {
    let parts = || features.iter().flat_map(|feature| &feature.parts);
    let width = parts().map(|part| part.what.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for feature in features {
        let (name, state) = (feature.name.word(), word(feature.works()));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<10} {state:<7}  {}", feature.name.about());
        for Finding { what, state, needed } in &feature.parts {
            let optional = if state.is_err() && !needed { " (optional)" } else { "" };
            let (state, about) = (word(state.is_ok()), state.as_ref().unwrap_or_else(|fix| fix));
            let _ = writeln!(text, "           {state:<7}  {what:<width$}  {about}{optional}");
        }
    }
    text
}

fn document(features: &[Feature], works: bool) -> String {
    let part = |part: &Finding| {
        let (detail, fix) = (part.state.as_ref().ok(), part.state.as_ref().err());
        let (what, needed, ok) = (&part.what, part.needed, part.state.is_ok());
        json!({ "what": what, "ok": ok, "needed": needed, "detail": detail, "fix": fix })
    };
    let feature = |feature: &Feature| {
        let parts: Vec<Json> = feature.parts.iter().map(part).collect();
        json!({ "name": feature.name.word(), "ok": feature.works(), "parts": parts })
    };
    let features: Vec<Json> = features.iter().map(feature).collect();
    render::json(&json!({ "ok": works, "features": features }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(state: Result<&str, &str>, needed: bool) -> Feature {
        let state = state.map(str::to_string).map_err(str::to_string);
        let part = Finding { what: "fio".to_string(), state, needed };
        Feature { name: Name::Kernel, parts: vec![part] }
    }

    fn lines(feature: Feature) -> Vec<String> {
        table(&[feature]).lines().map(str::to_string).collect()
    }

    #[test]
    fn what_is_missing_stands_beside_the_line_to_type() {
        let there = lines(feature(Ok("/usr/bin/fio"), true));
        assert!(there[0].starts_with("kernel     ok       "), "{there:?}");
        assert_eq!(there[1], "           ok       fio  /usr/bin/fio");
        let lacks = lines(feature(Err("apt-get install fio"), true));
        assert!(lacks[0].starts_with("kernel     missing  "), "{lacks:?}");
        assert_eq!(lacks[1], "           missing  fio  apt-get install fio");
        let optional = lines(feature(Err("apt-get install fio"), false));
        assert!(optional[0].starts_with("kernel     ok       "), "{optional:?}");
        assert_eq!(optional[1], "           missing  fio  apt-get install fio (optional)");
    }

    #[test]
    fn the_document_says_the_same() {
        let text = document(&[feature(Err("mend it"), true)], false);
        let read: Json = serde_json::from_str(&text).unwrap();
        let part = json!({
            "what": "fio", "ok": false, "needed": true, "detail": null, "fix": "mend it",
        });
        let kernel = json!({ "name": "kernel", "ok": false, "parts": [part] });
        assert_eq!(read, json!({ "ok": false, "features": [kernel] }));
    }
}
