//! `mglru validate --step SCRIPT`: the same script on a booted kernel and in the model, with the
//! generations of both after every step.
//!
//! A script is a job: regions, streams, phases, and between them `age CAN_SWAP FORCE` and
//! `evict K SWAPPINESS [NR]`, which become the debug commands of lru_gen.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use mglru::Config;
use mglru_guest::kernel_text::{Generation, generations};
use mglru_sim::MachineSpec;
use mglru_sim::spec::{GroupSpec, Size};
use mglru_sim::swap::SwapSpec;
use mglru_workload::job::{GROUP_NAME, Job, JobWorkload};
use mglru_workload::op::Knob;
use serde_json::Value as Json;
use toml::{Table, Value};

use super::measure::Measure;
use crate::Answer;
use mglru_error::Error;
use mglru_lab::backend::kernel::{Measuring, TruthAsked};

/// The machine of both sides, MiB and processors.
const MEMORY_MIB: u64 = 2048;
const ZRAM_MIB: u64 = 1024;
const CPUS: u32 = 2;
/// Rules of the kernel that is booted unless another one is named.
const RULES: &str = "k6.12";

/// Generations after a step.
#[derive(Clone, Debug, PartialEq)]
struct Stepped {
    name: String,
    /// The kernel's answer to a command; 0 or a negative error.
    rc: i64,
    kernel: Vec<Generation>,
    model: Vec<Generation>,
}

pub(super) fn run(script: &Path, args: &Measure) -> Answer {
    let text = fs::read_to_string(script).map_err(|e| Error::io(script, e))?;
    let at = |problem: String| Error::Request(format!("{}: {problem}", script.display()));
    let job = Job::parse(&text).map_err(|e| at(e.to_string()))?;
    let model = model(&job).map_err(at)?;
    let kernel = kernel(&text, &job, args).map_err(at)?;
    let steps: Vec<Stepped> = kernel
        .into_iter()
        .zip(model)
        .map(|((name, rc, kernel), model)| Stepped { name, rc, kernel, model })
        .collect();
    Ok((table(&steps), u8::from(steps.iter().any(|step| !same_windows(step)))))
}

/// The model's generations after each step.
fn model(job: &Job) -> Result<Vec<Vec<Generation>>, String> {
    let mut spec = MachineSpec {
        memory: Size(MEMORY_MIB << 20),
        cpus: CPUS,
        readahead_kb: 0,
        fault_around_kb: 4,
        swap: SwapSpec::zram(ZRAM_MIB << 20),
        ..MachineSpec::default()
    };
    spec.groups.insert(GROUP_NAME.to_string(), limits(job));
    let config = Config::variant(RULES).map_err(|e| e.to_string())?;
    let workload = Box::new(JobWorkload::new(job.clone()));
    let found = mglru_sim::run(&spec, config, workload, job.seed, None);
    let found = found.map_err(|e| e.to_string())?;
    let ends = found.phases.iter().skip(1).map(|phase| &phase.snapshot.groups);
    let of = |groups: &Vec<mglru_sim::outcome::GroupOutcome>| {
        let group = groups.iter().find(|group| group.name == GROUP_NAME);
        group.map(|group| first_node(&group.lru_gen)).unwrap_or_default()
    };
    Ok(ends.chain([&found.groups]).map(of).collect())
}

fn limits(job: &Job) -> GroupSpec {
    let mut limits = GroupSpec::default();
    for (_, knob, value) in &job.settings {
        match knob {
            Knob::MemoryMin => limits.min = Size(*value),
            Knob::MemoryLow => limits.low = Size(*value),
            Knob::MemoryHigh => limits.high = Size(*value),
            Knob::MemoryMax => limits.max = Size(*value),
            Knob::MemorySwapMax => limits.swap_max = Size(*value),
            Knob::Swappiness => limits.swappiness = Some(*value as u8),
        }
    }
    limits
}

/// Name, answer and generations of each step on the booted kernel.
fn kernel(
    text: &str,
    job: &Job,
    args: &Measure,
) -> Result<Vec<(String, i64, Vec<Generation>)>, String> {
    let value = |path: &Path| Value::String(path.display().to_string());
    let image = args.kernel.iter().map(|path| ("image".to_string(), value(path)));
    let modules = args.modules.iter().map(|path| ("modules".to_string(), value(path)));
    let asked = TruthAsked {
        job: text.to_string(),
        mglru: true,
        memory_mib: MEMORY_MIB,
        zram_mib: ZRAM_MIB,
        disk: "blk".to_string(),
        readahead_kb: 0,
        before: String::new(),
        kernel: image.chain(modules).collect::<Table>(),
    };
    let measuring = Measuring::new(&asked).map_err(|e| e.to_string())?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let measured = measuring.run(job.seed, &folder.path().join("console.log"))?;
    let steps = measured.get("steps").and_then(Json::as_array).cloned().unwrap_or_default();
    Ok(steps.iter().map(step).collect())
}

fn step(step: &Json) -> (String, i64, Vec<Generation>) {
    let text = |key: &str| step[key].as_str().unwrap_or_default();
    let title = if text("cmd").is_empty() { text("name") } else { text("cmd") };
    let part = format!("memcg 1 {GROUP_NAME}\n{}", text("lru_gen"));
    (title.to_string(), step["rc"].as_i64().unwrap_or(0), first_node(&part))
}

fn first_node(text: &str) -> Vec<Generation> {
    let memcg = generations(text).into_iter().next();
    memcg.and_then(|memcg| memcg.nodes.into_iter().next()).unwrap_or_default().generations
}

/// Both sides have the same sequence numbers.
fn same_windows(step: &Stepped) -> bool {
    let seqs = |side: &[Generation]| side.iter().map(|line| line.seq).collect::<Vec<_>>();
    seqs(&step.kernel) == seqs(&step.model)
}

fn table(steps: &[Stepped]) -> String {
    let mut text =
        "      seq    kernel: anon    file    model: anon    file     difference\n".to_string();
    for step in steps {
        let answer = if step.rc == 0 { String::new() } else { format!(" (refused: {})", step.rc) };
        let same = if same_windows(step) { "" } else { " (other generations)" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}{answer}{same}", step.name);
        for seq in all_seqs(step) {
            let of = |side: &[Generation]| side.iter().find(|line| line.seq == seq).copied();
            let (kernel, model) = (of(&step.kernel), of(&step.model));
            let _ = writeln!(
                text,
                "{seq:9} {} {} {}",
                pair(kernel, 15),
                pair(model, 14),
                difference(kernel, model)
            );
        }
    }
    let same = steps.iter().filter(|step| same_windows(step)).count();
    text + &format!("{same} of {} steps leave the same generations\n", steps.len())
}

fn all_seqs(step: &Stepped) -> Vec<u64> {
    let mut seqs: Vec<u64> = step.kernel.iter().chain(&step.model).map(|line| line.seq).collect();
    seqs.sort_unstable();
    seqs.dedup();
    seqs
}

fn pair(line: Option<Generation>, width: usize) -> String {
    match line {
        Some(line) => format!("{:width$} {:7}", line.anon, line.file),
        None => format!("{:>width$} {:>7}", "-", "-"),
    }
}

fn difference(kernel: Option<Generation>, model: Option<Generation>) -> String {
    let (Some(kernel), Some(model)) = (kernel, model) else { return String::new() };
    let less = |a: u64, b: u64| b as i64 - a as i64;
    format!("{:+7} {:+7}", less(kernel.anon, model.anon), less(kernel.file, model.file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "seed 1\nset memory.max 1073741824\nregion kind=anon pages=64\n\
        stream region=0 gen=seq n=64 base=0 start=0 wr=1000\nphase fill ops=64 mix=0:1\nage 1 1\n\
        evict 0 60\n";

    #[test]
    fn the_model_reports_its_generations_after_every_step() {
        let model = model(&Job::parse(SCRIPT).unwrap()).unwrap();
        let anon = |step: usize| model[step].iter().map(|line| line.anon).sum::<u64>();
        assert_eq!((model.len(), anon(0), anon(1)), (3, 64, 64));
        let youngest = |step: usize| model[step].last().unwrap().seq;
        assert_eq!(youngest(1), youngest(0) + 1);
    }

    #[test]
    fn sides_are_compared_by_sequence_number() {
        let line = |seq, anon| Generation { seq, anon, file: 2, age_ms: 5 };
        let stepped = |kernel, model| Stepped { name: "age".to_string(), rc: -34, kernel, model };
        let same = stepped(vec![line(3, 7), line(4, 0)], vec![line(3, 9), line(4, 0)]);
        let other = stepped(vec![line(3, 7)], vec![line(4, 9)]);
        assert!(same_windows(&same) && !same_windows(&other));
        let text = table(&[same, other]);
        assert!(
            text.contains("age (refused: -34)\n") && text.contains("     +2      +0\n"),
            "{text}"
        );
        assert!(text.contains("(other generations)"), "{text}");
        assert!(text.ends_with("1 of 2 steps leave the same generations\n"), "{text}");
    }
}
