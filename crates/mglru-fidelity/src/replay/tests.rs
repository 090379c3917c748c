use super::*;
use crate::truth::Step;
use mglru_sim::spec::FileSystem;

const SPEC: &str = "seed 1\nset memory.max 4194304\nregion kind=mmap path=/f pages=2048\n\
                    stream region=0 gen=seq n=2048 base=0 start=0 wr=0\n\
                    phase main ops=4096 mix=0:1\n";

fn run(mglru: u8, rep: u32) -> Run {
    let step = Step { ops: 4096, sec: 0.4096, ..Step::default() };
    Run {
        id: format!("x.loop.{mglru}.s1.r{rep}"),
        exp: "x".into(),
        variant: "loop".into(),
        mglru,
        seed: 1,
        kernel: "6.12.117+deb12".into(),
        mem_mb: 64,
        zram_mb: 0,
        spec: SPEC.into(),
        pre: String::new(),
        filesystem: FileSystem::Order0,
        cmd: String::new(),
        steps: vec![step],
        fair: None,
        run: None,
        mixoom: None,
    }
}

fn reason(run: Run) -> String {
    let prepared = prepare(measured(vec![run]));
    assert!(prepared.jobs.is_empty());
    prepared.left_out[0].1.clone()
}

#[test]
fn repetitions_are_one_run_of_the_model() {
    let prepared = prepare(measured(vec![run(1, 0), run(0, 0), run(1, 1)]));
    let names: Vec<String> = prepared.jobs.iter().map(Measured::title).collect();
    assert_eq!(names, ["6.12.117 x.loop on seed 1", "6.12.117 x.loop off seed 1"]);
    assert_eq!(prepared.jobs[0].runs.len(), 2);
    assert_eq!(prepared.experiment.runs[1].variant.name, "k6.12+lru=classic");
}

#[test]
fn each_version_is_replayed_under_its_own_rules() {
    let of = |kernel: &str, mglru| Run { kernel: kernel.into(), ..run(mglru, 0) };
    let kernels = ["7.3.4", "7.2.12", "6.12.117", "7.1.13"];
    let runs = kernels.into_iter().flat_map(|k| [of(k, 1), of(k, 0)]).collect();
    let prepared = prepare(measured(runs));
    let runs = &prepared.experiment.runs;
    let names: Vec<&str> = runs.iter().map(|run| run.variant.name.as_str()).collect();
    let rules = ["k6.12", "k7.1", "k7.2", "k7.3"];
    let want = rules.map(|rules| [rules.to_string(), format!("{rules}+lru=classic")]);
    assert_eq!(names, want.concat());
    let keys: IndexSet<_> = runs.iter().map(|run| (&run.variant.name, &run.point)).collect();
    assert_eq!(keys.len(), 8, "records of two versions are distinguished");
    assert_eq!(reason(of("5.10.1", 1)), version::rules("5.10.1").unwrap_err());
}

#[test]
fn a_replay_makes_every_access_at_its_pace() {
    let prepared = prepare(measured(vec![run(1, 0)]));
    let outcome = prepared.experiment.runs[0].job.run(1, &|_| {}).unwrap();
    assert_eq!(outcome.metrics.ops, 4096);
    assert!((0.4..0.5).contains(&outcome.metrics.virtual_s), "{}", outcome.metrics.virtual_s);
    assert!(outcome.counters["pgmajfault"] >= 2048);
}

#[test]
fn settings_reach_machine_and_rules() {
    let pre = "echo 1 > /sys/kernel/mm/lru_gen/enabled\necho 100 > /proc/sys/vm/swappiness\n\
               echo 128 > /sys/block/vda/queue/read_ahead_kb\n\
               echo 65536 > /sys/kernel/debug/fault_around_bytes\n";
    let of = |mglru| {
        let run = Run { pre: pre.into(), filesystem: FileSystem::Xfs, ..run(mglru, 0) };
        let measured = &measured(vec![run])[0];
        replay(measured, &measured.policy().unwrap()).unwrap()
    };
    let on = of(1);
    let machine = &on.machine;
    assert_eq!((machine.swappiness, machine.readahead_kb, machine.fault_around_kb), (100, 128, 64));
    assert_eq!(machine.filesystem, FileSystem::Xfs);
    assert_eq!(on.config.young_source, mglru::config::YoungSource::Rmap);
    assert!(!of(0).config.is_mglru(), "the classic LRU stays classic");
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let of = |change: fn(&mut Run)| {
        let mut run = run(1, 0);
        change(&mut run);
        reason(run)
    };
    assert_eq!(of(|r| r.spec.clear()), "is no job: what it did is not known page by page");
    assert_eq!(of(|r| r.pre = "mount /x".into()), "`mount /x` is no setting of the model");
    assert_eq!(of(|r| r.steps.clear()), "its job has 1 steps, a record has another number");
    assert!(of(|r| r.spec = "sed 1".into()).starts_with("its job: "));
}
