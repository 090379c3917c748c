//! `mglru man`: a page of the manual for every command, as packages install them.

use std::fs;
use std::path::PathBuf;

use super::Answer;
use mglru_error::Error;

/// Arguments of `mglru man`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Write `mglru.1`, `mglru-run.1`, … to this folder, which is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(super) fn run(args: &Args, program: clap::Command) -> Answer {
    let failed = |e| Error::io(&args.folder, e);
    fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(program, &args.folder).map_err(failed)?;
    Ok((String::new(), 0))
}
