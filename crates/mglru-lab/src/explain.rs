//! The life of one page in a run of the model, in sentences or as data.

use mglru_sim::explain::{List, MOST, Moment, PageId, What};
use mglru_sim::spec::PAGE_SIZE;
use mglru_workload::{FileSpec, Layout, RegionKind};
use serde::Serialize;

/// Lists the events of one page in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Life {
    /// Names variant and seed.
    pub run: String,
    /// Names the page, as it was asked for.
    pub page: String,
    /// Lists the events of the page, in order.
    pub moments: Vec<Line>,
    /// Says that the rest is left out: there were too many.
    pub is_cut: bool,
}

/// Describes one event of the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Holds the time, ns of virtual time.
    pub at_ns: u64,
    /// Names the process that caused the event.
    pub by: String,
    /// Names the event in a word.
    pub event: &'static str,
    /// Describes the event in a sentence.
    pub text: String,
    /// Names the group that the page is charged to, where it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Holds the page's generation and the youngest one, where it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<[u64; 2]>,
    /// Holds the page's tier, where that may have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// Counts pages of the machine that were reclaimed between its eviction and its return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<u64>,
}

impl Life {
    /// Puts what was seen into words; groups are named by the layout.
    pub fn new(run: String, page: &str, moments: &[Moment], layout: &Layout) -> Self {
        let lines = moments.iter().map(|moment| line(moment, layout)).collect();
        Self { run, page: page.to_string(), moments: lines, is_cut: moments.len() >= MOST }
    }

    /// Writes the events as text, a line each.
    pub fn text(&self) -> String {
        let mut text = format!("{}: page {}\n", self.run, self.page);
        if self.moments.is_empty() {
            text += "  it never came into memory\n";
        }
        for Line { at_ns, by, text: event, .. } in &self.moments {
            let us = at_ns / 1000;
            let (seconds, us) = (us / 1_000_000, us % 1_000_000);
            text += &format!("{seconds:>6}.{us:06} s  {by:<22} {event}\n");
        }
        if self.is_cut {
            text += "  (what follows is left out)\n";
        }
        text
    }
}

/// Finds the page: `FILE:PAGE` or `anonN:PAGE`, N a region's number in the workload.
///
/// # Errors
/// Says what there is.
pub fn find(text: &str, layout: &Layout) -> Result<PageId, String> {
    let (name, page) = text.rsplit_once(':').ok_or("want FILE:PAGE, such as file0:120")?;
    let page: u64 = page.parse().map_err(|_| format!("page {page}: want a number"))?;
    if let Some(at) = layout.files.iter().position(|file| file.name == name) {
        return Ok(PageId::File { file: at as u32, page });
    }
    let number = |kind: &str| name.strip_prefix(kind)?.parse::<usize>().ok();
    if let Some(at) = number("file").filter(|at| *at < layout.files.len()) {
        return Ok(PageId::File { file: at as u32, page });
    }
    let is_memory = |at: &usize| {
        layout.regions.get(*at).is_some_and(|r| !matches!(r.kind, RegionKind::File { .. }))
    };
    let Some(at) = number("anon").filter(is_memory) else { return Err(known(name, layout)) };
    match u32::try_from(page).ok().filter(|page| *page < layout.regions[at].pages) {
        Some(page) => Ok(PageId::Memory { region: at as u32, page }),
        None => Err(format!("anon{at} has {} pages, from 0 on", layout.regions[at].pages)),
    }
}

/// Checks that a page which nothing happened to is one of its file: files may grow in a run, so
/// only then is it known.
///
/// # Errors
/// Says how many pages the file has.
pub fn check(page: PageId, layout: &Layout) -> Result<(), String> {
    let PageId::File { file, page } = page else { return Ok(()) };
    let FileSpec { name, bytes } = &layout.files[file as usize];
    let pages = bytes.div_ceil(PAGE_SIZE);
    match page < pages {
        true => Ok(()),
        false => Err(format!("file{file} ({name}) has {pages} pages, from 0 on")),
    }
}

fn known(name: &str, layout: &Layout) -> String {
    let files =
        layout.files.iter().enumerate().map(|(at, file)| format!("file{at} ({})", file.name));
    let regions = layout.regions.iter().enumerate();
    let regions = regions.filter(|(_, region)| !matches!(region.kind, RegionKind::File { .. }));
    let names: Vec<String> = files.chain(regions.map(|(at, _)| format!("anon{at}"))).collect();
    let (some, rest) = names.split_at(names.len().min(8));
    let more = if rest.is_empty() { "" } else { ", …" };
    format!("the workload has no `{name}` (it has: {}{more})", some.join(", "))
}

fn line(moment: &Moment, layout: &Layout) -> Line {
    let Moment { at, comm, pid, what } = moment;
    let (event, text) = event_and_text(what, layout);
    let mut line = Line {
        at_ns: *at,
        by: if *pid == 0 { "a device".to_string() } else { format!("{comm}-{pid}") },
        event,
        text,
        group: None,
        generation: None,
        tier: None,
        distance: None,
    };
    match what {
        What::Came { memcg, list, refault } => {
            line.group = Some(group(*memcg, layout).to_string());
            line.generation = generation(*list);
            line.distance = *refault;
        }
        What::Moved { to: list, .. } | What::Aged { list } => line.generation = generation(*list),
        What::Accessed { tier } | What::Forgotten { tier } => line.tier = Some(*tier),
        _ => {}
    }
    line
}

fn generation(list: List) -> Option<[u64; 2]> {
    match list {
        List::Generation { seq, youngest, .. } => Some([seq, youngest]),
        _ => None,
    }
}

fn group(memcg: u32, layout: &Layout) -> &str {
    let at = (memcg as usize).checked_sub(1);
    at.map_or("/", |at| layout.groups.get(at).map_or("?", |group| group.name.as_str()))
}

fn event_and_text(what: &What, layout: &Layout) -> (&'static str, String) {
    let plain = |event, text: &str| (event, text.to_string());
    match what {
        What::Came { memcg, list, refault } => {
            let to = format!("charged to {}, {}", group(*memcg, layout), place(*list));
            match refault {
                None => ("came", format!("comes into memory, {to}")),
                Some(n) => {
                    ("refaulted", format!("comes back after {n} pages were reclaimed, {to}"))
                }
            }
        }
        What::Read => plain("read", "its data is there"),
        What::Moved { from: _, to: List::Off } => plain("isolated", "is taken off its list"),
        What::Moved { from, to } => {
            let back = if *from == List::Off { "put back" } else { "moved" };
            ("moved", format!("{back}: {}", place(*to)))
        }
        What::Aged { list } => ("aged", format!("grows older: {}", place(*list))),
        What::Accessed { tier } => ("accessed", format!("is marked as accessed, tier {tier}")),
        What::Forgotten { tier } => {
            ("forgotten", format!("its marks of accesses are taken, tier {tier}"))
        }
        What::Dirtied => plain("dirtied", "is newer than the device"),
        What::WriteBegan => plain("writing", "its write begins"),
        What::Written => plain("written", "its write has ended"),
        What::Evicted { swapped: false } => plain("evicted", "is evicted"),
        What::Evicted { swapped: true } => plain("evicted", "is evicted to swap"),
        What::Dropped => plain("dropped", "is dropped: cut, unmapped, or its owner ended"),
    }
}

fn place(list: List) -> String {
    match list {
        List::Generation { seq, oldest, youngest } => {
            format!("generation {seq} of {oldest} to {youngest}")
        }
        List::Active => "on the active list".to_string(),
        List::Inactive => "on the inactive list".to_string(),
        List::Unevictable => "where nothing is evicted".to_string(),
        List::Parked => "in a processor's batch".to_string(),
        List::Off => "on no list yet".to_string(),
    }
}

#[cfg(test)]
mod tests;
