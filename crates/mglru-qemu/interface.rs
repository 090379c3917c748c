//! Declares what both libraries use of QEMU's plugin interface, version 1.
//!
//! The functions that a plugin calls exist in QEMU alone, so that they are looked up by name.

use std::ffi::{CStr, c_char, c_int, c_void};

/// Holds the version of the interface that is used here.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = 1;

/// Adds a number to a counter (`QEMU_PLUGIN_INLINE_ADD_U64`).
pub const ADD: c_int = 0;
/// Says that a callback reads no register (`QEMU_PLUGIN_CB_NO_REGS`).
pub const NO_REGISTERS: c_int = 0;

/// Names the plugin to QEMU.
pub type Id = u64;
/// Points to a block of translated code, valid during one call.
pub type Block = *mut c_void;
/// Points to an instruction of a block, valid during one call.
pub type Instruction = *mut c_void;
/// Receives each block that QEMU translates.
pub type OnBlock = extern "C" fn(Id, Block);

unsafe extern "C" {
    pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Looks a function up by name; leaves the caller with `None` where QEMU has none.
macro_rules! function {
    ($name:literal) => {{
        // SAFETY: the name ends with a zero byte; a null handle means every loaded library.
        let found = unsafe { $crate::interface::dlsym(std::ptr::null_mut(), $name.as_ptr()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: QEMU's function of this name is of the field's type.
        unsafe { std::mem::transmute(found) }
    }};
}
pub(crate) use function;

/// Holds the words behind the library's name: `KEY=VALUE` each.
pub struct Words(Vec<(String, String)>);

impl Words {
    /// Reads what QEMU gives to `qemu_plugin_install`.
    ///
    /// # Safety
    /// `args` are `len` texts that end with a zero byte.
    pub unsafe fn read(len: c_int, args: *const *const c_char) -> Self {
        // SAFETY: the caller says so.
        let words = (0..len as usize).map(|at| unsafe { CStr::from_ptr(*args.add(at)) });
        let pairs = words.filter_map(|word| word.to_str().ok()?.split_once('='));
        Words(pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect())
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|word| word.0 == key).map(|word| word.1.as_str())
    }
}
