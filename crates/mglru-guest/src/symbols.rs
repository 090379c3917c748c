//! The kernel's own names for its code, reported after the work of a run that is profiled.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};

use mglru_guest::report::PROFILED;

const SYMBOLS: &str = "/proc/kallsyms";
/// Addresses are hidden from everybody at 2.
const HIDING: &str = "/proc/sys/kernel/kptr_restrict";

/// Tells whether the host counts instructions. It says so in the processor's name, because anything
/// that takes the kernel an instruction more or less would make this another run.
pub fn are_asked_for() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(PROFILED))
}

/// Lists code by name, a line each: distance from the one before in hexadecimal digits, and name.
pub fn code_by_distance() -> String {
    let _ = fs::write(HIDING, "0");
    let text = fs::read_to_string(SYMBOLS).unwrap_or_default();
    by_distance(text.lines().filter_map(code).collect())
}

/// Finds where the kernel's code begins: it is elsewhere at each boot. 0: the kernel hides it.
pub fn text_address() -> u64 {
    let _ = fs::write(HIDING, "0");
    let Ok(file) = File::open(SYMBOLS) else { return 0 };
    let mut lines = BufReader::new(file).lines().map_while(Result::ok);
    let begin = |line: String| code(&line).filter(|at| at.1 == "_text").map(|at| at.0);
    lines.find_map(begin).unwrap_or(0)
}

/// Address and name of a line that names code.
fn code(line: &str) -> Option<(u64, &str)> {
    let (address, rest) = line.split_once(' ')?;
    let (kind, name) = rest.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    (matches!(kind, "t" | "T" | "w" | "W") && address > 0).then_some((address, name))
}

fn by_distance(mut symbols: Vec<(u64, &str)>) -> String {
    symbols.sort_unstable();
    symbols.dedup_by_key(|(address, _)| *address);
    let (mut text, mut last) = (String::new(), 0);
    for (address, name) in symbols {
        let _ = writeln!(text, "{:x} {name}", address - last);
        last = address;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_code_are_listed_by_distance() {
        let text = "ffffffff81000010 t b\nffffffff81000000 T a\nffffffff82000000 D data\n\
                    ffffffffc0000000 t c\t[m]\nffffffff81000010 t twin\n\
                    0000000000000000 T hidden\n";
        let text = by_distance(text.lines().filter_map(code).collect());
        assert_eq!(text, "ffffffff81000000 a\n10 b\n3efffff0 c\t[m]\n");
    }
}
