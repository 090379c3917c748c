//! `mglru exec`: an unmodified program whose shared file mappings stay within a budget.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use mglru_pager::launch::Launch;
use mglru_sim::spec::Size;

use super::Answer;
use crate::error::Error;

/// Arguments of `mglru exec`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Budget of all managed mappings, the pager's own memory included
    #[arg(long = "memory.max", value_name = "SIZE")]
    max: Option<Size>,
    /// From here on pages are reclaimed in the background
    #[arg(long = "memory.high", value_name = "SIZE")]
    high: Option<Size>,
    /// Shorter mappings are left to the kernel
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    least: Size,
    /// The program
    program: String,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Becomes the program; comes back only if that fails.
pub(super) fn run(args: &Args) -> Answer {
    let limit = |size: Option<Size>| size.filter(|&size| size != Size::MAX).map(|Size(n)| n);
    let least = Some(args.least.0);
    let launch = Launch { memory_max: limit(args.max), memory_high: limit(args.high), least };
    let command = launch.command(&args.program);
    let mut command = command.map_err(|e| Error::Request(e.to_string()))?;
    let failed = command.args(&args.args).exec();
    Err(Error::Request(format!("`{}`: {failed}", args.program)))
}
