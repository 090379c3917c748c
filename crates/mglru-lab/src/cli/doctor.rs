//! `mglru doctor`: what this host offers the kernel backend, and the one line for what is missing.

use std::fmt::Write;

use super::Answer;
use crate::backend::kernel::{Finding, install, look};
use crate::error::Error;

/// Arguments of `mglru doctor`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Install what is missing (Debian: apt-get) and fetch the default kernel into the cache
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
    Ok((table(&findings), u8::from(!complete)))
}

fn table(findings: &[Finding]) -> String {
    let mut text = "kernel backend\n".to_string();
    for Finding { what, state, needed } in findings {
        let (mark, about) = match (state, needed) {
            (Ok(about), _) => ("yes", about),
            (Err(fix), true) => ("NO", fix),
            (Err(fix), false) => ("no", fix),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {mark:3}  {what:20} {about}");
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
        let text =
            table(&[finding(Ok("/usr/bin/fio"), true), finding(Err("apt-get install fio"), false)]);
        assert!(text.contains("yes  fio                  /usr/bin/fio\n"), "{text}");
        assert!(text.contains("no   fio                  apt-get install fio\n"), "{text}");
    }
}
