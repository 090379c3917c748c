//! A plugin of QEMU's translator of programs that reports which pages a program touches. The build
//! script compiles it on its own and the program carries it, so that nothing more has to be
//! installed.
//!
//! `-plugin FILE,socket=NAME,window=LOG2,now=INSTRUCTIONS`; `format` says what it sends.

mod calls;
mod elf;
mod format;
mod guest;
#[path = "../interface.rs"]
mod interface;
mod lock;
mod pages;
mod qemu;
mod run;
mod stream;

use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use interface::{ADD, Block, Id, NO_REGISTERS, Words};
use qemu::{LOADS, Qemu, STORES};
use run::{START, Start};

static QEMU: OnceLock<Qemu> = OnceLock::new();
/// Areas that are QEMU's own.
static BEFORE: OnceLock<BTreeSet<u64>> = OnceLock::new();
/// Pages whose instructions were translated.
static CODE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
static LOADED: Once = Once::new();

/// Starts the plugin. QEMU calls it once, with the arguments behind the library's name.
///
/// # Safety
/// `args` are `len` texts that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    _about: *const c_void,
    len: c_int,
    args: *const *const c_char,
) -> c_int {
    let Some(qemu) = Qemu::find() else { return complain("this QEMU lacks a function of plugins") };
    // SAFETY: the caller says so.
    let words = unsafe { Words::read(len, args) };
    let number = |key| words.get(key)?.parse::<u64>().ok();
    let (Some(socket), Some(window)) = (words.get("socket"), number("window")) else {
        return complain("socket and window are missing");
    };
    if !pages::begin(number("now").unwrap_or(0), window as u32) {
        return complain("no address space for the table of pages (ulimit -v)");
    }
    let Some(start) = begun(socket, window as u32) else { return complain("no /proc") };
    let _ = START.set(start);
    let _ = BEFORE.set(calls::starts(&maps()));
    stream::begin(socket);
    // SAFETY: QEMU gave the id.
    unsafe {
        (qemu.on_block)(id, translated);
        (qemu.on_call)(id, calls::before);
        (qemu.on_return)(id, calls::after);
        (qemu.on_exit)(id, exit, std::ptr::null_mut());
    }
    let _ = QEMU.set(qemu);
    0
}

fn complain(problem: &str) -> c_int {
    eprintln!("mglru trace record: {problem}");
    1
}

fn maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

/// Tells how the translator was started, for the programs that come after.
fn begun(socket: &str, window: u32) -> Option<Start> {
    let translator = std::fs::read_link("/proc/self/exe").ok()?;
    let translator = CString::new(translator.into_os_string().into_encoded_bytes()).ok()?;
    let maps = maps();
    let here = translated as *const () as u64;
    let library = calls::path_at(&maps, here)?.to_string();
    Some(Start { translator, library, socket: socket.to_string(), window })
}

/// QEMU calls it for each block that it translates.
extern "C" fn translated(_id: Id, block: Block) {
    let Some(qemu) = QEMU.get() else { return };
    // SAFETY: QEMU lends the block and its instructions for this call.
    unsafe {
        let length = (qemu.length)(block);
        (qemu.count)(block, ADD, pages::NOW.as_ptr().cast(), length as u64);
        for at in 0..length {
            let instruction = (qemu.instruction)(block, at);
            if at == 0 {
                let address = (qemu.address)(instruction);
                LOADED.call_once(|| loaded(address, (qemu.host_address)(instruction)));
                code(address);
            }
            let null = std::ptr::null_mut();
            (qemu.on_access)(instruction, pages::load, NO_REGISTERS, LOADS, null);
            (qemu.on_access)(instruction, pages::store, NO_REGISTERS, STORES, null);
        }
    }
}

/// Sees the first instruction: the program is loaded.
fn loaded(address: u64, host: u64) {
    guest::set(address, host);
    calls::loaded(&maps(), BEFORE.get().expect("it was set at first"));
    // A process that is killed soon is known to have been there.
    stream::last(format::BORN, &[]);
}

fn code(address: u64) {
    if CODE.lock().unwrap_or_else(PoisonError::into_inner).insert(address >> 12) {
        pages::code(address);
    }
}

extern "C" fn exit(_id: Id, _: *mut c_void) {
    stream::last(format::EXIT, &[]);
}
