//! The first draws of jobs that were run on a real kernel, bit for bit.

use std::path::{Path, PathBuf};

use mglru_workload::job::{Job, JobWorkload, Place, Step};
use mglru_workload::{Op, Workload};

/// Measured truth of the source tree.
fn truth() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../truth")
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
    for entry in std::fs::read_dir(truth().join("vectors")).unwrap() {
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

/// Checks the jobs of one version and counts them.
fn measured_jobs(version: &str) -> usize {
    let packed = std::fs::read(truth().join(format!("{version}.jsonl.zst"))).unwrap();
    let text = String::from_utf8(zstd::decode_all(&packed[..]).unwrap()).unwrap();
    let runs = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    // A run without a job was measured with a program of its own.
    let runs = runs.filter(|run| !run["spec"].as_str().unwrap().trim().is_empty());
    let check = |run: serde_json::Value| {
        let job = Job::parse(run["spec"].as_str().unwrap());
        let job = job.unwrap_or_else(|error| panic!("{version} {}: {error}", run["id"]));
        assert_eq!(job.steps.len(), run["steps"].as_array().unwrap().len(), "{}", run["id"]);
        assert_eq!(job.seed, run["seed"].as_u64().unwrap(), "{}", run["id"]);
    };
    runs.map(check).count()
}

#[test]
fn every_measured_job_parses() {
    let versions = ["6.12.117", "7.1.13", "7.2.12", "7.3.4"];
    assert_eq!(versions.map(measured_jobs), [298, 111, 112, 119]);
}
