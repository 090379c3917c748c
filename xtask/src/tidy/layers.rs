//! The rooms of a crate, as ARCHITECTURE draws them: a module imports from rooms in lower layers,
//! or within its own room, and no two modules import each other, not even by a detour. The policy
//! core and the pager have such a picture.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A crate with a picture: one layer a line behind the fence, the highest first.
struct Picture {
    fence: &'static str,
    sources: &'static str,
}

const PICTURES: [Picture; 2] = [
    Picture { fence: "```layers", sources: "crates/mglru/src" },
    Picture { fence: "```layers pager", sources: "crates/mglru-pager/src" },
];
/// The file that only names the others.
const ROOT: &str = "lib";

/// Modules by their path, each with the paths that it imports from.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Compares the imports of each crate that has a picture with it. Returns one line for each breach.
pub(super) fn check(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    PICTURES.iter().flat_map(|picture| picture.check(root, &text)).collect()
}

impl Picture {
    fn check(&self, root: &Path, architecture: &str) -> Vec<String> {
        let mut sources = BTreeMap::new();
        read(&root.join(self.sources), "", &mut sources);
        self.breaches(architecture, &imports(&sources))
    }

    fn breaches(&self, architecture: &str, imports: &Imports) -> Vec<String> {
        let layers = layers(architecture, self.fence);
        if layers.is_empty() {
            return vec![format!("ARCHITECTURE.md: no picture of {}", self.sources)];
        }
        let mut found = against(&layers, imports);
        found.extend(circle(imports));
        found.iter().map(|breach| format!("{}: {breach}", self.sources)).collect()
    }
}

/// Gives each room the number of its layer, 0 the highest.
fn layers(architecture: &str, fence: &str) -> BTreeMap<String, usize> {
    let lines = architecture.lines().skip_while(|line| *line != fence).skip(1);
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
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = lines.flat_map(|line| [line, "\n"]).collect();
        let absolute = code.split("crate::").skip(1).flat_map(names);
        let relative =
            relative(module, &code).into_iter().filter(|path| room(path) != room(module));
        let paths = absolute.chain(relative).filter_map(|path| resolve(&path, sources));
        (module.clone(), paths.filter(|path| path != module).collect())
    };
    sources.iter().map(of).collect()
}

/// Names what follows `crate::`: one path, or several in braces.
fn names(rest: &str) -> Vec<String> {
    let Some(list) = rest.strip_prefix('{') else { return vec![rest.to_string()] };
    let (mut depth, mut names) = (0, vec![String::new()]);
    for c in list.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => names.push(String::new()),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                names.last_mut().expect("there is a first").push(c);
            }
        }
    }
    names.iter().map(|name| name.trim().to_string()).collect()
}

/// Lists the paths that a module names by `super::`, from the crate on.
fn relative(module: &str, code: &str) -> Vec<String> {
    let parts: Vec<&str> = module.split("::").collect();
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(at) = rest.find("super::") {
        rest = &rest[at..];
        let mut above = parts.len();
        while let Some(after) = rest.strip_prefix("super::") {
            (above, rest) = (above.saturating_sub(1), after);
        }
        let paths = names(rest).into_iter().map(|name| {
            let path = parts[..above].iter().copied().chain([name.as_str()]);
            path.collect::<Vec<_>>().join("::")
        });
        found.extend(paths);
    }
    found
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
        lacking.map(|room| format!("the picture lacks {room}")).collect();
    let layer = |module: &str| layers.get(room(module)).copied().unwrap_or(usize::MAX);
    for (module, named) in imports {
        let up = named.iter().filter(|other| room(other) != room(module));
        let up = up.filter(|other| layer(other) <= layer(module));
        breaches.extend(up.map(|other| format!("{module} imports {other}, not below it")));
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
    (!names.is_empty()).then(|| format!("a circle of imports within {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "x\n```layers\nreclaim   calls\nmglru classic   both\ntypes   all\n```\n";

    fn sources(files: &[(&str, &str)]) -> Imports {
        imports(&files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
    }

    const DRAWN: Picture = Picture { fence: "```layers", sources: "src" };

    #[test]
    fn imports_go_down_the_picture() {
        let layers = layers(TEXT, "```layers");
        assert_eq!((layers["reclaim"], layers["classic"], layers["types"]), (0, 1, 2));
        let sound = sources(&[
            ("reclaim", "use crate::mglru::walk::Walk;"),
            ("mglru", "mod walk;"),
            ("mglru::walk", "use super::Turn;\nuse crate::types::Seq;"),
            ("types", "//! See crate::reclaim."),
        ]);
        assert_eq!(DRAWN.breaches(TEXT, &sound), [""; 0]);
    }

    #[test]
    fn arrows_up_across_and_in_circles_are_reported() {
        let up = sources(&[("reclaim", ""), ("types", "use crate::reclaim::Step;")]);
        let arrow = "src: types imports reclaim, not below it";
        assert_eq!(DRAWN.breaches(TEXT, &up), [arrow]);
        let across = sources(&[("mglru", "use crate::classic;"), ("classic", "")]);
        assert_eq!(DRAWN.breaches(TEXT, &across).len(), 1);
        let round = sources(&[
            ("mglru::a", "use crate::mglru::b::B;"),
            ("mglru::b", "use crate::mglru::a::A;"),
        ]);
        assert!(circle(&round).unwrap().ends_with("mglru::a, mglru::b"), "{round:?}");
        let unknown = sources(&[("shed", "")]);
        assert_eq!(DRAWN.breaches(TEXT, &unknown), ["src: the picture lacks shed"]);
        assert_eq!(DRAWN.breaches("", &unknown), ["ARCHITECTURE.md: no picture of src"]);
    }

    #[test]
    fn an_import_goes_up_however_it_is_written() {
        for text in [
            "use crate::{reclaim::Step, mglru};",
            "use crate::{\n    mglru::{\n        walk,\n    },\n    reclaim,\n};",
            "use super::reclaim::Step;",
            "use super::{reclaim, mglru};",
            "fn f() { super::reclaim::step() }",
        ] {
            let found = sources(&[("reclaim", ""), ("types", text)]);
            let arrow = "src: types imports reclaim, not below it";
            assert_eq!(DRAWN.breaches(TEXT, &found), [arrow], "{text}");
        }
        let within =
            sources(&[("reclaim", ""), ("types::seq", "use super::super::reclaim::Step;")]);
        assert_eq!(DRAWN.breaches(TEXT, &within).len(), 1);
    }

    #[test]
    fn each_crate_has_its_own_picture() {
        let text = format!("{TEXT}\n```layers pager\nhandler  serves\narena  pages\n```\n");
        let pager = Picture { fence: "```layers pager", sources: "pager" };
        let up = sources(&[("arena", "use crate::handler::Ahead;"), ("handler", "")]);
        assert_eq!(pager.breaches(&text, &up), ["pager: arena imports handler, not below it"]);
        let down = sources(&[("handler", "use crate::arena::Arena;"), ("arena", "")]);
        assert_eq!(pager.breaches(&text, &down), [""; 0]);
        assert!(!DRAWN.breaches(&text, &down).is_empty(), "the other crate has no such rooms");
    }
}
