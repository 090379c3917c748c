//! Finds the functions of QEMU that a recording uses.

use std::ffi::{c_int, c_uint, c_void};

use crate::interface::{Block, Id, Instruction, OnBlock, function};

/// Describes an access.
pub type Access = c_uint;

/// Asks for loads.
pub const LOADS: c_int = 1;
/// Asks for stores.
pub const STORES: c_int = 2;

type OnAccess = extern "C" fn(c_uint, Access, u64, *mut c_void);
type OnExit = extern "C" fn(Id, *mut c_void);
type OnCall = extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
type OnReturn = extern "C" fn(Id, c_uint, i64, i64);

/// Holds functions of QEMU.
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
