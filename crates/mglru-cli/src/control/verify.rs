//! `mglru validate --verify`: kept lines measured again, and whether each came out the same to the
//! byte.

use std::io::Write;

use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use super::measure::{self, Measure};
use crate::Answer;
use mglru_error::Error;
use mglru_fidelity::texts::{self, Text};
use mglru_lab::backend::kernel::version;

/// Lines of a truth file that hold what repeats them.
const HELD: &[u8] = include_bytes!("../../../../truth/repeat/runs.jsonl.zst");
/// Holds the part of a line that its repetition must give again.
const MEASURED: [&str; 7] = ["status", "kernel", "steps", "ref_cap", "fair", "run", "mixoom"];
/// Pairs the run that gives the same line once more with its name for people.
const CAUSES: [(&str, &str); 4] = [
    ("kernel_sha256", "the kernel's image"),
    ("guest_sha256", "the guest's files (another build of the guest program, other modules)"),
    ("qemu", "QEMU's version"),
    ("flags", "QEMU's options"),
];

type Line = Map<String, Json>;

/// Boots `n` of the kept lines again, chosen by `seed`, and compares. Status 1 where a line that
/// had the same kernel, guest and QEMU came out differently.
pub(crate) fn run(
    files: &[std::path::PathBuf],
    versions: &[String],
    args: &Measure,
    (n, seed): (u16, u64),
) -> Answer {
    let texts = match files.is_empty() {
        true => vec![texts::held("of repeatable runs", HELD)?],
        false => texts::of(files)?,
    };
    let mut lines = kept(&texts, versions, &args.only)?;
    if lines.is_empty() {
        let problem =
            "--verify: no line with `repeat` is there; `mglru validate --measure` writes them";
        return Err(Error::Request(problem.to_string()));
    }
    lines.sort_by_key(|line| chosen(seed, line));
    lines.truncate(usize::from(n));
    let (mut out, mut broken) = (String::new(), 0);
    for (at, line) in lines.iter().enumerate() {
        let name = name(line);
        let _ = writeln!(std::io::stderr(), "mglru: {}/{} {name}", at + 1, lines.len());
        let again = again(line, args).map_err(|e| Error::Request(format!("{name}: {e}")))?;
        let found = Found::new(line, &again);
        broken += u32::from(found.is_broken());
        out += &format!("{name}: {}\n", found.summary());
    }
    let same = lines.len() - broken as usize;
    out += &format!("{same} of {} lines as kept, or of another guest\n", lines.len());
    Ok((out, u8::from(broken > 0)))
}

/// Reads the lines that can be repeated.
fn kept(texts: &[Text], versions: &[String], only: &str) -> Result<Vec<Line>, Error> {
    let mut found = Vec::new();
    for text in texts {
        for (number, line) in (1..).zip(text.text.lines()) {
            let problem = |e| Error::Request(format!("{}:{number}: {e}", text.name));
            let line: Line = serde_json::from_str(line).map_err(problem)?;
            let release = version::of(word(&line, "kernel")).to_string();
            let is_asked = versions.is_empty()
                || versions.iter().any(|wanted| version::is_of(&release, wanted));
            let repeats = line.contains_key("repeat");
            if repeats && is_asked && word(&line, "id").contains(only) {
                found.push(line);
            }
        }
    }
    Ok(found)
}

fn word<'a>(line: &'a Line, key: &str) -> &'a str {
    line.get(key).and_then(Json::as_str).unwrap_or_default()
}

fn name(line: &Line) -> String {
    format!("{} {}", version::of(word(line, "kernel")), word(line, "id"))
}

/// Orders lines anew for each seed.
fn chosen(seed: u64, line: &Line) -> Vec<u8> {
    Sha256::digest(format!("{seed} {}", name(line))).to_vec()
}

/// Measures a line again, on the kernel that it names unless another is asked for.
fn again(line: &Line, args: &Measure) -> Result<Line, String> {
    let of_line = || version::of(word(line, "kernel")).into();
    let args =
        Measure { kernel: Some(args.kernel.clone().unwrap_or_else(of_line)), ..args.clone() };
    let seed = line.get("seed").and_then(Json::as_u64).unwrap_or(1);
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let kind = measure::kind(line, &args)?.ok_or("nothing that a guest can repeat")?;
    kind.run(seed, &folder.path().join("run"))
}

/// Holds the result of a repetition.
struct Found {
    fields: usize,
    differing: Vec<String>,
    causes: Vec<&'static str>,
}

impl Found {
    fn new(kept: &Line, again: &Line) -> Self {
        let (mut fields, mut differing) = (0, Vec::new());
        let has = |key: &&str| [kept, again].iter().any(|line| line.contains_key(*key));
        for key in MEASURED.into_iter().filter(has) {
            let null = Json::Null;
            let sides = [kept, again].map(|line| line.get(key).unwrap_or(&null));
            compare(key, sides, &mut fields, &mut differing);
        }
        let proof = |line: &Line, key: &str| line.get("repeat").and_then(|r| r.get(key)).cloned();
        let differs = |(key, _): &&(&str, &str)| proof(kept, key) != proof(again, key);
        let causes = CAUSES.iter().filter(differs).map(|(_, cause)| *cause).collect();
        Self { fields, differing, causes }
    }

    fn is_broken(&self) -> bool {
        !self.differing.is_empty() && self.causes.is_empty()
    }

    fn summary(&self) -> String {
        let n = self.differing.len();
        let shown = self.differing.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let result = match n {
            0 => format!("same, {} fields", self.fields),
            _ => format!("{n} of {} fields differ: {shown}", self.fields),
        };
        match self.causes.is_empty() {
            true => result,
            false => format!("{result}; not the same: {}", self.causes.join(", ")),
        }
    }
}

/// Compares field by field; names what differs by its path.
fn compare(path: &str, [a, b]: [&Json; 2], fields: &mut usize, differing: &mut Vec<String>) {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => {
            let null = Json::Null;
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let sides = [a, b].map(|side| side.get(key).unwrap_or(&null));
                compare(&format!("{path}.{key}"), sides, fields, differing);
            }
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{at}]"), [a, b], fields, differing);
            }
        }
        _ => {
            *fields += 1;
            if a != b {
                differing.push(path.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        serde_json::from_str(text).unwrap()
    }

    const KEPT: &str = r#"{"id":"a.on.s1.r0","kernel":"7.1.13+deb13","steps":[{"d":{"x":1}}],
        "repeat":{"guest_sha256":"g","kernel_sha256":"k","qemu":"q","flags":"f"}}"#;

    #[test]
    fn a_field_that_differs_breaks_a_line_of_the_same_guest_only() {
        let kept = line(KEPT);
        assert_eq!(Found::new(&kept, &kept).summary(), "same, 2 fields");
        let other = Found::new(&kept, &line(&KEPT.replace("\"x\":1", "\"x\":2")));
        assert!(other.is_broken());
        assert_eq!(other.summary(), "1 of 2 fields differ: steps[0].d.x");
        let program = line(&KEPT.replace("steps", "fair"));
        let other = line(&KEPT.replace("steps", "fair").replace("\"x\":1", "\"x\":2"));
        assert_eq!(Found::new(&program, &other).differing, ["fair[0].d.x"]);
        let guest = KEPT.replace("\"x\":1", "\"x\":2").replace("\"g\"", "\"h\"");
        let guest = Found::new(&kept, &line(&guest));
        assert!(!guest.is_broken());
        assert!(
            guest.summary().ends_with(
                "not the same: the guest's files (another build of the guest \
            program, other modules)"
            ),
            "{}",
            guest.summary()
        );
    }

    #[test]
    fn lines_are_chosen_by_seed_version_and_name() {
        let other = KEPT.replace("a.on", "b.on").replace("7.1.13", "7.2.12");
        let plain = KEPT.replace("repeat", "no");
        let join = |text: &str| text.replace('\n', "");
        let text = [join(KEPT), join(&other), join(&plain)].join("\n");
        let texts = [Text { name: "t".to_string(), text }];
        let of = |versions: &[&str], only: &str| {
            let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
            kept(&texts, &versions, only).unwrap().iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(of(&[], ""), ["7.1.13 a.on.s1.r0", "7.2.12 b.on.s1.r0"]);
        assert_eq!(of(&["7.2"], ""), ["7.2.12 b.on.s1.r0"]);
        assert_eq!(of(&[], "a."), ["7.1.13 a.on.s1.r0"]);
        let (a, b) = (line(KEPT), line(&other));
        let first = |seed| chosen(seed, &a) < chosen(seed, &b);
        assert!((0..16).any(first) && !(0..16).all(first));
    }

    #[test]
    fn what_the_program_holds_can_be_repeated() {
        let held = texts::held("of repeatable runs", HELD).unwrap();
        let lines = kept(&[held], &[], "").unwrap();
        assert!(lines.iter().all(|line| line["repeat"]["guest_sha256"].is_string()));
    }
}
