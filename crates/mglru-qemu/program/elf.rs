//! Tells programs that the translator can run.

/// Tells whether a file that begins with these bytes is a program for x86-64, in ELF of 64 bits.
pub fn is_x86_64(head: &[u8]) -> bool {
    head.starts_with(b"\x7fELF\x02\x01") && head.get(18..20) == Some(&[62, 0])
}
