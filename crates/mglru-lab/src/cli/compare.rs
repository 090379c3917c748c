//! `mglru compare`.

use std::path::PathBuf;

use super::{Answer, Format};
use crate::compare::{self, Comparison, Table};
use crate::error::Error;
use crate::judge;
use crate::record::Record;
use crate::render;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  mglru compare mglru-runs/a mglru-runs/b
  mglru compare old.jsonl new.jsonl --metric ops_per_s --metric pgpgin/ops
  mglru compare a b --format json";

/// Arguments of `mglru compare`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Record file or run folder to compare with
    a: PathBuf,
    /// Record file or run folder under test
    b: PathBuf,
    /// Compare this metric only (repeatable), such as ops_per_s or pgpgin/ops
    #[arg(long = "metric", value_name = "M")]
    metrics: Vec<String>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

pub(super) fn run(args: &Args) -> Answer {
    let (a, b) = (store::load(&args.a)?, store::load(&args.b)?);
    let metrics = match args.metrics.is_empty() {
        true => compare::every_metric(&b),
        false => args.metrics.clone(),
    };
    let found = comparisons(&a, &b, &metrics);
    if found.is_empty() {
        return Err(Error::Request(format!(
            "{} and {} share no variant, seed and metric",
            args.a.display(),
            args.b.display()
        )));
    }
    let text = match args.format {
        Format::Table => render::comparisons(&found),
        Format::Json => render::json(&serde_json::json!({ "comparisons": found })),
        Format::Html => {
            return Err(Error::Request("--format html: compare prints table or json".into()));
        }
    };
    Ok((text, 0))
}

/// Each variant with its namesake; two lone variants with each other.
fn comparisons(a: &[Record], b: &[Record], metrics: &[String]) -> Vec<Comparison> {
    let (left, right) = (Table::new(a), Table::new(b));
    let lone = left.variants().len() == 1 && right.variants().len() == 1;
    let mut found = Vec::new();
    for point in left.points() {
        for base in left.variants() {
            let variant = if lone { &right.variants()[0] } else { base };
            let cells = (left.cell(base, point), right.cell(variant, point));
            if cells.0.is_empty() || cells.1.is_empty() {
                continue;
            }
            found.extend(metrics.iter().filter_map(|m| Comparison::new(m, cells.0, cells.1)));
        }
    }
    for c in &mut found {
        c.verdict = judge::unexpected(c);
        c.base = format!("A {}", c.base);
        c.variant = format!("B {}", c.variant);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::example;

    fn names(a: &[Record], b: &[Record]) -> Vec<String> {
        let found = comparisons(a, b, &["ops_per_s".to_string()]);
        found.into_iter().map(|c| format!("{} {}", c.base, c.variant)).collect()
    }

    #[test]
    fn namesakes_are_compared_and_lone_variants_with_each_other() {
        let before = example("before", 1, 1.0);
        let after = example("after", 1, 1.0);
        let both = [before.clone(), after.clone()];
        assert_eq!(names(&both, &both), ["A before B before", "A after B after"]);
        assert_eq!(names(&[before], &[after]), ["A before B after"]);
    }
}
