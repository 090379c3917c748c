//! Declares the functions of QEMU's plugin interface, version 1, that are used here.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Names the plugin to QEMU.
pub type Id = u64;
/// A block of translated code, lent for one call.
pub type Block = *mut c_void;
/// An instruction of a block, lent for one call.
pub type Instruction = *mut c_void;
/// Describes an access.
pub type Access = c_uint;

/// Adds a number to a counter.
pub const ADD: c_int = 0;
/// Says that a callback reads no register.
pub const NO_REGISTERS: c_int = 0;
/// Asks for loads.
pub const LOADS: c_int = 1;
/// Asks for stores.
pub const STORES: c_int = 2;

type OnBlock = extern "C" fn(Id, Block);
type OnAccess = extern "C" fn(c_uint, Access, u64, *mut c_void);
type OnExit = extern "C" fn(Id, *mut c_void);
type OnCall =
    extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
type OnReturn = extern "C" fn(Id, c_uint, i64, i64);

unsafe extern "C" {
    pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Functions of QEMU. They exist in QEMU alone, so that they are looked up by name.
pub struct Qemu {
    pub on_block: unsafe extern "C" fn(Id, OnBlock),
    pub length: unsafe extern "C" fn(Block) -> usize,
    pub instruction: unsafe extern "C" fn(Block, usize) -> Instruction,
    pub address: unsafe extern "C" fn(Instruction) -> u64,
    pub host_address: unsafe extern "C" fn(Instruction) -> u64,
    pub count: unsafe extern "C" fn(Block, c_int, *mut c_void, u64),
    pub on_access: unsafe extern "C" fn(Instruction, OnAccess, c_int, c_int, *mut c_void),
    pub size: unsafe extern "C" fn(Access) -> c_uint,
    pub on_call: unsafe extern "C" fn(Id, OnCall),
    pub on_return: unsafe extern "C" fn(Id, OnReturn),
    pub on_exit: unsafe extern "C" fn(Id, OnExit, *mut c_void),
}

/// Looks a function up by name.
macro_rules! function {
    ($name:literal) => {{
        // SAFETY: the name ends with a zero byte; a null handle means every loaded library.
        let found = unsafe { dlsym(std::ptr::null_mut(), $name.as_ptr()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: QEMU's function of this name is of the field's type.
        unsafe { std::mem::transmute(found) }
    }};
}

impl Qemu {
    /// Finds all functions; `None`: this QEMU lacks one.
    pub fn find() -> Option<Self> {
        Some(Self {
            on_block: function!(c"qemu_plugin_register_vcpu_tb_trans_cb"),
            length: function!(c"qemu_plugin_tb_n_insns"),
            instruction: function!(c"qemu_plugin_tb_get_insn"),
            address: function!(c"qemu_plugin_insn_vaddr"),
            host_address: function!(c"qemu_plugin_insn_haddr"),
            count: function!(c"qemu_plugin_register_vcpu_tb_exec_inline"),
            on_access: function!(c"qemu_plugin_register_vcpu_mem_cb"),
            size: function!(c"qemu_plugin_mem_size_shift"),
            on_call: function!(c"qemu_plugin_register_vcpu_syscall_cb"),
            on_return: function!(c"qemu_plugin_register_vcpu_syscall_ret_cb"),
            on_exit: function!(c"qemu_plugin_register_atexit_cb"),
        })
    }
}
