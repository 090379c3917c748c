//! The program's features, and what each needs of the host.

use std::path::PathBuf;

use mglru_pager::Fact;
use mglru_pager::launch::{build_folder, malloc};

use super::readable;
use mglru_error::Error;
use mglru_lab::backend::kernel::{Finding, look};
use mglru_lab::plans;

/// Names a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Name {
    /// Simulates the machine
    Sim,
    /// Offers the built-in plans
    Plans,
    /// Holds counters measured on real kernels, for `mglru validate`
    Truth,
    /// Boots kernels
    Kernel,
    /// Runs programs under a budget
    Exec,
    /// Captures counters of this machine
    Capture,
    /// Writes the page of a run
    Page,
}

impl Name {
    pub(super) const ALL: [Self; 7] =
        [Self::Sim, Self::Plans, Self::Truth, Self::Kernel, Self::Exec, Self::Capture, Self::Page];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Plans => "plans",
            Self::Truth => "truth",
            Self::Kernel => "kernel",
            Self::Exec => "exec",
            Self::Capture => "capture",
            Self::Page => "page",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Sim => "the simulated machine: mglru run, ablate, trace",
            Self::Plans => "built-in plans: mglru list",
            Self::Truth => "counters measured on real kernels: mglru validate",
            Self::Kernel => "booted kernels: --backend kernel, mglru check, diverge, profile",
            Self::Exec => "programs under a budget: mglru exec, ctl, top",
            Self::Capture => "counters of this machine: mglru capture",
            Self::Page => "the page of a run: mglru report",
        }
    }
}

/// A feature with what it needs.
pub(super) struct Feature {
    pub(super) name: Name,
    pub(super) parts: Vec<Finding>,
}

impl Feature {
    /// Looks at this host; `thorough` boots a guest and builds what is built on first use.
    pub(super) fn of(name: Name, thorough: bool) -> Self {
        let parts = match name {
            Name::Sim => vec![held("model", "in the program".into())],
            Name::Plans => plans(),
            Name::Truth => truth(),
            Name::Kernel => look(thorough),
            Name::Exec => exec(),
            Name::Capture => readable::all(),
            Name::Page => vec![held("scripts", "in the program; a browser shows them".into())],
        };
        Self { name, parts }
    }

    /// Tells whether everything is there that it cannot do without.
    pub(super) fn works(&self) -> bool {
        self.parts.iter().all(|part| part.state.is_ok() || !part.needed)
    }
}

/// Something that the program itself holds.
fn held(what: &str, detail: String) -> Finding {
    Finding { what: what.to_string(), state: Ok(detail), needed: true }
}

fn plans() -> Vec<Finding> {
    let state = plans::all().map(|plans| format!("{} plans", plans.len()));
    let state = state.map_err(|e| format!("mend or remove the plan: {e}"));
    vec![Finding { what: "plans".to_string(), state, needed: true }]
}

fn truth() -> Vec<Finding> {
    let part = |&(version, bytes): &(&str, &[u8])| {
        let text = mglru_fidelity::texts::held(version, bytes);
        let state = text.map(|text| format!("{} records", text.text.lines().count()));
        let state = state.map_err(|e| format!("install mglru again: {e}"));
        Finding { what: version.to_string(), state, needed: true }
    };
    mglru_fidelity::texts::SHIPPED.iter().map(part).collect()
}

fn exec() -> Vec<Finding> {
    let library = library().map_err(|e| e.to_string());
    let malloc = malloc().map(|path| path.display().to_string());
    let malloc = malloc.ok_or_else(|| "apt-get install libjemalloc2".to_string());
    let part = |what: &str, state, needed| Finding { what: what.to_string(), state, needed };
    let ours = [part("preload library", library, true), part("jemalloc", malloc, false)];
    ours.into_iter().chain(mglru_pager::probe().into_iter().map(of_pager)).collect()
}

/// Where the preload library is, or will be.
fn library() -> Result<String, Error> {
    if let Some(path) = mglru_carried::library()? {
        return Ok(path.display().to_string());
    }
    let built = |folder: PathBuf| format!("built on first use, in {}", folder.display());
    build_folder().map(built).map_err(|e| Error::Request(e.to_string()))
}

/// A fact of the pager's: what is there, or what is lost without it and how to mend that.
fn of_pager(fact: Fact) -> Finding {
    let state = match fact.ok {
        true => Ok(fact.detail),
        false => Err(format!("{}; {}", fact.detail, fact.fix)),
    };
    Finding { what: fact.what.to_string(), state, needed: fact.required }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pager_without_something_says_what_that_costs() {
        let fact = |ok| Fact {
            what: "fuse",
            ok,
            required: true,
            detail: "detail".to_string(),
            fix: "mend it",
        };
        assert_eq!(of_pager(fact(true)).state, Ok("detail".to_string()));
        assert_eq!(of_pager(fact(false)).state, Err("detail; mend it".to_string()));
    }

    #[test]
    fn what_the_program_holds_is_never_missing() {
        for name in [Name::Sim, Name::Plans, Name::Truth, Name::Page] {
            let feature = Feature::of(name, false);
            assert!(feature.works() && !feature.parts.is_empty(), "{}", name.word());
        }
        assert_eq!(
            Feature::of(Name::Truth, false).parts.len(),
            mglru_fidelity::texts::SHIPPED.len()
        );
    }
}
