//! Counts the guest's instructions by block of code, between marks that the guest sets.
//!
//! QEMU takes the library as a plugin (`-plugin FILE,out=FILE`). Each instruction counts for
//! itself: a block is left in the middle when one of its instructions faults, and is then begun
//! again.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::interface::{ADD, Block, Id, Instruction, NO_REGISTERS, OnBlock, Words, function};

/// The guest's marks: instructions that do nothing, with these bytes.
const START: &[u8] = b"\x0f\x1f\x80mgl>";
const STOP: &[u8] = b"\x0f\x1f\x80mgl<";
/// Addresses from here on are the kernel's.
const KERNEL: u64 = 1 << 63;
/// The key of all code below.
const USER: u64 = 0;

type OnMark = extern "C" fn(c_uint, *mut c_void);

/// Functions of QEMU, by their names without `qemu_plugin_`.
struct Qemu {
    on_block: unsafe extern "C" fn(Id, OnBlock),
    length: unsafe extern "C" fn(Block) -> usize,
    instruction: unsafe extern "C" fn(Block, usize) -> Instruction,
    address: unsafe extern "C" fn(Instruction) -> u64,
    size: unsafe extern "C" fn(Instruction) -> usize,
    bytes: unsafe extern "C" fn(Instruction) -> *const u8,
    count: unsafe extern "C" fn(Instruction, c_int, *mut c_void, u64),
    on_mark: unsafe extern "C" fn(Instruction, OnMark, c_int, *mut c_void),
}

/// Counters that QEMU adds to, by the address of their block. They are never freed.
#[derive(Default)]
struct Counts {
    by_block: BTreeMap<u64, usize>,
    out: Option<File>,
}

static QEMU: OnceLock<Qemu> = OnceLock::new();
static COUNTS: Mutex<Counts> = Mutex::new(Counts { by_block: BTreeMap::new(), out: None });

impl Qemu {
    fn find() -> Option<Self> {
        Some(Self {
            on_block: function!(c"qemu_plugin_register_vcpu_tb_trans_cb"),
            length: function!(c"qemu_plugin_tb_n_insns"),
            instruction: function!(c"qemu_plugin_tb_get_insn"),
            address: function!(c"qemu_plugin_insn_vaddr"),
            size: function!(c"qemu_plugin_insn_size"),
            bytes: function!(c"qemu_plugin_insn_data"),
            count: function!(c"qemu_plugin_register_vcpu_insn_exec_inline"),
            on_mark: function!(c"qemu_plugin_register_vcpu_insn_exec_cb"),
        })
    }
}

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
    let Some(qemu) = Qemu::find() else { return complain("QEMU lacks a function of plugins") };
    // SAFETY: the caller says so.
    let words = unsafe { Words::read(len, args) };
    let out = words.get("out").and_then(|path| OpenOptions::new().append(true).open(path).ok());
    if out.is_none() {
        return complain("nowhere to write to");
    }
    counts().out = out;
    let on_block = qemu.on_block;
    let _ = QEMU.set(qemu);
    // SAFETY: QEMU gave the id.
    unsafe { on_block(id, translated) };
    0
}

fn complain(problem: &str) -> c_int {
    eprintln!("counting instructions: {problem}");
    1
}

fn counts() -> MutexGuard<'static, Counts> {
    COUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counts {
    fn of(&mut self, address: u64) -> *mut u64 {
        let key = if address >= KERNEL { address } else { USER };
        let new = || Box::into_raw(Box::new(0_u64)) as usize;
        *self.by_block.entry(key).or_insert_with(new) as *mut u64
    }

    /// Takes what was counted, and begins again at 0.
    fn take(&mut self) -> impl Iterator<Item = (u64, u64)> {
        let take = |(key, at): (&u64, &usize)| {
            // SAFETY: it is a counter of ours; the one thread that adds to it runs this.
            (*key, unsafe { (*at as *mut u64).replace(0) })
        };
        self.by_block.iter().map(take)
    }

    fn write(&mut self) {
        let mut text = String::new();
        for (key, count) in self.take().filter(|(_, count)| *count > 0) {
            let _ = writeln!(text, "{key:x} {count}");
        }
        text += "end\n";
        if let Some(Err(e)) = self.out.as_mut().map(|out| out.write_all(text.as_bytes())) {
            eprintln!("counting instructions: {e}");
        }
    }
}

/// QEMU calls it for each block that it translates.
extern "C" fn translated(_id: Id, block: Block) {
    let Some(qemu) = QEMU.get() else { return };
    let mut counter = std::ptr::null_mut();
    // SAFETY: QEMU lends the block and its instructions for this call.
    unsafe {
        for at in 0..(qemu.length)(block) {
            let instruction = (qemu.instruction)(block, at);
            if at == 0 {
                counter = counts().of((qemu.address)(instruction));
            }
            (qemu.count)(instruction, ADD, counter.cast(), 1);
            let bytes = (qemu.bytes)(instruction);
            let bytes = std::slice::from_raw_parts(bytes, (qemu.size)(instruction));
            let on_mark: Option<OnMark> = match bytes {
                START => Some(start),
                STOP => Some(stop),
                _ => None,
            };
            if let Some(call) = on_mark {
                (qemu.on_mark)(instruction, call, NO_REGISTERS, std::ptr::null_mut());
            }
        }
    }
}

/// Resets the counts: instructions so far belong to no phase.
extern "C" fn start(_processor: c_uint, _: *mut c_void) {
    counts().take().for_each(drop);
}

extern "C" fn stop(_processor: c_uint, _: *mut c_void) {
    counts().write();
}
