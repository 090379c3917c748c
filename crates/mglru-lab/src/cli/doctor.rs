//! `mglru doctor`: what this host offers the kernel backend, and the one line for what is missing.

use std::fmt::Write;

use super::Answer;
use crate::backend::kernel::{Finding, install, look};
use crate::error::Error;
use mglru_pager::Fact;

/// Arguments of `mglru doctor`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Install what is missing (Debian: apt-get) and fetch the default kernel and the newest into
    /// the cache
    #[arg(long)]
    install: bool,
    /// Do not boot a guest to find out whether KVM works, and do not build the guest program
    #[arg(long)]
    quick: bool,
}

pub(super) fn run(args: &Args) -> Answer {
    if args.install {
        install().map_err(Error::Request)?;
    }
    let findings = look(!args.quick);
    let complete = findings.iter().all(|finding| finding.state.is_ok() || !finding.needed);
    let pager: Vec<Finding> = mglru_pager::probe().into_iter().map(of_pager).collect();
    let text = table("programs and kernels", &findings) + &table("live pager", &pager);
    Ok((text, u8::from(!complete)))
}

/// A fact of the pager's: what is there, or what is lost without it and how to mend that.
fn of_pager(fact: Fact) -> Finding {
    let state = match fact.ok {
        true => Ok(fact.detail),
        false => Err(format!("{}; {}", fact.detail, fact.fix)),
    };
    Finding { what: fact.what.to_string(), state, needed: fact.required }
}

fn table(title: &str, findings: &[Finding]) -> String {
    let width = findings.iter().map(|f| f.what.len()).max().unwrap_or(0);
    let mut text = format!("{title}\n");
    for Finding { what, state, needed } in findings {
        let (mark, about) = match (state, needed) {
            (Ok(about), _) => ("yes", about),
            (Err(fix), true) => ("NO", fix),
            (Err(fix), false) => ("no", fix),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {mark:3}  {what:width$}  {about}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_stands_beside_its_remedy() {
        let finding = |state: Result<&str, &str>, needed| Finding {
            what: "fio".to_string(),
            state: state.map(str::to_string).map_err(str::to_string),
            needed,
        };
        let findings =
            [finding(Ok("/usr/bin/fio"), true), finding(Err("apt-get install fio"), false)];
        let text = table("programs", &findings);
        assert_eq!(text, "programs\n  yes  fio  /usr/bin/fio\n  no   fio  apt-get install fio\n");
    }

    #[test]
    fn a_pager_without_something_says_what_that_costs() {
        let fact = |ok| Fact {
            what: "fuse",
            ok,
            required: true,
            detail: "detail".to_string(),
            fix: "mend it",
        };
        assert_eq!(table("", &[of_pager(fact(true))]), "\n  yes  fuse  detail\n");
        assert_eq!(table("", &[of_pager(fact(false))]), "\n  NO   fuse  detail; mend it\n");
    }
}
