//! Carries out `mglru profile`: sets what functions cost in several runs side by side.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::Answer;
use mglru_error::Error;
use mglru_lab::profile::{Per, Side, Table, sides};
use mglru_lab::render;

/// Functions that people are shown.
const SHOWN: usize = 30;

const EXAMPLES: &str = "\
Examples:
  mglru run quickstart --profile --seeds 1 --out a       classic and k6.12 on the default kernel
  mglru profile a --top 20                               what differs between them
  mglru run quickstart --profile --kernel newest --out b
  mglru profile a --against b --variant k6.12            two kernels
  mglru profile a --against b --per operation            where they reclaim unlike numbers of pages
  mglru profile a --format svg > a.svg";

/// Arguments of `mglru profile`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Read this folder, written by `mglru run --profile`
    dir: PathBuf,
    /// Read another one too; its variants stand beside the first folder's
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Show this variant only (repeatable); the first is the measure of the others [default: all]
    #[arg(long = "variant", value_name = "V")]
    variants: Vec<String>,
    /// Count this phase of the workload [default: what the records measure]
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
    /// Divide instructions by these units; by runs, where a side has none of them
    #[arg(long, value_enum, default_value_t = Per::Page)]
    per: Per,
    /// Show so many functions [default: 30 in a table or picture, else all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print the result in this form
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
}

/// Says in which form the answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Prints a table for people.
    Table,
    /// Prints one JSON document.
    Json,
    /// Prints lines of `side;kernel;function count`.
    Collapsed,
    /// Draws a picture of bars.
    Svg,
}

pub(super) fn run(args: &Args) -> Answer {
    let phase = args.phase.as_deref();
    let mut found = sides(&args.dir, phase)?;
    if let Some(other) = &args.against {
        let lettered =
            |letter: &str, side: Side| Side { name: format!("{letter} {}", side.name), ..side };
        let others = sides(other, phase)?;
        let first = found.into_iter().map(|side| lettered("A", side));
        found = first.chain(others.into_iter().map(|side| lettered("B", side))).collect();
    }
    let chosen = chosen(found, &args.variants, &args.dir)?;
    let mut table = Table::new(chosen, args.per);
    let is_for_people = matches!(args.format, Form::Table | Form::Svg);
    table.cut(args.top.unwrap_or(if is_for_people { SHOWN } else { usize::MAX }));
    let text = match args.format {
        Form::Table => render::profile_table(&table),
        Form::Json => render::json(&table),
        Form::Collapsed => render::collapsed(&table),
        Form::Svg => render::profile_picture(&table),
    };
    Ok((text, 0))
}

/// Sides of the variants that were asked for, in the order they were asked for.
fn chosen(sides: Vec<Side>, variants: &[String], dir: &Path) -> Result<Vec<Side>, Error> {
    if variants.is_empty() {
        return Ok(sides);
    }
    let mut chosen = Vec::new();
    for variant in variants {
        let is_it = |side: &&Side| {
            let name = side.name.strip_prefix("A ").or(side.name.strip_prefix("B "));
            let name = name.unwrap_or(&side.name);
            name == variant || name.starts_with(&format!("{variant} "))
        };
        let before = chosen.len();
        chosen.extend(sides.iter().filter(is_it).cloned());
        if chosen.len() == before {
            let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
            let (dir, has) = (dir.display(), names.join(", "));
            return Err(Error::Request(format!(
                "--variant {variant}: not in {dir} (it has: {has})"
            )));
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_stand_in_the_order_they_were_asked_for() {
        let side = |name: &str| Side { name: name.to_string(), ..Side::default() };
        let sides = || vec![side("A classic"), side("A k6.12 x=1"), side("B k6.12 x=1")];
        let names = |variants: &[&str]| {
            let variants: Vec<String> = variants.iter().map(ToString::to_string).collect();
            let found = chosen(sides(), &variants, Path::new("d")).map_err(|e| e.to_string())?;
            Ok(found.into_iter().map(|side| side.name).collect::<Vec<_>>().join(","))
        };
        assert_eq!(names(&["k6.12"]), Ok("A k6.12 x=1,B k6.12 x=1".to_string()));
        assert_eq!(names(&["k6.12", "classic"]).unwrap().split(',').next_back(), Some("A classic"));
        let error: String = names(&["after"]).unwrap_err();
        assert!(
            error.starts_with("--variant after: not in d (it has: A classic, A k6.12"),
            "{error}"
        );
    }
}
