//! Writes the line about memory outside of the budget.

use std::fmt::{self, Display, Formatter, Write};

use super::figures::Figures;
use super::reason::{ALL, Reason};

const MIB: u64 = 1 << 20;

/// Bytes, as whole MiB.
struct Mib(u64);

impl Display for Mib {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} MiB", (self.0 + MIB / 2) / MIB)
    }
}

/// Writes figures as a sentence's end: the reasons that are half a MiB and more, the greatest
/// first.
pub struct Reasons<'a>(pub &'a Figures);

impl Display for Reasons<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut reasons = ALL;
        let counts = |reason: Reason| reason != Reason::File && self.0.of(reason) >= MIB / 2;
        reasons.sort_unstable_by_key(|&reason| std::cmp::Reverse(self.0.of(reason)));
        for (nth, reason) in reasons.into_iter().filter(|&reason| counts(reason)).enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            write!(out, "{comma}{} {}", reason.name(), Mib(self.0.of(reason)))?;
        }
        Ok(())
    }
}

/// Writes the line at a program's end; empty if there is nothing worth saying. Up to `least` bytes
/// any process has.
pub fn at_end(out: &mut impl Write, peak: &Figures, least: u64) -> fmt::Result {
    let (total, file) = (peak.total(), peak.of(Reason::File));
    let (some, files) = (total > least, file > least);
    if some {
        let all = Mib(total);
        write!(out, "mglru exec: {all} were outside of the budget at most: {}", Reasons(peak))?;
    } else if files {
        write!(out, "mglru exec: outside of the budget at most: ")?;
    }
    if files {
        let and = if some { "; and " } else { "" };
        write!(out, "{and}file {}, which the kernel takes back at need", Mib(file))?;
    }
    if some || files { writeln!(out) } else { Ok(()) }
}

/// Writes the line of `--strict`.
pub fn strict(out: &mut impl Write, now: &Figures) -> fmt::Result {
    let (all, reasons) = (Mib(now.total()), Reasons(now));
    writeln!(out, "mglru exec: --strict: {all} are outside of the budget: {reasons}")
}

/// Returns the text of `memory.unmanaged`.
pub fn file(now: &Figures, peak: &Figures) -> String {
    let reason = |reason: Reason| {
        let key = reason.name().replace(' ', "_");
        format!("{key} {}\n", now.of(reason))
    };
    let head = format!("total {}\npeak {}\n", now.total(), peak.total());
    ALL.into_iter().map(reason).fold(head, |text, line| text + &line)
}

/// Holds a line in place: malloc may be the program's, and under way.
pub struct Line {
    bytes: [u8; 512],
    len: usize,
}

impl Line {
    /// Makes an empty line.
    pub const fn new() -> Self {
        Self { bytes: [0; 512], len: 0 }
    }

    /// Returns what was written to the line.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Writes a line to standard error, past the functions that this library stands in for.
pub fn say(line: &Line) {
    let text = line.text();
    if !text.is_empty() && mglru_pager::held::is_stderr() {
        let (start, len) = (text.as_ptr(), text.len());
        // SAFETY: the bytes are as many as it says. Nobody is left to hear of a failure.
        unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, start, len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(mib: &[(Reason, u64)]) -> Figures {
        let mut figures = Figures::default();
        mib.iter().for_each(|&(reason, mib)| figures.add(reason, mib << 20));
        figures
    }

    fn said(mib: &[(Reason, u64)]) -> String {
        let mut line = Line::new();
        at_end(&mut line, &figures(mib), 4 << 20).unwrap();
        String::from_utf8(line.text().to_vec()).unwrap()
    }

    #[test]
    fn a_line_has_what_is_worth_saying_and_no_more() {
        let some = [(Reason::Brk, 8), (Reason::Child, 4), (Reason::Hint, 200)];
        let text = "mglru exec: 212 MiB were outside of the budget at most: hint 200 MiB, brk 8 \
                    MiB, child 4 MiB";
        assert_eq!(said(&some), format!("{text}\n"));
        let file = "file 70 MiB, which the kernel takes back at need\n";
        let both = [&some[..], &[(Reason::File, 70)]].concat();
        assert_eq!(said(&both), format!("{text}; and {file}"));
        let start = "mglru exec: outside of the budget at most: ";
        assert_eq!(said(&[(Reason::File, 70), (Reason::Brk, 4)]), format!("{start}{file}"));
        assert_eq!(said(&[(Reason::File, 4), (Reason::Brk, 4)]), "");
        let all: Vec<_> = ALL.iter().map(|&reason| (reason, 1 << 40)).collect();
        assert!(said(&all).ends_with("need\n"), "it has room for everything");
    }

    #[test]
    fn the_file_is_flat_keyed_and_has_every_reason() {
        let text = file(&figures(&[(Reason::NoHeap, 1)]), &figures(&[(Reason::Raw, 2)]));
        assert!(text.starts_with("total 1048576\npeak 2097152\nhint 0\nbrk 0\n"), "{text}");
        assert!(text.contains("\nno_heap 1048576\n") && text.ends_with("\nfile 0\n"), "{text}");
        assert!(text.lines().all(|line| line.split(' ').count() == 2));
    }
}
