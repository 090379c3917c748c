//! The rooms of the policy core, as ARCHITECTURE draws them: a module imports from rooms in lower
//! layers, or within its own room, and no two modules import each other, not even by a detour.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The picture starts behind this line, one layer a line, the highest first; a fence ends it.
const PICTURE: &str = "```layers";
const CORE: &str = "crates/mglru/src";
/// The file that only names the others.
const ROOT: &str = "lib";

/// Modules by their path, each with the paths that it imports from.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Compares the core's imports with the picture. Returns one line for each breach.
pub(super) fn check(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let mut sources = BTreeMap::new();
    read(&root.join(CORE), "", &mut sources);
    let imports = imports(&sources);
    let mut breaches = against(&layers(&text), &imports);
    breaches.extend(circle(&imports));
    breaches
}

/// Gives each room the number of its layer, 0 the highest.
fn layers(architecture: &str) -> BTreeMap<String, usize> {
    let lines = architecture.lines().skip_while(|line| *line != PICTURE).skip(1);
    let rows = lines.take_while(|line| !line.starts_with("```"));
    let rooms = rows.enumerate().flat_map(|(at, row)| {
        let words = row.split("  ").next().unwrap_or_default().split_whitespace();
        words.map(move |room| (room.to_string(), at))
    });
    rooms.collect()
}

/// Collects source files by module path, without their tests.
fn read(folder: &Path, within: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let module = if within.is_empty() { name } else { format!("{within}::{name}") };
        if path.is_dir() {
            read(&path, &module, found);
        } else if !module.ends_with("tests") && module != ROOT {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            found.insert(module, code.to_string());
        }
    }
}

fn imports(sources: &BTreeMap<String, String>) -> Imports {
    let of = |(module, text): (&String, &String)| {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = code.flat_map(|line| line.split("crate::").skip(1));
        let paths = named.filter_map(|rest| resolve(rest, sources));
        (module.clone(), paths.filter(|path| path != module).collect())
    };
    sources.iter().map(of).collect()
}

/// Finds the longest module that a path begins with.
fn resolve(path: &str, sources: &BTreeMap<String, String>) -> Option<String> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == ':';
    let end = path.find(|c| !word(c)).unwrap_or(path.len());
    let parts: Vec<&str> = path[..end].split("::").collect();
    (1..=parts.len()).rev().map(|n| parts[..n].join("::")).find(|path| sources.contains_key(path))
}

fn room(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

/// Reports rooms that the picture lacks, and imports that go up or across.
fn against(layers: &BTreeMap<String, usize>, imports: &Imports) -> Vec<String> {
    let rooms: BTreeSet<&str> = imports.keys().map(|module| room(module)).collect();
    let lacking = rooms.iter().filter(|room| !layers.contains_key(**room));
    let mut breaches: Vec<String> =
        lacking.map(|room| format!("ARCHITECTURE.md: the picture lacks {room}")).collect();
    let layer = |module: &str| layers.get(room(module)).copied().unwrap_or(usize::MAX);
    for (module, named) in imports {
        let up = named.iter().filter(|other| room(other) != room(module));
        let up = up.filter(|other| layer(other) <= layer(module));
        breaches.extend(up.map(|other| format!("{CORE}: {module} imports {other}, not below it")));
    }
    breaches
}

/// Reports modules that import each other: those that stay when all without imports are taken away
/// again and again.
fn circle(imports: &Imports) -> Option<String> {
    let mut left = imports.clone();
    loop {
        let free: BTreeSet<String> =
            left.iter().filter(|(_, named)| named.is_empty()).map(|(m, _)| m.clone()).collect();
        if free.is_empty() {
            break;
        }
        left.retain(|module, _| !free.contains(module));
        left.values_mut().for_each(|named| named.retain(|other| !free.contains(other)));
    }
    let names: Vec<String> = left.into_keys().collect();
    (!names.is_empty()).then(|| format!("{CORE}: a circle of imports within {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "x\n```layers\nreclaim   calls\nmglru classic   both\ntypes   all\n```\n";

    fn sources(files: &[(&str, &str)]) -> Imports {
        imports(&files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
    }

    #[test]
    fn imports_go_down_the_picture() {
        let layers = layers(TEXT);
        assert_eq!((layers["reclaim"], layers["classic"], layers["types"]), (0, 1, 2));
        let sound = sources(&[
            ("reclaim", "use crate::mglru::walk::Walk;"),
            ("mglru::walk", "use crate::types::Seq;"),
            ("types", "//! See crate::reclaim."),
        ]);
        assert_eq!((against(&layers, &sound), circle(&sound)), (Vec::new(), None));
    }

    #[test]
    fn arrows_up_across_and_in_circles_are_reported() {
        let layers = layers(TEXT);
        let up = sources(&[("reclaim", ""), ("types", "use crate::reclaim::Step;")]);
        assert_eq!(against(&layers, &up), [format!("{CORE}: types imports reclaim, not below it")]);
        let across = sources(&[("mglru", "use crate::classic;"), ("classic", "")]);
        assert_eq!(against(&layers, &across).len(), 1);
        let round = sources(&[
            ("mglru::a", "use crate::mglru::b::B;"),
            ("mglru::b", "use crate::mglru::a::A;"),
        ]);
        assert!(circle(&round).unwrap().ends_with("mglru::a, mglru::b"), "{round:?}");
        let unknown = sources(&[("shed", "")]);
        assert_eq!(against(&layers, &unknown), ["ARCHITECTURE.md: the picture lacks shed"]);
    }
}
