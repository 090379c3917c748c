//! `mglru kernel`: kernels to boot, by version, and what one must have to be booted here.

use std::path::PathBuf;

use super::Answer;
use mglru_error::Error;
use mglru_lab::backend::Failure;
use mglru_lab::backend::kernel::{
    Fetched, Lack, fetch, fetched, fetched_image, fragment, known, located, order, probe,
};

pub(super) const EXAMPLES: &str = "\
Examples:
  mglru kernel list                            Debian's kernels, and those that are here
  mglru kernel fetch 7.1.13                    then: mglru check check-scan --kernel 7.1.13
  mglru kernel config > mglru.config           options for a kernel of one's own; then
      make tinyconfig && scripts/kconfig/merge_config.sh .config mglru.config && make bzImage
  mglru kernel check arch/x86/boot/bzImage     what it lacks, and the option that brings it";

/// Chooses the action on kernels.
#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// List Debian's kernels, and those that are here
    List {
        /// List only what is here: nothing is asked of the mirror
        #[arg(long)]
        local: bool,
    },
    /// Fetch a kernel and its modules into the cache; nothing is installed
    Fetch {
        /// Fetch this version: 7.1.13, 7.1 (its latest release) or newest
        #[arg(value_name = "VERSION")]
        version: String,
    },
    /// Print where the image of a fetched kernel is
    Path {
        /// Look for this version: 7.1.13, 7.1 (the latest that is here) or newest
        #[arg(value_name = "VERSION")]
        version: String,
    },
    /// Print the options that a kernel needs to run here without modules
    ///
    /// A kernel of one's own needs no modules then, and builds in minutes from make tinyconfig.
    /// For a source tree: mglru kernel config > mglru.config, then
    /// scripts/kconfig/merge_config.sh .config mglru.config.
    Config,
    /// Boot a kernel and say what it lacks of what runs need
    ///
    /// Exit status: 0 plans run on it; 1 something that all plans need is missing, or it does not
    /// boot.
    Check(Checked),
}

/// Names the kernel that `mglru kernel check` looks at.
#[derive(clap::Args)]
pub(super) struct Checked {
    /// Boot this bzImage, or a version that was fetched: 7.1.13, 7.1, newest
    #[arg(value_name = "IMAGE|VERSION")]
    image: PathBuf,
    /// Take its modules from this folder [default: lib/modules beside the image's boot folder]
    #[arg(long, value_name = "DIR")]
    modules: Option<PathBuf>,
}

pub(super) fn run(command: &Command) -> Answer {
    let text = match command {
        Command::Config => fragment(),
        Command::Check(checked) => return check(checked),
        Command::List { local: true } => list(&[], &fetched()),
        Command::List { local: false } => list(&known().map_err(Error::Request)?, &fetched()),
        Command::Fetch { version } => {
            format!("{}\n", fetch(version).map_err(Error::Request)?.image.display())
        }
        Command::Path { version } => {
            format!("{}\n", fetched_image(version).map_err(Error::Request)?.display())
        }
    };
    Ok((text, 0))
}

fn check(Checked { image, modules }: &Checked) -> Answer {
    let path = located(image).map_err(Error::Request)?;
    std::fs::metadata(&path).map_err(|e| Error::io(&path, e))?;
    if let Some(dir) = modules.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(Error::Request(format!("--modules {}: no folder there", dir.display())));
    }
    match probe(&path, modules.clone()) {
        Ok((release, lacks)) => Ok(verdict(&release, &lacks)),
        Err(Failure::Machine(problem)) => Ok((format!("{}: {problem}\n", image.display()), 1)),
        Err(Failure::Input(problem)) => Err(Error::Request(problem)),
    }
}

/// A line for everything that is missing, and one that sums up.
fn verdict(release: &str, lacks: &[Lack]) -> (String, u8) {
    let line = |lack: &Lack| match lack.only {
        None => format!("NO  {}: {}\n", lack.what, lack.fix),
        Some(plans) => format!("no  {} (only for {plans}): {}\n", lack.what, lack.fix),
    };
    let needed = lacks.iter().filter(|lack| lack.only.is_none()).count();
    let sum = match (needed, lacks.len()) {
        (0, 0) => "has all that runs need".to_string(),
        (0, _) => "runs plans, but for those named above".to_string(),
        (needed, _) => format!("runs no plan: {needed} needs are not met"),
    };
    let lines: String = lacks.iter().map(line).collect();
    (format!("{lines}{release} {sum}\n"), u8::from(needed > 0))
}

/// A line for each release, the newest first.
fn list(known: &[String], fetched: &[Fetched]) -> String {
    let here = |release: &str| fetched.iter().find(|kernel| kernel.release == release);
    let mut lines: Vec<(&str, String)> = known
        .iter()
        .filter(|release| here(release).is_none())
        .map(|release| (release.as_str(), "-".to_string()))
        .collect();
    let there = fetched.iter().map(|k| (k.release.as_str(), k.image.display().to_string()));
    lines.extend(there);
    lines.sort_by(|(a, _), (b, _)| order(b).cmp(&order(a)));
    let width = lines.iter().map(|(release, _)| release.len()).max().unwrap_or(0);
    lines.iter().map(|(release, image)| format!("{release:width$}  {image}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_stands_among_what_can_be_fetched() {
        let here = Fetched { release: "7.1.13+deb13".to_string(), image: "/k/vmlinuz".into() };
        let known = ["7.2.9+deb13", "7.1.13+deb13", "6.12.1+deb12"].map(str::to_string);
        assert_eq!(
            list(&known, std::slice::from_ref(&here)),
            "7.2.9+deb13   -\n7.1.13+deb13  /k/vmlinuz\n6.12.1+deb12  -\n"
        );
        assert_eq!(list(&[], &[here]), "7.1.13+deb13  /k/vmlinuz\n");
    }

    #[test]
    fn what_all_plans_need_decides() {
        let lack = |only| Lack { what: "brd", only, fix: "CONFIG_BLK_DEV_RAM=y".to_string() };
        assert_eq!(verdict("7.1", &[]), ("7.1 has all that runs need\n".to_string(), 0));
        let (text, status) = verdict("7.1", &[lack(Some("device = \"ram\""))]);
        assert!(text.starts_with("no  brd (only for device = \"ram\"): CONFIG"), "{text}");
        assert_eq!(status, 0);
        let (text, status) = verdict("7.1", &[lack(None)]);
        assert_eq!(text, "NO  brd: CONFIG_BLK_DEV_RAM=y\n7.1 runs no plan: 1 needs are not met\n");
        assert_eq!(status, 1);
    }
}
