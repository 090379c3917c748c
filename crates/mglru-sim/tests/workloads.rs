//! What every workload must pass before its figures count (experiments §0.10): the same run twice
//! is the same to the last counter; with room for everything no rule reclaims, nothing comes back
//! and all rules take equally long over the same string.

use mglru::Config;
use mglru_sim::spec::Size;
use mglru_sim::swap::SwapSpec;
use mglru_sim::{MachineSpec, Outcome, run};
use mglru_workload::WorkloadSpec;

/// Small runs of every workload that models an application.
const WORKLOADS: [&str; 8] = [
    "kind = \"chrome-node\"\ngroups = 2\nbuffers = 3\nbuffer_pages = 300\nbrowser_pages = 100\n\
     array_pages = 20\nrequests = 60",
    "kind = \"sysbench\"\ntables = 3\nrows = 20000\nthreads = 4\ntransactions = 400\n\
     warm_transactions = 40\nthread_pages = 8\nserver_pages = 20",
    "kind = \"kernel-build\"\njobs = 10\nparallel = 3\nheap_pages = 400",
    "kind = \"memcached\"\nkeys = 6400\npasses = 3\nmemory_mib = 6\nchains = 4096",
    "kind = \"postmark\"\nfiles = 60\ntransactions = 300\nmax_bytes = 100000",
    "kind = \"fsmark\"\nthreads = 3\niterations = 2\nfiles = 9\nfile_bytes = 300000",
    "kind = \"dd\"\nbytes = 5000000",
    "kind = \"android\"\napps = 4\nrounds = 3\nkeep = 2\nfile_pages = 300\nmemory_pages = 500\n\
     library_pages = 400\nnavigation_pages = 100\nvoice_pages = 50\ntile_pages = 2000\n\
     clip_pages = 100\nclip_file_pages = 20\ncamera_threads = 2\ncamera_buffer_pages = 100\n\
     camera_pages = 60\nswipes = 3",
];

fn outcome(workload: &str, variant: &str, memory: u64) -> Outcome {
    let spec: WorkloadSpec = toml::from_str(workload).unwrap();
    let machine = MachineSpec {
        memory: Size(memory),
        nodes: 2,
        swap: SwapSpec::zram(1 << 30),
        ..MachineSpec::default()
    };
    let config = Config::variant(variant).unwrap();
    run(&machine, config, spec.build(1, 1.0).unwrap(), 1, None).unwrap()
}

#[test]
fn with_room_for_all_rules_do_not_matter() {
    for workload in WORKLOADS {
        let before = outcome(workload, "before", 4 << 30);
        for name in ["pgscan_direct", "pgscan_kswapd", "pswpout", "workingset_refault_file"] {
            assert_eq!(before.counter(name), Some(0), "{workload}: {name}");
        }
        for variant in ["after", "classic", "random"] {
            let other = outcome(workload, variant, 4 << 30);
            assert_eq!(before.virtual_ns, other.virtual_ns, "{workload}: {variant}");
            assert_eq!(before.string_hash, other.string_hash, "{workload}: {variant}");
        }
    }
}

#[test]
fn under_pressure_runs_repeat_and_strings_stay() {
    // A sixth to a half of what each wants.
    let sizes = [6, 10, 48, 6, 4, 4, 6, 12].map(|mib| mib << 20);
    for (workload, memory) in WORKLOADS.into_iter().zip(sizes) {
        let before = outcome(workload, "before", memory);
        assert_eq!(before, outcome(workload, "before", memory), "{workload}");
        let scanned = ["pgscan_direct", "pgscan_kswapd"].map(|name| before.counter(name).unwrap());
        assert!(scanned.iter().sum::<u64>() > 0, "{workload}: no pressure");
        assert_eq!(before.counter("oom_kill"), Some(0), "{workload}");
        let after = outcome(workload, "after", memory);
        assert_eq!(before.string_hash, after.string_hash, "{workload}");
    }
}
