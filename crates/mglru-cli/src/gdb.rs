//! `mglru run --until … --gdb`: what is printed while a machine waits for a debugger.

use std::net::TcpListener;

use mglru_error::Error;
use mglru_lab::backend::Standing;

/// Where the code of every kernel begins before it is moved at boot.
const LINKED_AT: u64 = 0xffff_ffff_8100_0000;
/// Releases of Debian's kernels have this in their names.
const DEBIAN: &str = "+deb";

/// Refuses a port that is taken before anything is booted.
///
/// # Errors
/// Names the port.
pub(super) fn check(port: u16) -> Result<(), Error> {
    let listener = TcpListener::bind(("127.0.0.1", port));
    listener.map(drop).map_err(|e| Error::Request(format!("--gdb={port}: 127.0.0.1:{port}: {e}")))
}

/// The line to type, where the file with symbols is, and what the debugger may do.
pub(super) fn instructions(standing: &Standing) -> String {
    let kernel = standing.kernel;
    let file = match kernel.contains(DEBIAN) {
        true => format!(
            "vmlinux is usr/lib/debug/boot/vmlinux-{kernel} of Debian's package \
             linux-image-{kernel}-dbg"
        ),
        false => "vmlinux lies where the kernel was built".to_string(),
    };
    format!(
        "the machine stands still; in another terminal:\n  {}\n{file}\n\
         continue goes on with the work; detach or quit ends it, as Ctrl-C here does\n",
        line(standing)
    )
}

/// Symbols are moved as the kernel was at this boot.
fn line(standing: &Standing) -> String {
    let remote = format!("-ex 'target remote {}'", standing.address);
    match standing.text.checked_sub(LINKED_AT) {
        Some(offset @ 1..) => format!("gdb -ex 'symbol-file -o {offset:#x} vmlinux' {remote}"),
        _ => format!("gdb vmlinux {remote}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mglru_guest::report::Step;

    fn said(kernel: &str, text: u64) -> String {
        let at = &Step::default();
        instructions(&Standing { at, address: "127.0.0.1:4321".parse().unwrap(), kernel, text })
    }

    #[test]
    fn the_line_moves_symbols_to_where_the_kernel_is() {
        let moved = said("6.12.1+deb13-amd64", LINKED_AT + 0x1a00_0000);
        let want =
            "  gdb -ex 'symbol-file -o 0x1a000000 vmlinux' -ex 'target remote 127.0.0.1:4321'";
        assert!(moved.contains(want), "{moved}");
        assert!(moved.contains("package linux-image-6.12.1+deb13-amd64-dbg"), "{moved}");
        for text in [0, LINKED_AT] {
            let plain = said("7.2.0", text);
            assert!(plain.contains("  gdb vmlinux -ex 'target remote 127.0.0.1:4321'"), "{plain}");
            assert!(plain.contains("where the kernel was built"), "{plain}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_refused() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let message = check(port).unwrap_err().to_string();
        assert!(message.starts_with(&format!("--gdb={port}: 127.0.0.1:{port}: ")), "{message}");
        drop(taken);
        assert!(check(port).is_ok() && check(0).is_ok());
    }
}
