//! Carries the libraries that QEMU loads, so that nothing more has to be installed. The build
//! script compiles each on its own: `machine/` for a guest, `program/` for a translated program;
//! `interface.rs` is what both use of QEMU.

#[path = "../program/elf.rs"]
pub mod elf;
#[path = "../program/format.rs"]
pub mod format;

/// Fixes what QEMU itself takes from the host's clock (`machine/clock.rs`), and counts a guest's
/// instructions where QEMU takes it as a plugin.
pub const MACHINE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmglru_machine.so"));
/// Tells which pages a translated program touches; [`mod@format`] says what it sends.
pub const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmglru_program.so"));
