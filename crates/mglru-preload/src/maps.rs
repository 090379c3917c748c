//! Reads what the kernel says of this process's mappings.

use std::ops::Range;

use libc::c_int;

/// Describes a part of a range of addresses, and what may be done there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Holds its addresses.
    pub range: Range<usize>,
    /// Holds the access that mmap or mprotect gave.
    pub prot: c_int,
    /// Says that other processes see stores to it.
    pub shared: bool,
    /// Holds the name of the mapped object, as the kernel gives it.
    pub name: String,
}

/// Finds what is mapped of a range, in order; `None`: there is no /proc.
pub fn parts(range: &Range<usize>) -> Option<Vec<Part>> {
    // The first thread may have ended, and with it what /proc/self says.
    let maps = std::fs::read_to_string("/proc/thread-self/maps").ok()?;
    let mut parts: Vec<Part> = maps.lines().filter_map(parse).collect();
    for part in &mut parts {
        let (start, end) = (part.range.start.max(range.start), part.range.end.min(range.end));
        part.range = start..end;
    }
    parts.retain(|part| !part.range.is_empty());
    Some(parts)
}

/// Reads the value after a name in a file of this thread's folder in /proc.
fn status(name: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next().map(str::to_string)
}

/// Counts memory of this process, bytes, of a kind that its status names.
pub fn used(name: &str) -> usize {
    status(name).and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) << 10
}

/// Tells whether this process may lock so many bytes of memory.
///
/// # Errors
/// Asks the kernel.
pub fn may_lock(bytes: usize) -> Result<(), c_int> {
    const IPC_LOCK: u64 = 1 << 14;
    let able = status("CapEff:").and_then(|bits| u64::from_str_radix(&bits, 16).ok());
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure it is given.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    match limit.rlim_cur {
        _ if able.unwrap_or(0) & IPC_LOCK != 0 => Ok(()),
        0 => Err(libc::EPERM),
        most if bytes as u64 > most => Err(libc::ENOMEM),
        _ => Ok(()),
    }
}

/// `START-END rwxp OFFSET DEVICE INODE NAME`.
fn parse(line: &str) -> Option<Part> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text: &str| usize::from_str_radix(text, 16).ok();
    let bits = [(b'r', libc::PROT_READ), (b'w', libc::PROT_WRITE), (b'x', libc::PROT_EXEC)];
    let said = fields.next()?.as_bytes();
    let prot = bits.iter().filter(|(letter, _)| said.contains(letter)).map(|(_, bit)| bit).sum();
    let name = fields.nth(3).unwrap_or_default().into();
    let shared = said.contains(&b's');
    Some(Part { range: number(start)?..number(end)?, prot, shared, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_addresses_and_protection() {
        let line = "7f00-8000 r-xp 00000000 08:01 42                /lib/a b.so";
        let part = parse(line).unwrap();
        assert_eq!((part.range, part.prot), (0x7f00..0x8000, libc::PROT_READ | libc::PROT_EXEC));
        assert_eq!(part.name, "/lib/a");
        assert_eq!(parse("7f00-8000 ---p 00000000 00:00 0").unwrap().prot, 0);
    }
}
