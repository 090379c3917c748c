//! Answers under cgroup v2's file names, and lru_gen: one table of names with how
//! each is read and written. Whatever shows groups to the outside goes through it.

mod metrics;
mod stat;
pub(crate) mod unmanaged;
mod value;

use crate::error::PagerError;
use crate::group::{Group, Limit};

use value::{limit_text, parse_limit, parse_number};

type Read = fn(&Group) -> Result<String, PagerError>;
type Write = fn(&Group, &str) -> Result<(), PagerError>;

/// Describes one file of a group.
#[derive(Clone, Copy)]
pub struct GroupFile {
    /// Names the file.
    pub name: &'static str,
    read: Option<Read>,
    write: Option<Write>,
    /// Only the root group has it.
    of_root: bool,
}

impl GroupFile {
    /// Tells whether the group of this path has the file.
    pub fn is_in(&self, path: &str) -> bool {
        !self.of_root || path == "/"
    }

    /// Tells whether it can be read.
    pub fn is_readable(&self) -> bool {
        self.read.is_some()
    }

    /// Tells whether it can be written.
    pub fn is_writable(&self) -> bool {
        self.write.is_some()
    }
}

const fn shown(name: &'static str, read: Read) -> GroupFile {
    GroupFile { name, read: Some(read), write: None, of_root: false }
}

const fn set(name: &'static str, read: Read, write: Write) -> GroupFile {
    GroupFile { name, read: Some(read), write: Some(write), of_root: false }
}

macro_rules! limit {
    ($name:literal, $limit:expr) => {
        set(
            $name,
            |group| Ok(limit_text(group.limit($limit))),
            |group, text| group.change_limit($limit, parse_limit($name, text)?),
        )
    };
}

const FILES: &[GroupFile] = &[
    shown("cgroup.controllers", |_| Ok("memory\n".into())),
    shown("cgroup.procs", |_| Ok(format!("{}\n", std::process::id()))),
    shown("cgroup.subtree_control", |_| Ok("memory\n".into())),
    set("lru_gen", Group::lru_gen, lru_gen),
    shown("memory.current", |group| Ok(format!("{}\n", group.current()))),
    shown("memory.events", stat::memory_events),
    limit!("memory.high", Limit::High),
    limit!("memory.low", Limit::Low),
    limit!("memory.max", Limit::Max),
    limit!("memory.min", Limit::Min),
    shown("memory.peak", |group| Ok(format!("{}\n", group.peak()))),
    shown("memory.pressure", |group| Ok(group.pressure())),
    GroupFile { name: "memory.reclaim", read: None, write: Some(reclaim), of_root: false },
    shown("memory.stat", stat::memory),
    shown("memory.swap.current", |group| Ok(format!("{}\n", group.swap_current()))),
    shown("memory.swap.events", |group| stat::events(group, stat::SWAP_EVENTS)),
    limit!("memory.swap.max", Limit::SwapMax),
    set("memory.swappiness", |group| Ok(format!("{}\n", group.swappiness())), swappiness),
    GroupFile { of_root: true, ..shown("memory.unmanaged", |_| unmanaged::read()) },
    shown("mglru.distances", metrics::distances),
    shown("mglru.faults", metrics::faults),
    shown("mglru.tiers", metrics::tiers),
];

/// Lists all files of a group, in the order of their names.
pub fn files() -> &'static [GroupFile] {
    FILES
}

fn file(name: &str) -> Result<&'static GroupFile, PagerError> {
    let found = FILES.iter().find(|file| file.name == name);
    found.ok_or_else(|| PagerError::NoFile(name.into()))
}

impl Group {
    /// Reads the text of one of its [`files`].
    ///
    /// # Errors
    /// There is no such file, it cannot be read, or the pager has stopped.
    pub fn read(&self, name: &str) -> Result<String, PagerError> {
        let file = file(name).and_then(|file| self.its(file))?;
        let read = file.read.ok_or_else(|| PagerError::FileAccess(name.into()))?;
        read(self)
    }

    /// Writes one of its [`files`].
    ///
    /// # Errors
    /// There is no such file, it cannot be written, or not with this text.
    pub fn write(&self, name: &str, text: &str) -> Result<(), PagerError> {
        let file = file(name).and_then(|file| self.its(file))?;
        let write = file.write.ok_or_else(|| PagerError::FileAccess(name.into()))?;
        write(self, text.trim())
    }

    fn its<'a>(&self, file: &'a GroupFile) -> Result<&'a GroupFile, PagerError> {
        let its = Some(file).filter(|file| file.is_in(self.path()));
        its.ok_or_else(|| PagerError::NoFile(file.name.into()))
    }
}

fn swappiness(group: &Group, text: &str) -> Result<(), PagerError> {
    group.set_swappiness(parse_number("memory.swappiness", text, 200)? as u8)
}

/// `SIZE [swappiness=N]`. As the kernel has it, less than was asked for is an error.
fn reclaim(group: &Group, text: &str) -> Result<(), PagerError> {
    const NAME: &str = "memory.reclaim";
    let bad = || PagerError::Value { file: NAME, text: text.into() };
    let mut fields = text.split_whitespace();
    let bytes = parse_limit(NAME, fields.next().unwrap_or_default())?.ok_or_else(bad)?;
    let swappiness = match fields.next() {
        None => None,
        Some(word) => {
            let number = word.strip_prefix("swappiness=").ok_or_else(bad)?;
            Some(parse_number(NAME, number, 200)? as u8)
        }
    };
    if fields.next().is_some() {
        return Err(bad());
    }
    let got = group.reclaim_with(bytes, swappiness)?;
    if got < bytes { Err(PagerError::Reclaimed { got, wanted: bytes }) } else { Ok(()) }
}

/// `+ [MEMCG NODE SEQ …]`: a new generation, as in the kernel's debugfs file.
fn lru_gen(group: &Group, text: &str) -> Result<(), PagerError> {
    if text.split_whitespace().next() != Some("+") {
        return Err(PagerError::Value { file: "lru_gen", text: text.into() });
    }
    group.age().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_every_file_does_something() {
        assert!(FILES.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(FILES.iter().all(|file| file.is_readable() || file.is_writable()));
        assert!(matches!(file("memory.maxx"), Err(PagerError::NoFile(_))));
        let unmanaged = file("memory.unmanaged").unwrap();
        assert!(unmanaged.is_in("/") && !unmanaged.is_in("/app"));
    }
}
