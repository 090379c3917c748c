//! Which variants run on which backend, when a plan is run on one it was not written for, or on
//! several.

use crate::backend::{self, Backend};
use crate::fit::{Fit, Notes};
use crate::plan::Plan;
use crate::spec::{Experiment, Selection};
use crate::variant::Variant;
use mglru_error::Error;

/// Said of a plan's variants when `--kernel NAME=IMAGE` names what runs.
const NAMED: &str = "the kernels named by --kernel run";

/// Holds the selection as it is on the backend by whose names variants go.
pub struct Chosen<'a> {
    plan: &'a Plan,
    selection: Selection,
    named_by: &'static dyn Backend,
}

impl<'a> Chosen<'a> {
    /// Chooses what runs on the first backend; variants of `selection.given` stand in place of the
    /// plan's.
    pub fn new(
        plan: &'a Plan,
        mut selection: Selection,
        first: &'static dyn Backend,
    ) -> Result<Self, Error> {
        if selection.variants.is_empty() && !selection.given.is_empty() {
            let named = plan.variants.iter().map(|v| (v.name.clone(), NAMED.to_string()));
            selection.notes.left_out = named.collect();
        }
        if is_for(plan, first) {
            let named_by = backend::by_name(&plan.backends[0])?;
            if selection.is_quick {
                selection = selection.or(&plan.quick);
            }
            return Ok(Self { plan, selection, named_by });
        }
        if selection.given.is_empty() && selection.variants.is_empty() {
            selection.given = with_own(&first.own_variants(), &plan.variants);
        }
        let selection = fitted(plan, selection, first)?;
        Ok(Self { plan, selection, named_by: first })
    }

    /// Chooses what runs on one of the backends.
    pub fn on(&self, backend: &'static dyn Backend) -> Result<Selection, Error> {
        let mut selection = self.selection.clone();
        if backend.name() != self.named_by.name() {
            let variants = Experiment::variants(self.plan, &selection)?;
            selection.given = variants.iter().map(|v| self.named_by.modelled(v)).collect();
            selection.notes = Notes::default();
        }
        let mut selection = fitted(self.plan, selection, backend)?;
        let runs = selection.given.iter().any(|variant| variant.name == self.plan.base);
        selection.base = selection.base.or_else(|| runs.then(|| self.plan.base.clone()));
        Ok(selection)
    }
}

/// The plan's variants are meant for this backend.
fn is_for(plan: &Plan, backend: &dyn Backend) -> bool {
    plan.backends.iter().any(|name| name == backend.name())
}

/// The backend's own first, then those of the plan that have other names. A backend without own
/// ones takes the plan's.
fn with_own(own: &[Variant], plan: &[Variant]) -> Vec<Variant> {
    if own.is_empty() {
        return Vec::new();
    }
    let of_plan = |name: &str| plan.iter().find(|variant| variant.name == name).cloned();
    let first = own.iter().map(|v| of_plan(&v.name).unwrap_or_else(|| v.clone()));
    let others = plan.iter().filter(|v| own.iter().all(|one| one.name != v.name)).cloned();
    first.chain(others).collect()
}

/// The selection with what the backend cannot carry out taken out and named. What was asked for by
/// name stays, and is refused by name.
fn fitted(
    plan: &Plan,
    selection: Selection,
    backend: &'static dyn Backend,
) -> Result<Selection, Error> {
    let variants = Experiment::variants(plan, &selection)?;
    let fit = |variant: &Variant| match backend.fit(variant) {
        Fit::AsIs => refused(plan, &selection, backend, variant).map_or(Fit::AsIs, Fit::Not),
        Fit::InPlace(other, why) => match refused(plan, &selection, backend, &other) {
            Some(problem) => Fit::Not(problem),
            None => Fit::InPlace(other, why),
        },
        not => not,
    };
    let (given, notes) = Notes::sort(&variants, &fit);
    let by_name = !selection.variants.is_empty() && !notes.left_out.is_empty();
    if by_name || notes.is_empty() {
        return Ok(selection);
    }
    if given.is_empty() {
        let (file, name, list) = (&plan.file, backend.name(), notes.left_out_text());
        return Err(Error::Request(format!(
            "{file}: --backend {name}: no variant is left to run: {list}"
        )));
    }
    Ok(Selection { given, notes, ..selection })
}

/// Why a backend that the plan was not written for refuses what a variant changes about it, if it
/// takes the plan itself.
fn refused(
    plan: &Plan,
    selection: &Selection,
    backend: &'static dyn Backend,
    variant: &Variant,
) -> Option<String> {
    if variant.with.is_empty() || is_for(plan, backend) {
        return None;
    }
    let ready = |variant: Variant| {
        let scale = selection.scale;
        let alone = Selection { given: vec![variant], scale, ..Selection::default() };
        Experiment::new(plan.clone(), &alone, backend)
    };
    let problem = ready(variant.clone()).err()?.to_string();
    ready(Variant { with: Vec::new(), ..variant.clone() }).ok()?;
    Some(problem.strip_prefix(&format!("{}: ", plan.file)).unwrap_or(&problem).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{kernel::Kernel, sim::Sim};

    const VARIANTS: &str = "\"before\", \"classic\", \
        { name = \"p04\", base = \"before\", set = { p04 = true } }, \
        { name = \"warm\", base = \"classic\", set = { swappiness = 10 } }, \
        { name = \"roomy\", base = \"before\", with = { \"machine.memory\" = \"3GiB\" } }";

    fn plan(backend: &str, variants: &str) -> Plan {
        let text = format!(
            "name = \"t\"\ntitle = \"t\"\nbackend = {backend}\nvariants = [{variants}]\n\
             [workload]\nkind = \"none\""
        );
        Plan::parse("t.toml", &text, &[]).unwrap()
    }

    fn names(selection: &Selection) -> Vec<&str> {
        selection.given.iter().map(|variant| variant.name.as_str()).collect()
    }

    #[test]
    fn a_plan_of_the_model_runs_on_the_kernel_as_far_as_it_can() {
        let plan = plan("\"sim\"", VARIANTS);
        let chosen = Chosen::new(&plan, Selection::default(), &Kernel).unwrap();
        let found = chosen.on(&Kernel).unwrap();
        assert_eq!(names(&found), ["classic", "k6.12", "warm", "roomy"]);
        assert_eq!(
            found.notes.lines("kernel"),
            "left out on the kernel: before (a policy of the model); \
             p04 (switches of the model: reclaim.p04)\n\
             replaced on the kernel: roomy (k6.12 in place of before)\n"
        );
        // The model beside it runs what the kernel runs, under the same names.
        assert_eq!(names(&chosen.on(&Sim).unwrap()), names(&found));
    }

    #[test]
    fn the_model_first_runs_all_and_the_kernel_beside_it_what_it_can() {
        let plan = plan("\"sim\"", VARIANTS);
        let chosen = Chosen::new(&plan, Selection::default(), &Sim).unwrap();
        assert!(chosen.on(&Sim).unwrap().given.is_empty(), "the plan's own");
        let found = chosen.on(&Kernel).unwrap();
        assert_eq!(names(&found), ["classic", "warm", "roomy"]);
        assert_eq!(found.base, None, "the plan's does not run");
    }

    #[test]
    fn nothing_left_is_an_error_and_so_is_what_was_asked_for_by_name() {
        let own = plan("[\"kernel\", \"sim\"]", "\"after\", \"k6.12+p10\"");
        let chosen = Chosen::new(&own, Selection::default(), &Kernel).unwrap();
        assert_eq!(
            chosen.on(&Kernel).unwrap_err().to_string(),
            "t.toml: --backend kernel: no variant is left to run: after (a policy of the model); \
             k6.12+p10 (switches of the model: reclaim.p10)"
        );
        let plan = plan("\"sim\"", VARIANTS);
        let asked = |variant: &str| {
            let variants = vec![variant.to_string()];
            let selection = Selection { variants, ..Selection::default() };
            Chosen::new(&plan, selection, &Kernel).unwrap().on(&Kernel).unwrap()
        };
        assert!(asked("before").given.is_empty(), "left to the check that names it");
        assert_eq!(names(&asked("roomy")), ["roomy"]);
    }

    #[test]
    fn named_kernels_take_the_place_of_all_variants_and_that_is_said() {
        let plan = plan("\"sim\"", VARIANTS);
        let selection = Selection { given: vec![Variant::named("k6.12")], ..Selection::default() };
        let found = Chosen::new(&plan, selection, &Kernel).unwrap().on(&Kernel).unwrap();
        assert_eq!((names(&found), found.notes.left_out.len()), (vec!["k6.12"], 5));
    }
}
