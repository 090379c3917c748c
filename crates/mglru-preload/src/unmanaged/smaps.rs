//! Reads what is mapped and how much of it is resident from `/proc/PID/smaps`.

use std::ops::Range;

use super::proc::{self, Path};

/// Names of mappings are kept up to this length, bytes.
const NAME: usize = 96;

/// Describes one mapping.
#[derive(Clone, Copy)]
pub struct Area {
    /// Holds its first address.
    pub start: usize,
    /// Holds the address after its last.
    pub end: usize,
    /// Says that it may be written.
    pub writable: bool,
    /// Says that it may be executed.
    pub executable: bool,
    /// Says that other processes see stores to it.
    pub shared: bool,
    /// Names the file: device and inode. The inode is 0 if there is none.
    pub file: ([u8; 8], u64),
    name: [u8; NAME],
    name_len: usize,
    /// Counts resident bytes.
    pub rss: u64,
    /// Counts resident bytes, shared ones divided by the processes that share them.
    pub pss: u64,
    /// Counts resident bytes that no other process maps.
    pub private: u64,
    /// Counts resident bytes that are no file's.
    pub anonymous: u64,
    /// Counts bytes in swap.
    pub swap: u64,
    /// Counts bytes in swap, shared ones divided by the processes that share them.
    pub swap_pss: u64,
    /// Counts bytes of hugetlb pages.
    pub huge: u64,
    /// Says that it is locked in memory.
    pub locked: bool,
    /// Says that it grows downwards, as a stack does.
    pub grows_down: bool,
}

impl Area {
    const NONE: Self = Self {
        start: 0,
        end: 0,
        writable: false,
        executable: false,
        shared: false,
        file: ([0; 8], 0),
        name: [0; NAME],
        name_len: 0,
        rss: 0,
        pss: 0,
        private: 0,
        anonymous: 0,
        swap: 0,
        swap_pss: 0,
        huge: 0,
        locked: false,
        grows_down: false,
    };

    /// Returns its addresses.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns the file's path, or what the kernel says it is; empty for anonymous memory.
    pub fn name(&self) -> &[u8] {
        &self.name[..self.name_len]
    }

    /// `START-END PERMISSIONS OFFSET DEVICE INODE NAME`.
    fn of_head(line: &[u8]) -> Option<Self> {
        let mut rest = line;
        let mut word = || {
            let text = rest.trim_ascii_start();
            let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
            let (word, after) = text.split_at(end);
            rest = after;
            word
        };
        let (range, permissions, _, device, inode) = (word(), word(), word(), word(), word());
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
        let has = |nth: usize, what: u8| permissions.get(nth) == Some(&what);
        let mut area = Self { start, end, writable: has(1, b'w'), ..Self::NONE };
        (area.executable, area.shared) = (has(2, b'x'), has(3, b's'));
        let n = device.len().min(8);
        area.file.0[..n].copy_from_slice(&device[..n]);
        area.file.1 = proc::number(inode)?;
        let name = rest.trim_ascii_start();
        area.name_len = name.len().min(NAME);
        area.name[..area.name_len].copy_from_slice(&name[..area.name_len]);
        Some(area)
    }

    /// `Key:   NUMBER kB`, or `VmFlags: ab cd`.
    fn take(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return };
        let (key, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if key == b"VmFlags" {
            let has = |flag: &[u8]| value.split(|&byte| byte == b' ').any(|word| word == flag);
            (self.locked, self.grows_down) = (has(b"lo"), has(b"gd"));
            return;
        }
        let place = match key {
            b"Rss" => &mut self.rss,
            b"Pss" => &mut self.pss,
            b"Private_Clean" | b"Private_Dirty" => &mut self.private,
            b"Anonymous" => &mut self.anonymous,
            b"Swap" => &mut self.swap,
            b"SwapPss" => &mut self.swap_pss,
            b"Shared_Hugetlb" | b"Private_Hugetlb" => &mut self.huge,
            _ => return,
        };
        let digits = value.split(|&byte| byte == b' ').next().and_then(proc::number);
        *place += digits.unwrap_or(0) << 10;
    }
}

fn hex(text: &[u8]) -> Option<usize> {
    usize::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// Lines to mappings.
struct Reader<F> {
    area: Option<Area>,
    each: F,
}

impl<F: FnMut(&Area)> Reader<F> {
    fn take(&mut self, line: &[u8]) {
        // Keys begin with a capital letter, addresses do not.
        if line.first().is_some_and(u8::is_ascii_uppercase) {
            self.area.iter_mut().for_each(|area| area.take(line));
        } else {
            self.end();
            self.area = Area::of_head(line);
        }
    }

    fn end(&mut self) {
        if let Some(area) = self.area.take() {
            (self.each)(&area);
        }
    }
}

/// Does something with each mapping that the file lists; false: it cannot be read.
pub fn areas(path: &Path, each: impl FnMut(&Area)) -> bool {
    let mut reader = Reader { area: None, each };
    let read = proc::lines(path, |line| reader.take(line));
    reader.end();
    read
}

/// Does something with each mapping that a text lists.
#[cfg(test)]
pub fn areas_of(text: &str, each: impl FnMut(&Area)) {
    let mut reader = Reader { area: None, each };
    text.lines().for_each(|line| reader.take(line.as_bytes()));
    reader.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_have_what_their_lines_say() {
        let text = "\
7f00-7f10 rw-p 00000000 00:00 0 
Size:   16 kB
Rss:    12 kB
Pss:    6 kB
Private_Clean: 1 kB
Private_Dirty: 2 kB
Anonymous: 12 kB
Swap:   4 kB
SwapPss: 3 kB
VmFlags: rd wr mr mw me lo ac
8000-9000 r-xs 00001000 fe:01 77 /a b (deleted)
Rss:    8 kB
Private_Hugetlb: 2048 kB
garbage
";
        let mut seen = Vec::new();
        areas_of(text, |area| seen.push(*area));
        let [one, two] = seen[..] else { panic!("{} areas", seen.len()) };
        assert_eq!(
            (one.range(), one.rss, one.pss, one.private),
            (0x7f00..0x7f10, 12288, 6144, 3072)
        );
        assert_eq!((one.anonymous, one.swap, one.swap_pss), (12288, 4096, 3072));
        assert!(one.writable && one.locked && !one.shared && !one.executable);
        assert!(two.executable && two.shared && !two.locked);
        assert_eq!((two.name(), two.file.1, two.huge), (&b"/a b (deleted)"[..], 77, 2 << 20));
        assert_eq!(&two.file.0[..5], b"fe:01");
    }

    #[test]
    fn this_process_is_read() {
        let seen = std::cell::Cell::new(false);
        let stack = &raw const seen as usize;
        assert!(areas(&Path::new(format_args!("/proc/thread-self/smaps")), |area| {
            seen.set(seen.get() || area.range().contains(&stack) && area.rss > 0 && area.writable);
        }));
        assert!(seen.get());
    }
}
