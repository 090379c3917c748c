//! A library that QEMU loads when it runs a guest in virtual time, and, where a run is profiled,
//! takes as a plugin. The build script compiles it on its own and the program carries it, so that
//! nothing more has to be installed.

mod clock;
#[path = "../interface.rs"]
mod interface;
mod profile;
mod turns;
