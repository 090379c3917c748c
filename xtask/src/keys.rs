//! The page `docs/reference/keys.md`: every key of a plan, from the doc comments of the types
//! that plans are read into. `cargo xtask keys` writes it; `tidy` compares it.

mod values;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use values::Defaults;

/// Says where the page lies.
pub const PAGE: &str = "docs/reference/keys.md";

const HEAD: &str = "# Every key of a plan

Written by `cargo xtask keys` from the sources; do not edit. `mglru help keys` prints it, and
`mglru help keys machine.swap` one section. `mglru show PLAN` prints the keys that a plan sets,
`--set KEY=VALUE` sets one for a run. Sizes are texts such as `\"64MiB\"`. What a
key means together with others is said in [Plans](plans.md). Keys of `[reclaim]` are
[switches](variants.md).
";

/// Sections of the page: title, file, type.
const SECTIONS: &[(&str, &str, &str)] = &[
    ("a plan's own keys", "mglru-lab/src/plan/read.rs", "Head"),
    ("`[quick]`: the part that a bare `mglru run` makes", "mglru-lab/src/plan.rs", "Brief"),
    ("`[all]`: the plan's part of `mglru run all`", "mglru-lab/src/plan.rs", "Brief"),
    ("`[[published]]`: a published change", "mglru-lab/src/plan/expect.rs", "Published"),
    ("`[[expect]]`: what shows that the run is sound", "mglru-lab/src/plan/expect.rs", "Expect"),
    ("`[[neutral]]`: what must stay equal", "mglru-lab/src/plan/expect.rs", "Neutral"),
    ("`[[indicator]]`: a normal range", "mglru-lab/src/plan/expect.rs", "Indicator"),
    ("`[watch]`: who must be flagged", "mglru-lab/src/plan/expect.rs", "Watch"),
    ("`[[bound]]`: what `mglru check` judges", "mglru-lab/src/plan/bound.rs", "Bound"),
    ("`[machine]`", "mglru-sim/src/spec.rs", "MachineSpec"),
    ("`[machine.zones]`", "mglru-sim/src/zones.rs", "ZoneSpec"),
    ("`[machine.device]`", "mglru-sim/src/device/spec.rs", "DeviceSpec"),
    ("`[machine.swap]`", "mglru-sim/src/swap/spec.rs", "SwapSpec"),
    ("`[machine.dirty]`", "mglru-sim/src/dirty/spec.rs", "DirtySpec"),
    ("`[machine.costs]`", "mglru-sim/src/costs.rs", "Costs"),
    ("`[groups.\"/NAME\"]`", "mglru-sim/src/spec/groups.rs", "GroupSpec"),
    ("`[kernel]`", "mglru-lab/src/backend/kernel/spec.rs", "KernelSpec"),
    ("`kind = \"touch\"`", "mglru-workload/src/touch.rs", "TouchParams"),
    ("`kind = \"job\"`", "mglru-workload/src/spec.rs", "JobSource"),
    ("`kind = \"trace\"`", "mglru-workload/src/spec.rs", "TraceSource"),
    ("`kind = \"several\"`", "mglru-workload/src/several.rs", "SeveralParams"),
    ("`[workload.parts.NAME]`: one of several", "mglru-workload/src/several.rs", "Part"),
    ("`kind = \"program\"`", "mglru-lab/src/backend/kernel/program.rs", "Keys"),
    ("`kind = \"fio\"`", "mglru-workload/src/fio.rs", "FioParams"),
    ("`kind = \"ycsb\"`", "mglru-workload/src/ycsb/store.rs", "StoreParams"),
    ("`kind = \"wiredtiger\"`", "mglru-workload/src/wiredtiger/params.rs", "WiredTigerParams"),
    ("`kind = \"sysbench\"`", "mglru-workload/src/sysbench.rs", "SysbenchParams"),
    ("`kind = \"memcached\"`", "mglru-workload/src/memcached.rs", "MemcachedParams"),
    ("`kind = \"kernel-build\"`", "mglru-workload/src/kernel_build.rs", "KernelBuildParams"),
    ("`kind = \"chrome-node\"`", "mglru-workload/src/chrome_node.rs", "ChromeNodeParams"),
    ("`kind = \"android\"`", "mglru-workload/src/android/params.rs", "AndroidParams"),
    ("`kind = \"fairness\"`", "mglru-workload/src/fairness.rs", "FairnessParams"),
    ("`kind = \"mixed\"`", "mglru-workload/src/mixed_pressure.rs", "MixedParams"),
    ("`kind = \"postmark\"`", "mglru-workload/src/postmark.rs", "PostmarkParams"),
    ("`kind = \"fsmark\"`", "mglru-workload/src/fsmark.rs", "FsmarkParams"),
    ("`kind = \"dd\"`", "mglru-workload/src/dd.rs", "DdParams"),
    ("`kind = \"highalloc\"`", "mglru-workload/src/highalloc.rs", "HighallocParams"),
];

/// Words that several workloads take.
const ENGINES: &str = "crates/mglru-workload/src/pages.rs";

/// The statements of the job language, and the title of their section.
const STATEMENTS: &str = "crates/mglru-workload/src/job/statements.rs";
const LANGUAGE: &str = "`job-language`: statements of `kind = \"job\"`";
const TABLE: &str = "| key | takes | unit | default | meaning |\n|---|---|---|---|---|";

/// Writes the page. False where it could not.
pub fn write(root: &Path) -> bool {
    let page = page(root);
    let written = page.and_then(|text| fs::write(root.join(PAGE), text).map_err(|e| e.to_string()));
    written.inspect_err(|e| eprintln!("{PAGE}: {e}")).is_ok()
}

/// Says what is wrong with the page, if anything is.
pub fn stale(root: &Path) -> Option<String> {
    let there = fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    match page(root) {
        Ok(text) if text == there => None,
        Ok(_) => Some("is not what the sources say: run `cargo xtask keys`".to_string()),
        Err(error) => Some(error),
    }
}

fn page(root: &Path) -> Result<String, String> {
    let mut text = HEAD.to_string();
    for (title, file, name) in SECTIONS {
        let path = root.join("crates").join(file);
        let source = fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
        let words = source.clone() + &fs::read_to_string(root.join(ENGINES)).unwrap_or_default();
        let keys = keys(&source, &words, name).ok_or(format!("{file}: no struct {name}"))?;
        let _ = write!(text, "\n## {title}\n\n{TABLE}\n");
        for Key { name, takes, unit, default, means } in keys {
            let _ = writeln!(text, "| `{name}` | {takes} | {unit} | {default} | {means} |");
        }
    }
    let source = fs::read_to_string(root.join(STATEMENTS)).map_err(|e| e.to_string())?;
    let _ = write!(text, "\n## {LANGUAGE}\n\n{TABLE}\n");
    for [name, takes, means] in statements(&source) {
        let _ = writeln!(text, "| `{name}` | {takes} |  |  | {means} |");
    }
    Ok(text)
}

/// The texts of a table of statements, three each: its name, what it takes, what it says.
fn statements(source: &str) -> Vec<[String; 3]> {
    let table = between(source, "&[(&str, &str, &str)] = &[", "\n];").unwrap_or_default();
    let joined = table.split("\\\n").map(str::trim_start).collect::<String>();
    let texts: Vec<String> =
        joined.split('"').skip(1).step_by(2).map(|text| text.replace('|', "\\|")).collect();
    texts.chunks_exact(3).map(|of| [0, 1, 2].map(|at: usize| of[at].clone())).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Key {
    name: String,
    takes: String,
    unit: &'static str,
    default: String,
    means: String,
}

/// Fields of a struct with their doc comments; `None`: it is not there. `words` holds the enums
/// that its fields may be of.
fn keys(source: &str, words: &str, name: &str) -> Option<Vec<Key>> {
    let body = between(source, &format!("struct {name} {{\n"), "\n}")?;
    let defaults = Defaults::of(source, name);
    let mut found = Vec::new();
    let (mut means, mut attributes) = (Vec::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            means.push(doc.trim().replace('|', "\\|"));
        } else if line.starts_with('#') {
            attributes += line;
        } else if let Some((field, kind)) = line.split_once(": ") {
            let (means, attributes) = (std::mem::take(&mut means), std::mem::take(&mut attributes));
            if means.is_empty() {
                continue; // What is flattened into the table has a section of its own.
            }
            let field = field.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            let kind = kind.trim_end_matches(',');
            let name = between(&attributes, "rename = \"", "\"").unwrap_or(field).to_string();
            found.push(Key {
                unit: unit(&name, kind),
                takes: takes(kind, words),
                default: defaults.field(field, kind, &attributes),
                means: means.join(" "),
                name,
            });
        }
    }
    Some(found)
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    Some(text.split_once(from)?.1.split_once(to)?.0)
}

/// The unit that a key's type or name says.
fn unit(name: &str, kind: &str) -> &'static str {
    const ENDS: [(&str, &str); 14] = [
        ("_ns", "ns"),
        ("_ps", "ps"),
        ("_us", "µs"),
        ("_ms", "ms"),
        ("_s", "s"),
        ("_kb", "KiB"),
        ("_mib", "MiB"),
        ("bytes", "bytes"),
        ("_per_mille", "‰"),
        ("_rate", "bytes/s"),
        ("_ratio", "%"),
        ("_target", "%"),
        ("_trigger", "%"),
        ("pages", "pages"),
    ];
    if kind.contains("Size") {
        return "bytes";
    }
    let numbers = ["u8", "u16", "u32", "u64", "usize", "f64"];
    let number = numbers.iter().any(|number| kind.contains(number));
    let end = ENDS.iter().find(|(end, _)| number && name.ends_with(end));
    end.map_or("", |(_, unit)| unit)
}

/// `MmapRandom` as plans write it: `mmap-random`.
fn kebab(word: &str) -> String {
    let mut text = String::new();
    for c in word.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(c.to_lowercase());
    }
    text
}

/// The words of an enum.
fn choices(words: &str, name: &str) -> Option<String> {
    let body = between(words, &format!("pub enum {name} {{\n"), "\n}")?;
    let variants = body.lines().map(|line| line.trim().trim_end_matches(','));
    let named = variants.filter(|v| !v.is_empty() && v.chars().all(char::is_alphanumeric));
    Some(named.map(|v| format!("`\"{}\"`", kebab(v))).collect::<Vec<_>>().join(", "))
}

/// A field's type in words.
fn takes(kind: &str, words: &str) -> String {
    let inner = |wrap| Some(takes(kind.strip_prefix(wrap)?.strip_suffix('>')?, words));
    if let Some(of) = inner("Option<") {
        return format!("{of}, or nothing");
    }
    if let Some(of) = inner("Vec<") {
        return format!("list of {of}");
    }
    match kind {
        "bool" => "`true`, `false`".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "whole number".into(),
        "f64" => "number".into(),
        "[f64; 2]" => "lowest and highest".into(),
        "String" => "text".into(),
        "PathBuf" => "path".into(),
        "Value" => "text, number or list".into(),
        "Size" => "size".into(),
        _ if kind.ends_with("Spec") || ["Costs", "Brief", "Watch"].contains(&kind) => {
            "see its section".into()
        }
        _ if kind.contains("Map<") => "table".into(),
        _ => choices(words, kind).unwrap_or_else(|| "text".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// X.\npub struct Other {\n    a: u8,\n}\n\npub struct Group {\n    \
        /// Never | reclaimed,\n    /// ever.\n    #[serde(rename = \"memory.min\")]\n    \
        pub min: Size,\n    /// Who.\n    pub names: Option<Vec<String>>,\n    /// How.\n    \
        pub how: Way,\n}\n\nimpl Default for Group {\n    fn default() -> Self {\n        \
        Self {\n            how: Way::OnFoot,\n            min: Size(1),\n        \
        }\n    }\n}\n\npub enum Way {\n    \
        /// Slow.\n    OnFoot,\n    Rail,\n}\n";

    #[test]
    fn fields_are_keys_and_their_comments_say_what_they_mean() {
        let key = |name: &str, takes: &str, unit, default: &str, means: &str| Key {
            name: name.into(),
            takes: takes.into(),
            unit,
            default: default.into(),
            means: means.into(),
        };
        let expected = vec![
            key("memory.min", "size", "bytes", "1", "Never \\| reclaimed, ever."),
            key("names", "list of text, or nothing", "", "", "Who."),
            key("how", "`\"on-foot\"`, `\"rail\"`", "", "`\"on-foot\"`", "How."),
        ];
        assert_eq!(keys(SOURCE, SOURCE, "Group"), Some(expected));
        assert_eq!(keys(SOURCE, SOURCE, "Gone"), None);
    }

    #[test]
    fn statements_are_read_three_texts_at_a_time() {
        let source = "X: &[(&str, &str, &str)] = &[\n    (\"a\", \"X|Y\", \"One \\\n  two.\"),\n\
            (\n\"b\",\n\"\",\n\"Three.\",\n),\n];";
        assert_eq!(statements(source), [["a", "X\\|Y", "One two."], ["b", "", "Three."]]);
    }

    #[test]
    fn names_and_types_say_units() {
        let units = [("cpu_ns", "u64"), ("min_free", "Option<Size>"), ("pages", "u32")];
        assert_eq!(units.map(|(name, kind)| unit(name, kind)), ["ns", "bytes", "pages"]);
        assert_eq!((unit("cpus", "u32"), unit("pages", "String")), ("", ""));
    }

    #[test]
    fn a_page_that_the_sources_do_not_say_is_stale() {
        let root = std::env::temp_dir().join(format!("mglru-keys-{}", std::process::id()));
        assert!(stale(&root).is_some_and(|problem| problem.contains("read.rs")));
    }
}
