//! Why each mapping of a process is outside of the budget, if it is.

use super::figures::Figures;
use super::ranges::Ranges;
use super::reason::Reason;
use super::smaps::Area;

/// A stack takes up to this anyway, bytes: only what is more is counted.
const ORDINARY_STACK: u64 = 256 << 10;

/// Finds a thread's stack by an address in it.
pub type Stacks<'a> = &'a [usize];

/// Mappings of one file that follow one another: a program, a library, or data.
#[derive(Default)]
struct OfFile {
    file: ([u8; 8], u64),
    end: usize,
    /// The last of its mappings may be written.
    writable: bool,
    /// It has code: all of it is what a process needs to run.
    code: bool,
    /// It is this library.
    own: bool,
    /// Bytes of pages that are the file's.
    clean: u64,
    /// Bytes of pages of the process's own.
    anonymous: u64,
}

/// The file whose mappings ended last.
#[derive(Default)]
struct Before {
    end: usize,
    /// Memory beside it holds its variables.
    bss: bool,
    own: bool,
}

/// Judges the mappings of this process, in the order of their addresses.
pub struct Judge<'a> {
    figures: Figures,
    ranges: &'a Ranges,
    stacks: Stacks<'a>,
    other: Reason,
    file: OfFile,
    before: Before,
}

impl<'a> Judge<'a> {
    /// Starts a judgement; memory that nothing explains gets the reason `other`.
    pub fn new(ranges: &'a Ranges, stacks: Stacks<'a>, other: Reason) -> Self {
        let (figures, file, before) = Default::default();
        Self { figures, ranges, stacks, other, file, before }
    }

    /// Takes account of one mapping.
    pub fn take(&mut self, area: &Area) {
        if area.file != self.file.file {
            self.end_file();
        }
        self.figures.add(Reason::Huge, area.huge);
        match (area.shared, area.file.1) {
            (true, _) => self.shared(area),
            (false, 0) => self.anonymous(area),
            (false, _) => self.of_file(area),
        }
    }

    /// Ends the judgement and returns its figures.
    pub fn end(mut self) -> Figures {
        self.end_file();
        self.figures
    }

    fn shared(&mut self, area: &Area) {
        match self.ranges.at(area.start) {
            _ if is_pager(area) => {}
            Some(Reason::Shared) => self.figures.add(Reason::Shared, area.pss + area.swap),
            _ if is_memory(area) => self.figures.add(Reason::Shared, area.pss + area.swap),
            _ => self.figures.add(Reason::File, area.rss),
        }
    }

    fn of_file(&mut self, area: &Area) {
        let anonymous = area.anonymous + area.swap;
        let known = self.ranges.at(area.start).filter(|_| !area.executable);
        match known {
            Some(reason) => self.figures.add(reason, anonymous),
            None => self.file.anonymous += anonymous,
        }
        let own = self.file.own || is_pager(area);
        let code = self.file.code || area.executable;
        let clean = self.file.clean + area.rss.saturating_sub(area.anonymous);
        let (end, writable) = (area.end, area.writable);
        self.file = OfFile { file: area.file, end, writable, code, own, clean, ..self.file };
    }

    /// Judges a file once its last mapping is known. Variables that begin as zeros may lie beside
    /// it.
    fn end_file(&mut self) {
        let OfFile { code, own, clean, anonymous, end, writable, .. } = self.file;
        if !own {
            self.figures.add(if code { Reason::Brk } else { Reason::Raw }, anonymous);
            self.figures.add(Reason::File, if code { 0 } else { clean });
        }
        let before = Before { end, bss: writable && code, own };
        (self.before, self.file) = (before, OfFile::default());
    }

    fn anonymous(&mut self, area: &Area) {
        let bytes = (area.rss + area.swap).saturating_sub(self.ordinary(area));
        let (all, rest, range) = (self.whole(area), self.rest(area), area.range());
        let len = area.end - area.start;
        let parts = self.ranges.parts(&range).map(|(reason, part)| match (reason, all) {
            (Reason::Own, _) | (_, None) => (reason, part),
            (_, Some(all)) => (all, part),
        });
        self.figures.spread(bytes, len, parts, rest);
    }

    fn is_stack(&self, area: &Area) -> bool {
        area.name() == b"[stack]" || self.stacks.iter().any(|at| area.range().contains(at))
    }

    fn ordinary(&self, area: &Area) -> u64 {
        if self.is_stack(area) { ORDINARY_STACK } else { 0 }
    }

    /// Returns the reason that the kernel itself gives, whatever the program asked for.
    fn whole(&self, area: &Area) -> Option<Reason> {
        let kinds = [(area.locked, Reason::Locked), (area.executable, Reason::Executable)];
        kinds.iter().find(|(is, _)| *is).map(|(_, reason)| *reason)
    }

    /// The reason of what no call is known of.
    fn rest(&self, area: &Area) -> Reason {
        let beside = self.before.end == area.start && self.before.bss;
        let kernels = area.name().starts_with(b"[v");
        let kinds = [
            (kernels || beside && self.before.own, Reason::Own),
            (area.name() == b"[heap]", Reason::Brk),
            (self.is_stack(area) || area.grows_down, Reason::Stack),
            (area.locked, Reason::Locked),
            (area.executable, Reason::Executable),
            (beside, Reason::Brk),
            (self.ranges.overflowed(), Reason::Small),
        ];
        kinds.iter().find(|(is, _)| *is).map_or(self.other, |(_, reason)| *reason)
    }
}

/// Is it the pager's memory, or this library?
fn is_pager(area: &Area) -> bool {
    const STARTS: [&[u8]; 3] = [b"/memfd:mglru ", b"/memfd:fork ", b"anon_inode:"];
    is_library(area) || STARTS.iter().any(|start| area.name().starts_with(start))
}

/// Is it this library, whatever the name of its file? A forked child has it at the same address.
pub fn is_library(area: &Area) -> bool {
    const NAME: &[u8] = b"/libmglru_preload.so";
    let here = is_library as fn(&Area) -> bool as usize;
    let named = area.name().windows(NAME.len()).any(|part| part == NAME);
    named || area.file.1 != 0 && area.range().contains(&here)
}

/// Tells whether the file of an area is memory itself.
pub fn is_memory(area: &Area) -> bool {
    const STARTS: [&[u8]; 5] =
        [b"/memfd:", b"/dev/shm/", b"/dev/zero", b"/SYSV", b"/anon_hugepage"];
    STARTS.iter().any(|start| area.name().starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::super::smaps::areas_of;
    use super::*;

    const MIB: usize = 1 << 20;

    /// A mapping of whole MiB, resident and the process's own.
    fn area(start: usize, mib: usize, permissions: &str, file: &str, more: &str) -> String {
        let (end, kib) = (start + mib * MIB, mib << 10);
        let rss = format!("Rss: {kib} kB\nPss: {kib} kB\nPrivate_Dirty: {kib} kB\n");
        format!("{start:x}-{end:x} {permissions} 0 {file}\n{rss}{more}")
    }

    fn judged(ranges: &Ranges, stacks: Stacks<'_>, text: &str) -> Vec<(Reason, u64)> {
        let mut judge = Judge::new(ranges, stacks, Reason::Raw);
        areas_of(text, |area| judge.take(area));
        let figures = judge.end();
        let all = super::super::reason::ALL.into_iter().map(|r| (r, figures.of(r) >> 20));
        all.filter(|(_, mib)| *mib > 0).collect()
    }

    #[test]
    fn programs_and_libraries_are_code_but_for_their_variables() {
        let dirty = |mib: usize| format!("Anonymous: {} kB\n", mib << 10);
        let at = |nth: usize| nth * 100 * MIB;
        let text = [
            area(at(1), 9, "r--p", "08:01 5 /bin/x", ""),
            area(at(1) + 9 * MIB, 9, "r-xp", "08:01 5 /bin/x", ""),
            area(at(1) + 18 * MIB, 2, "rw-p", "08:01 5 /bin/x", &dirty(2)),
            area(at(1) + 20 * MIB, 3, "rw-p", "00:00 0", ""),
            area(at(2), 4, "rw-p", "00:00 0  [heap]", ""),
            area(at(3), 5, "r--p", "08:01 6 /data", ""),
            area(at(4), 7, "r-xp", "08:01 9 /x/libmglru_preload.so", ""),
            area(at(4) + 7 * MIB, 1, "rw-p", "08:01 9 /x/libmglru_preload.so", &dirty(1)),
            area(at(4) + 8 * MIB, 2, "rw-p", "00:00 0", ""),
            area(at(5), 2, "rw-s", "00:01 7 /memfd:mglru (deleted)", ""),
            area(at(6), 3, "rw-s", "00:01 7 /memfd:x (deleted)", ""),
            area(at(7), 6, "rw-s", "08:01 8 /data", ""),
        ];
        static RANGES: Ranges = Ranges::new();
        let right = [(Reason::Brk, 9), (Reason::Shared, 3), (Reason::File, 11)];
        assert_eq!(judged(&RANGES, &[], &text.concat()), right);
    }

    #[test]
    fn what_calls_said_counts_unless_the_kernel_knows_better() {
        static RANGES: Ranges = Ranges::new();
        let at = |nth: usize| nth * 100 * MIB;
        RANGES.note(&(at(1)..at(1) + 4 * MIB), Reason::Own);
        RANGES.note(&(at(2)..at(2) + 5 * MIB), Reason::Hint);
        RANGES.note(&(at(3)..at(3) + 5 * MIB), Reason::Hint);
        RANGES.note(&(at(4)..at(4) + 5 * MIB), Reason::Hint);
        RANGES.note(&(at(6)..at(6) + 2 * MIB), Reason::Shared);
        let text = [
            // The kernel joined what it mapped for the library to what it mapped for the program.
            area(at(1), 7, "rw-p", "00:00 0", ""),
            area(at(2), 5, "rw-p", "00:00 0", ""),
            area(at(3), 5, "rw-p", "00:00 0", "VmFlags: rd wr lo\n"),
            area(at(4), 5, "rwxp", "00:00 0", ""),
            area(at(5), 6, "rw-p", "00:00 0", ""),
            area(at(6), 2, "rw-s", "00:30 4 /tmp/on-tmpfs", ""),
        ];
        let stacks = [at(5) + 5 * MIB];
        let right = [
            (Reason::Hint, 5),
            (Reason::Shared, 2),
            (Reason::Executable, 5),
            // A quarter of a MiB is what any stack may have.
            (Reason::Stack, 5),
            (Reason::Locked, 5),
            (Reason::Raw, 3),
        ];
        assert_eq!(judged(&RANGES, &stacks, &text.concat()), right);
    }
}
