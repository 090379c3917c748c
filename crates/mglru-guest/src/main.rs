//! The program inside the booted kernel: its first process, the processes that carry out a
//! workload, and the step by which a program of the host's enters its group.
//!
//! `mglru-guest` alone, as process 1, does what `/order.json` says and stops the machine;
//! `mglru-guest worker` carries out tasks as its standard input says; `mglru-guest enter GROUP
//! PROGRAM ARGS…` becomes the program, inside the group.

mod administer;
mod ask;
mod coordinate;
mod counts;
mod disk;
mod enter;
mod events;
mod init;
mod link;
mod marker;
mod memory;
mod probe;
mod program;
mod setup;
mod snapshot;
mod steps;
mod symbols;
mod task;
mod until;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        [] if std::process::id() == 1 => init::run(),
        ["worker"] => worker::run(),
        ["enter", group, program, ref args @ ..] => enter::run(group, program, args),
        _ => Err("runs as the first process of a machine that mglru boots".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("mglru-guest: {e}");
            ExitCode::FAILURE
        }
    }
}
