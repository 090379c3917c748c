//! `mglru validate --measure`: the jobs of a truth file run anew on a booted kernel, and the lines
//! of a new truth file.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use crate::Answer;
use mglru_error::Error;
use mglru_fidelity::program::Program;
use mglru_fidelity::texts::{self, Text};
use mglru_fidelity::truth::Run;
use mglru_lab::backend::kernel::version;
use mglru_lab::backend::kernel::{Measuring, TruthAsked};
use mglru_lab::backend::{self, Job, Sections};
use mglru_lab::variant::Variant;

/// Memory of the measuring guest where a line does not say, MiB.
const MEMORY_MIB: u64 = 2048;

/// Truth file that is written unless another is named.
const MEASURED: &str = "measured.jsonl";

/// Arguments of a measurement.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Measure {
    /// Write this truth file; lines that it holds already are not measured again [default:
    /// measured.jsonl]. For a comparison, keep records in this folder [default:
    /// mglru-runs/control-<hash>]
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Take only runs whose id contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) only: String,
    /// Measure this kernel [default: Debian's, from `mglru doctor --install`]
    #[arg(long, value_name = "IMAGE")]
    pub(crate) kernel: Option<PathBuf>,
    /// Take its modules from this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) modules: Option<PathBuf>,
}

/// A line to be measured.
struct Line {
    fields: Map<String, Json>,
    seed: u64,
    measuring: Kind,
}

/// A job, or something else that is known as a workload of ours.
pub(super) enum Kind {
    Job(Box<Measuring>),
    Program(Program, Arc<dyn Job>),
}

/// Reads the truth whose jobs are measured anew: the first file, or what the program holds of the
/// first of `versions`, or of the first version that it holds.
///
/// # Errors
/// Names the file that cannot be read, or the version that the program does not hold.
pub(crate) fn truth(files: &[PathBuf], versions: &[String]) -> Result<Text, Error> {
    match (files.first(), versions.first()) {
        (Some(_), Some(version)) => {
            let both = format!("--version {version}: --measure takes it or --truth, not both");
            return Err(Error::Request(both));
        }
        (Some(file), None) => return texts::file(file),
        (None, _) => {}
    }
    let wanted = versions.first().map_or(texts::SHIPPED[0].0, String::as_str);
    let found = texts::SHIPPED.iter().find(|(known, _)| version::is_of(known, wanted));
    let (known, bytes) = found.ok_or_else(|| {
        let known = version::listed(texts::SHIPPED.iter().map(|(version, _)| *version));
        Error::Request(format!("--version {wanted}: no run was measured on it; known: {known}"))
    })?;
    texts::held(known, bytes)
}

/// Measures every job of `truth` that can be, `jobs` at a time, and says what came of it.
pub(crate) fn run(truth: &Text, args: &Measure, jobs: Option<u16>) -> Answer {
    let out = args.out.as_deref().unwrap_or(Path::new(MEASURED));
    let have = ids_in(out)?;
    let (mut lines, mut skipped) = (Vec::new(), 0);
    for (number, line) in (1..).zip(truth.text.lines()) {
        let place = format!("{}:{number}", truth.name);
        let at = |problem: String| Error::Request(format!("{place}: {problem}"));
        let fields: Map<String, Json> =
            serde_json::from_str(line).map_err(|e| at(e.to_string()))?;
        let id = word(&fields, "id").ok_or_else(|| at("id: is missing".to_string()))?;
        if !id.contains(&args.only) || have.contains(id) {
            continue;
        }
        match kind(&fields, args).map_err(at)? {
            None => skipped += 1,
            Some(measuring) => {
                let seed = fields.get("seed").and_then(Json::as_u64).unwrap_or(1);
                lines.push(Line { fields, seed, measuring });
            }
        }
    }
    let jobs = jobs.map_or(1, usize::from);
    measure(&lines, out, jobs)?;
    let (done, kept, out) = (lines.len(), have.len(), out.display());
    let left_out = format!("{skipped} skipped: nothing that a guest can repeat");
    Ok((
        format!(
            "{done} jobs measured, {kept} kept, {left_out}
truth: {out}
"
        ),
        0,
    ))
}

fn word<'a>(fields: &'a Map<String, Json>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Json::as_str)
}

/// Chooses the run; none where a guest cannot repeat it.
pub(super) fn kind(fields: &Map<String, Json>, args: &Measure) -> Result<Option<Kind>, String> {
    if let Some(asked) = asked(fields, args) {
        let measuring = Measuring::new(&asked).map_err(|e| e.to_string())?;
        return Ok(Some(Kind::Job(Box::new(measuring))));
    }
    let run: Run =
        serde_json::from_value(Json::Object(fields.clone())).map_err(|e| e.to_string())?;
    let program = Program::of(&run).ok().filter(|program| !program.is_beyond_guests());
    let Some(program) = program else { return Ok(None) };
    let sections = Sections { kernel: kernel(args), ..program.sections(&run, None)? };
    let variant = Variant::named(if run.mglru == 0 { "classic" } else { "k6.12" });
    let job = backend::by_name("kernel").map_err(|e| e.to_string())?;
    let job = job.prepare(&sections, &variant).map_err(|e| e.to_string())?;
    Ok(Some(Kind::Program(program, job)))
}

/// `[kernel]` as the options say it.
fn kernel(args: &Measure) -> Table {
    let path = |path: &PathBuf| Value::String(path.display().to_string());
    let image = args.kernel.iter().map(|image| ("image".to_string(), path(image)));
    let modules = args.modules.iter().map(|dir| ("modules".to_string(), path(dir)));
    image.chain(modules).collect()
}

/// Reads the request of a line; none where it is no job.
fn asked(fields: &Map<String, Json>, args: &Measure) -> Option<TruthAsked> {
    let job = word(fields, "spec").filter(|spec| !spec.is_empty())?;
    let number = |key: &str| fields.get(key).and_then(Json::as_u64);
    let (readahead_kb, before) = readahead(word(fields, "pre").unwrap_or_default());
    Some(TruthAsked {
        job: job.to_string(),
        mglru: number("mglru") != Some(0),
        memory_mib: number("mem_mb").unwrap_or(MEMORY_MIB),
        zram_mib: number("zram_mb").unwrap_or(0),
        disk: word(fields, "disk").unwrap_or("blk").to_string(),
        readahead_kb,
        before,
        kernel: kernel(args).into_iter().chain(filesystem(fields)).collect(),
    })
}

/// Takes the longest readahead out of settings: the guest's disk has another name than theirs.
fn readahead(settings: &str) -> (u32, String) {
    let kb = |line: &str| {
        let (kb, file) = line.strip_prefix("echo ")?.split_once(" > /sys/block/")?;
        file.ends_with("/queue/read_ahead_kb").then(|| kb.trim().parse().ok())?
    };
    let (set, others): (Vec<&str>, Vec<_>) = settings.lines().partition(|line| kb(line).is_some());
    (set.last().and_then(|line| kb(line)).unwrap_or(0), others.join("\n"))
}

/// The file system of a line; single pages are what ext4 has where nothing is read ahead.
fn filesystem(fields: &Map<String, Json>) -> Option<(String, Value)> {
    let name = word(fields, "filesystem").filter(|&name| name != "order0")?;
    Some(("filesystem".to_string(), Value::String(name.to_string())))
}

/// Ids of the lines a file holds; a torn last line is cut off.
fn ids_in(path: &Path) -> Result<BTreeSet<String>, Error> {
    let text = match fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        read => read.map_err(|e| Error::io(path, e))?,
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        let file = OpenOptions::new().write(true).open(path);
        file.and_then(|file| file.set_len(whole as u64)).map_err(|e| Error::io(path, e))?;
    }
    let id = |(at, line): (usize, &str)| {
        let fields: Result<Map<String, Json>, _> = serde_json::from_str(line);
        let id = fields.ok().and_then(|fields| word(&fields, "id").map(str::to_string));
        let problem = format!("{}:{}: no line of a truth file", path.display(), at + 1);
        id.ok_or(Error::Request(problem))
    };
    text[..whole].lines().enumerate().map(id).collect()
}

/// Lines are appended as they are done, so that a stopped measurement goes on where it was.
fn measure(lines: &[Line], out: &Path, jobs: usize) -> Result<(), Error> {
    let file = OpenOptions::new().create(true).append(true).open(out);
    let file = Mutex::new(file.map_err(|e| Error::io(out, e))?);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, lines.len().max(1)) {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = line.measure(out).and_then(|text| append(&file, out, &text));
                    if let Err(e) = result {
                        next.store(lines.len(), Ordering::Relaxed);
                        failed.lock().expect("no holder panics").get_or_insert(e);
                        return;
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    let id = word(&line.fields, "id").unwrap_or_default();
                    let _ = writeln!(std::io::stderr(), "mglru: {done}/{} {id}", lines.len());
                }
            });
        }
    });
    failed.into_inner().expect("no holder panics").map_or(Ok(()), Err)
}

fn append(file: &Mutex<fs::File>, out: &Path, text: &str) -> Result<(), Error> {
    let mut file = file.lock().expect("no holder panics");
    file.write_all(text.as_bytes()).map_err(|e| Error::io(out, e))
}

impl Line {
    /// The line as it came, with what was measured in place of what it held. Bounds of flat caches
    /// belong to the old capacity and are left out.
    fn measure(&self, out: &Path) -> Result<String, Error> {
        let id = word(&self.fields, "id").unwrap_or_default();
        let files = out.with_extension("console").join(id);
        let measured = self.measuring.run(self.seed, &files);
        let measured = measured.map_err(|e| Error::Request(format!("{id}: {e}")))?;
        let mut fields = self.fields.clone();
        const OLD: [&str; 11] = [
            "steps", "ref", "ref_cap", "status", "kernel", "fair", "run", "mixoom", "series",
            "warm_end", "repeat",
        ];
        OLD.iter().for_each(|key| {
            fields.remove(*key);
        });
        fields.extend(measured);
        Ok(format!("{}\n", Json::Object(fields)))
    }
}

impl Kind {
    /// The fields that are measured. Files that are kept begin with `files`.
    pub(super) fn run(&self, seed: u64, files: &Path) -> Result<Map<String, Json>, String> {
        match self {
            Self::Job(measuring) => {
                let console = files.with_file_name(format!(
                    "{}.log",
                    files.file_name().unwrap_or_default().to_string_lossy()
                ));
                measuring.run(seed, &console)
            }
            Self::Program(program, job) => {
                let outcome = job.run_keeping(seed, &|_| {}, files)?;
                Ok(program.line(&outcome))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Map<String, Json> {
        serde_json::from_str(text).unwrap()
    }

    const NOWHERE: &str = "measured.jsonl";

    fn args(out: &str) -> Measure {
        let only = String::new();
        Measure { out: Some(out.into()), only, kernel: Some("k".into()), modules: None }
    }

    #[test]
    fn a_line_says_what_is_measured_and_programs_are_left_out() {
        let line = fields(
            "{\"spec\":\"seed 1\",\"mglru\":0,\"mem_mb\":3072,\"zram_mb\":64,\"disk\":\"pmem\",\
             \"pre\":\"echo 1 > x\"}",
        );
        let asked = asked(&line, &args(NOWHERE)).unwrap();
        assert!(!asked.mglru && asked.memory_mib == 3072 && asked.zram_mib == 64);
        assert_eq!((asked.disk.as_str(), asked.before.as_str()), ("pmem", "echo 1 > x"));
        assert_eq!(asked.kernel["image"].as_str(), Some("k"));
        assert_eq!((asked.readahead_kb, asked.kernel.get("filesystem")), (0, None));
        assert!(super::asked(&fields("{\"spec\":\"\"}"), &args(NOWHERE)).is_none());
    }

    #[test]
    fn readahead_and_file_system_are_the_guests_own() {
        let line = fields(
            "{\"spec\":\"seed 1\",\"filesystem\":\"xfs\",\"pre\":\"echo 1 > x\\necho 128 > \
             /sys/block/vda/queue/read_ahead_kb\"}",
        );
        let asked = asked(&line, &args(NOWHERE)).unwrap();
        assert_eq!((asked.readahead_kb, asked.before.as_str()), (128, "echo 1 > x"));
        assert_eq!(asked.kernel["filesystem"].as_str(), Some("xfs"));
    }

    #[test]
    fn jobs_come_from_a_file_or_from_what_the_program_holds() {
        let held = |versions: &[&str]| {
            truth(&[], &versions.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(held(&[]).unwrap().name, "truth 6.12.117");
        let text = held(&["7.2"]).unwrap();
        assert_eq!((text.name.as_str(), text.text.lines().count()), ("truth 7.2.12", 175));
        assert!(text.text.lines().all(|line| line.contains("7.2.12")), "runs of another kernel");
        let message = held(&["7.9"]).unwrap_err().to_string();
        let known = "known: 6.12.117, 7.1.13, 7.2.12, 7.3.4";
        assert_eq!(message, format!("--version 7.9: no run was measured on it; {known}"));
        let message = truth(&["a".into()], &["7.1".into()]).unwrap_err().to_string();
        assert_eq!(message, "--version 7.1: --measure takes it or --truth, not both");
        let message = truth(&["none.jsonl".into()], &[]).unwrap_err().to_string();
        assert!(message.starts_with("none.jsonl: No such file"), "{message}");
    }

    #[test]
    fn a_torn_line_is_measured_again_and_others_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        assert!(ids_in(&path).unwrap().is_empty());
        fs::write(&path, "{\"id\":\"a\"}\n{\"id\":\"b").unwrap();
        assert_eq!(ids_in(&path).unwrap(), BTreeSet::from(["a".to_string()]));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"id\":\"a\"}\n");
        fs::write(&path, "{\"id\":\"a\"}\nnonsense\n").unwrap();
        let error = ids_in(&path).unwrap_err().to_string();
        assert!(error.ends_with("t.jsonl:2: no line of a truth file"), "{error}");
    }
}
