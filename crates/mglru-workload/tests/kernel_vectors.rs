//! The first draws of jobs that were run on a real kernel, bit for bit.

use std::path::{Path, PathBuf};

use mglru_workload::job::{Job, JobWorkload, Place, Step};
use mglru_workload::{Op, Workload};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// `(step, region, page, write)` of every access.
fn accesses(job: &Job) -> Vec<(u32, usize, u32, bool)> {
    let mut workload = JobWorkload::new(job.clone());
    let places = workload.places().to_vec();
    let region = |place| places.iter().position(|&known| known == place).unwrap();
    let page = |off: u64| (off / 4096) as u32;
    let (mut step, mut all) = (0, Vec::new());
    loop {
        match workload.next(0) {
            Op::Mark { phase } => step = phase,
            Op::Touch { region: id, page, write } => {
                all.push((step, region(Place::Region(id)), page, write));
            }
            Op::Read { file, off, .. } => {
                all.push((step, region(Place::File(file)), page(off), false));
            }
            Op::Write { file, off, .. } => {
                all.push((step, region(Place::File(file)), page(off), true));
            }
            Op::Done => return all,
            _ => {}
        }
    }
}

/// A line of a vector: step, stream, region, page, write.
fn parse_vector(job: &Job, line: &str) -> (u32, usize, u32, bool) {
    let field: Vec<u32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    let [step, stream, region, page, write] = field[..] else { panic!("{line}") };
    let Step::Phase { mix, .. } = &job.steps[step as usize] else { panic!("{line}") };
    assert!(mix.iter().any(|&(id, _)| id == stream as usize), "{line}");
    assert_eq!(job.streams[stream as usize].region, region as usize, "{line}");
    (step, region as usize, page, write == 1)
}

#[test]
fn every_vector_is_reproduced() {
    let mut files = 0;
    for entry in std::fs::read_dir(vectors()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "job") {
            continue;
        }
        let job = Job::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let text = std::fs::read_to_string(path.with_extension("vec")).unwrap();
        let expected: Vec<_> = text.lines().map(|line| parse_vector(&job, line)).collect();
        assert_eq!(expected.len(), 1000, "{}", path.display());
        assert_eq!(accesses(&job), expected, "{}", path.display());
        files += 1;
    }
    assert_eq!(files, 8);
}

#[test]
fn every_measured_job_parses() {
    let truth = "../../../shared/kernel-truth/results.jsonl";
    let Ok(text) = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(truth))
    else {
        println!("skipped: needs ../shared");
        return;
    };
    let mut jobs = 0;
    for line in text.lines() {
        let run: serde_json::Value = serde_json::from_str(line).unwrap();
        let spec = run["spec"].as_str().unwrap();
        if spec.trim().is_empty() {
            continue; // Measured with a program of its own.
        }
        let job = Job::parse(spec).unwrap_or_else(|error| panic!("{}: {error}", run["id"]));
        let steps = run["steps"].as_array().unwrap();
        assert_eq!(job.steps.len(), steps.len(), "{}", run["id"]);
        assert_eq!(job.seed, run["seed"].as_u64().unwrap(), "{}", run["id"]);
        jobs += 1;
    }
    assert_eq!(jobs, 260);
}
