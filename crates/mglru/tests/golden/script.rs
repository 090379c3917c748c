//! The script language of the golden scenarios. One input a line; `#` begins a remark; lines that
//! begin with a bar are output. The first line names the variant. Folios are named by number, in
//! the order they came.
//!
//! ```text
//! variant NAME        read N        fault anon|file|shmem N     accessed ID…   touch ID…
//! dirty ID…           write ID…     written ID…                 rest ID…       age
//! reclaim PAGES       request PAGES evict PAGES                 return KEY     swappiness N
//! ```

use mglru::folio::Bit;
use mglru::{Entry, FolioId, FolioKind, MemcgId, MmId, Reclaim};

use crate::toy::{NODE, World};

/// A machine with one group and one address space.
struct Scene {
    world: World,
    g: MemcgId,
    mm: MmId,
    folios: Vec<FolioId>,
    reported: usize,
    mapped: u64,
}

/// Runs every input and writes what it did below it.
pub fn run(text: &str) -> Result<String, String> {
    let mut scene: Option<Scene> = None;
    let mut out = String::new();
    for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.starts_with('|')) {
        out.push_str(line);
        out.push('\n');
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let Some((&verb, rest)) = words.split_first() else { continue };
        let at = |error| format!("line {}: {error}", n + 1);
        match (verb, rest, &mut scene) {
            ("variant", [name], None) => scene = Some(Scene::new(name).map_err(at)?),
            (_, _, Some(scene)) => {
                scene.apply(verb, rest).map_err(at)?;
                scene.dump(&mut out);
            }
            _ => return Err(at("the first line is `variant NAME`".to_string())),
        }
    }
    Ok(out)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

impl Scene {
    fn new(variant: &str) -> Result<Self, String> {
        let config = mglru::Config::variant(variant).map_err(|e| e.to_string())?;
        let mut world = World::new(config);
        let g = world.group(MemcgId::ROOT);
        let mm = world.mm(g);
        Ok(Self { world, g, mm, folios: Vec::new(), reported: 0, mapped: 0 })
    }

    fn apply(&mut self, verb: &str, words: &[&str]) -> Result<(), String> {
        self.world.toy.now += 1_000_000_000;
        match (verb, words) {
            ("fault", [kind, n]) => return self.fault(kind, number(n)?),
            ("age", []) => self.world.age(self.g),
            (_, [one]) if self.apply_number(verb, number(one)?)? => {}
            (_, ids) if !ids.is_empty() => {
                for id in ids {
                    let id = number(id)? as usize;
                    let folio = self.folios.get(id).ok_or(format!("there is no folio {id}"))?;
                    self.apply_folio(verb, *folio)?;
                }
            }
            _ => return Err(format!("unknown input `{verb}`")),
        }
        Ok(())
    }

    /// False: the verb takes folios.
    fn apply_number(&mut self, verb: &str, n: u64) -> Result<bool, String> {
        match verb {
            "read" => self.folios.extend(self.world.files(self.g, n as usize)),
            "reclaim" => drop(self.world.reclaim(self.g, n)),
            "request" => drop(self.world.run(Reclaim::proactive(self.g, n, None))),
            "evict" => drop(self.world.evict(self.g, n)),
            "swappiness" => self.world.toy.groups[self.g.index()].swappiness = n as u8,
            "return" => {
                let freed = self.world.toy.freed.iter().find(|f| u64::from(f.owner[0]) == n);
                let shadow = freed.ok_or(format!("{n} was not evicted"))?.shadow;
                self.folios.push(self.world.refault(self.g, shadow, Entry::Plain));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn apply_folio(&mut self, verb: &str, folio: FolioId) -> Result<(), String> {
        match verb {
            "accessed" => self.world.lru.accessed(folio),
            "touch" => self.world.touch(folio),
            "rest" => self.world.rest(folio),
            "dirty" => self.world.lru.set_dirty(folio),
            "write" => {
                self.world.lru.clean(folio);
                self.world.lru.start_writeback(folio);
            }
            "written" => self.world.end_writeback(folio),
            _ => return Err(format!("unknown input `{verb}`")),
        }
        Ok(())
    }

    fn fault(&mut self, kind: &str, n: u64) -> Result<(), String> {
        let kind = match kind {
            "anon" => FolioKind::Anon,
            "file" => FolioKind::File,
            "shmem" => FolioKind::Shmem,
            _ => return Err(format!("unknown kind `{kind}`")),
        };
        for _ in 0..n {
            let folio = self.world.fault_nth(kind, self.g, self.mm, self.mapped);
            self.mapped += 1;
            self.folios.push(folio);
        }
        Ok(())
    }

    /// Sizes, the live folios that carry marks, what was evicted, and counters that are not zero.
    fn dump(&mut self, out: &mut String) {
        self.world.lru.check();
        if self.world.lru.config().is_mglru() {
            for (seq, anon, file) in self.world.generations(self.g) {
                out.push_str(&format!("| generation {seq}: anon {anon}, file {file}\n"));
            }
        } else {
            let s = self.world.lru.sizes(self.g, NODE);
            let (ia, aa, fi, fa) = (s.inactive_anon, s.active_anon, s.inactive_file, s.active_file);
            out.push_str(&format!("| anon {ia} inactive {aa} active"));
            out.push_str(&format!(", file {fi} inactive {fa} active\n"));
        }
        self.dump_marks(out);
        let new = &self.world.toy.freed[self.reported..];
        if !new.is_empty() {
            let keys: Vec<String> = new.iter().map(|f| f.owner[0].to_string()).collect();
            out.push_str(&format!("| evicted {}\n", keys.join(" ")));
        }
        self.reported = self.world.toy.freed.len();
        out.push_str(&format!("|{}\n", self.counters()));
    }

    fn dump_marks(&self, out: &mut String) {
        for (_, folio) in self.world.lru.folios().iter() {
            let named = MARKS.iter().filter(|(bit, _)| folio.flags.has(*bit));
            let marks: Vec<&str> = named.map(|(_, name)| *name).collect();
            if !marks.is_empty() {
                let refs = folio.flags.refs();
                let place =
                    folio.flags.generation().map_or(String::new(), |g| format!(" in slot {}", g.0));
                let key = folio.owner[0];
                out.push_str(&format!("| folio {key}{place}: {}, refs {refs}\n", marks.join(" ")));
            }
        }
    }

    fn counters(&self) -> String {
        let shown = |name: &str| {
            !["reclaim_calls", "slabs_scanned", "walk_ptes", "walk_young"].contains(&name)
        };
        let counters: &mglru::Counters = self.world.lru.counters();
        let nonzero = counters.iter().filter(|(name, n)| *n > 0 && shown(name));
        nonzero.map(|(name, n)| format!(" {name} {n}")).collect()
    }
}

const MARKS: [(Bit, &str); 6] = [
    (Bit::REFERENCED, "referenced"),
    (Bit::WORKINGSET, "workingset"),
    (Bit::DIRTY, "dirty"),
    (Bit::WRITEBACK, "writeback"),
    (Bit::RECLAIM, "reclaim"),
    (Bit::SWAPCACHE, "swapcache"),
];
