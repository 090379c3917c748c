//! The `mglru` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    mglru_cli::main(std::env::args_os())
}
