//! `mglru run all`: every plan that answers to published figures and needs no booted kernel, in
//! brief, on one page.

use super::run::{Output, default_dir, report};
use super::{Answer, Asked, Format};
use mglru_error::Error;
use mglru_lab::backend;
use mglru_lab::judge::Verdict;
use mglru_lab::plan::Plan;
use mglru_lab::plans;
use mglru_lab::render;
use mglru_lab::report::Report;
use mglru_lab::spec::{Experiment, Selection};

/// Runs what is missing of every plan; the page is Markdown, or all reports as one JSON list.
pub(super) fn execute(asked: &Asked, output: &Output) -> Answer {
    refuse(asked, output)?;
    let mut reports = Vec::new();
    for (name, _) in plans::all()? {
        let plan = plans::find(&name, &[])?;
        if plan.is_judged() && plan.backends[0] != "kernel" {
            reports.push(brief(plan, asked, output)?);
        }
    }
    let text = match output.format {
        Format::Json => render::json(&reports),
        _ => render::page(&reports),
    };
    let missed = reports.iter().any(|report| report.verdict == Verdict::Missed);
    Ok((text, u8::from(missed)))
}

/// Refuses options that mean something for one plan only.
fn refuse(asked: &Asked, output: &Output) -> Result<(), Error> {
    let given = [
        ("--variant", !asked.variants.is_empty()),
        ("--base", asked.base.is_some()),
        ("--set", !asked.sets.is_empty()),
        ("--scale", asked.scale.is_some()),
        ("--backend A,B", asked.backends.len() > 1),
        ("--skin", output.skin.is_some()),
        ("--format html", output.format == Format::Html),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Error::Request(format!("{option}: not with `run all`"))),
        None => Ok(()),
    }
}

fn brief(plan: Plan, asked: &Asked, output: &Output) -> Result<Report, Error> {
    let backend = backend::by_name(asked.backends.first().unwrap_or(&plan.backends[0]))?;
    let selection = Selection { seeds: asked.seeds, ..Selection::default() }.or(&plan.all);
    let name = plan.name.clone();
    let experiment = Experiment::new(plan, &selection, backend)?;
    let dir = output.out.as_ref().map_or_else(|| default_dir(&experiment), |out| out.join(name));
    report(&experiment, &dir, output)
}
