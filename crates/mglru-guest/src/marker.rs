//! Marks what a profile counts. A plugin of QEMU's knows these instructions by their bytes; to the
//! processor they say nothing, so that a run is the same whether anybody counts or not.

#![allow(unsafe_code)]

/// Has the plugin begin to count, from 0.
pub fn start() {
    // SAFETY: it does nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(".byte 0x0f, 0x1f, 0x80", ".ascii \"mgl>\"", options(nostack));
    }
}

/// Has the plugin report what it counted since [`start`].
pub fn stop() {
    // SAFETY: it does nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(".byte 0x0f, 0x1f, 0x80", ".ascii \"mgl<\"", options(nostack));
    }
}
