use super::*;

const FAIR: &str = "fair /dev/ttyS1 n=16 pages=4096 kind=shmem target=parent rate=3000 \
    warm_ms=15000 rounds=60 interval_ms=500 bytes=4194304 seed=1 wr=500";
const DD: &str = "runin /dev/ttyS1 250 150 memory.max=134217728 -- /bin/dd if=/dev/zero \
    of=/slow/testfile bs=1M count=192";
const MIXED: &str = "mixoom /dev/ttyS1 limit_mb=192 anon_mb=176 file_mb=32 readers=16 threads=8 \
    rounds=24 sleep_ms=120 wait_ms=200 maxs=100";

fn run(cmd: &str, more: &str) -> Run {
    let text = format!(
        "{{\"id\":\"x.v.on.s1.r0\",\"exp\":\"x\",\"variant\":\"v\",\"mglru\":1,\"seed\":1,\
         \"mem_mb\":3072,\"zram_mb\":64,\"cmd\":{cmd:?}{more}}}"
    );
    serde_json::from_str(&text).unwrap()
}

fn workload(run: &Run, pace: Option<Pace>) -> Table {
    Program::of(run).unwrap().sections(run, pace).unwrap().workload
}

#[test]
fn commands_become_workloads() {
    let measured =
        |sec: f64| format!(",\"fair\":{{\"sec\":{sec},\"accesses\":120000,\"memcgs\":[]}}");
    let runs = [run(FAIR, &measured(49.0)), run(FAIR, &measured(51.0))];
    let pace = Program::of(&runs[0]).unwrap().pace(&runs).unwrap();
    assert_eq!(pace, Pace { period_ms: 833, rate: Some(150.0) });
    let fair = workload(&runs[0], Some(pace));
    assert_eq!(fair["rate"].as_float(), Some(150.0), "16 groups, 50 s");
    assert_eq!((fair["groups"].as_integer(), fair["pages"].as_integer()), (Some(16), Some(4096)));
    assert_eq!((fair["engine"].as_str(), fair["target"].as_str()), (Some("shmem"), Some("parent")));
    assert_eq!(fair["interval_ms"].as_integer(), Some(833), "at the pace it had");
    let asked = workload(&run(FAIR, ""), None);
    assert_eq!(
        (asked["interval_ms"].as_integer(), asked["rate"].as_float()),
        (Some(500), Some(3000.0))
    );
    let mixed = workload(&run(MIXED, ""), None);
    assert_eq!(mixed["anon_pages"].as_integer(), Some(176 * 256));
    assert_eq!((mixed["readers"].as_integer(), mixed["threads"].as_integer()), (Some(16), Some(8)));
}

#[test]
fn the_writer_has_its_device_and_its_limit() {
    let pre = ",\"pre\":\"dmset slow 9 delay /dev/vdb 0 0 /dev/vdb 0 200\\nmount x\"";
    let delayed = run(DD, pre);
    let program = Program::of(&delayed).unwrap();
    let device = Device::Delay(200_000_000);
    assert_eq!(program, Program::Dd { count: 192, limit: 128 << 20, device });
    let sections = program.sections(&delayed, None).unwrap();
    assert_eq!(sections.groups["/fio"].max.0, 128 << 20);
    assert_eq!(sections.machine["device"]["write_ns"].as_integer(), Some(200_000_000));
    let slow = Run { variant: "bps8M_l64".into(), ..run(DD, "") };
    let program = Program::of(&slow).unwrap();
    assert!(program.is_beyond_guests() && format!("{program:?}").contains("Rate(8000000)"));
    let pre = ",\"pre\":\"echo 95 > /proc/sys/vm/dirty_ratio\\necho 90 > \
               /proc/sys/vm/dirty_background_ratio\\nmount x\"";
    let held = run(DD, pre);
    let sections = Program::of(&held).unwrap().sections(&held, None).unwrap();
    let dirty = &sections.machine["dirty"];
    let percent = |key: &str| dirty[key].as_integer();
    assert_eq!((percent("ratio"), percent("background_ratio")), (Some(95), Some(90)));
    let odd = Run { variant: "bpsxM_l64".into(), ..run(DD, "") };
    assert_eq!(Program::of(&odd).unwrap_err(), "variant bpsxM_l64: no rate");
}

#[test]
fn measured_and_modelled_figures_have_the_same_names() {
    let memcg = |steal| {
        format!("{{\"pgsteal\":{steal},\"pgscan\":40,\"refault_anon\":3,\"refault_file\":0}}")
    };
    let fair = format!(",\"fair\":{{\"sec\":50.0,\"memcgs\":[{},{}]}}", memcg(10), memcg(30));
    let whole = "{\"sec\":1.0,\"rounds_done\":4,\"d\":{\"pgscan\":7,\"workingset_refault_file\":8},\
                 \"events\":{\"max\":1}}";
    for (cmd, more) in
        [(FAIR, fair), (DD, format!(",\"run\":{whole}")), (MIXED, format!(",\"mixoom\":{whole}"))]
    {
        let run = run(cmd, &more);
        let program = Program::of(&run).unwrap();
        let (measured, none) = (program.measured(&run), IndexMap::new());
        let found = program.found(&none, &IndexMap::new(), 1);
        assert_eq!(measured.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "{cmd}");
        match program {
            Program::Fair(_) => {
                assert_eq!(measured["spread of pgsteal"], 0.5);
                assert_eq!((measured["scanned per page stolen"], measured["refaults"]), (2.0, 6.0));
            }
            Program::Dd { .. } => {
                assert_eq!((measured["oom_kill"], measured["pgscan"]), (0.0, 7.0))
            }
            Program::Mixed(_) => assert_eq!(measured["refaults a round"], 2.0),
        }
    }
}

#[test]
fn what_a_guest_did_reads_as_a_truth_files_line() {
    let fair = Program::of(&run(FAIR, "")).unwrap();
    let went = json!({ "pgsteal": 5, "pgscan": 9, "refault_anon": 1, "refault_file": 0 });
    let last = json!({ "pgsteal": 5, "pgscan": 9, "refault_anon": 2, "refault_file": 0 });
    let groups = json!({ "/fair": went, "/fair/10": last, "/fair/9": went });
    let phases = json!([{ "accesses": 7 }]);
    let custom = [("reclaimed", groups), ("repeat", json!({ "qemu": "7" })), ("phases", phases)];
    let custom = custom.map(|(key, value)| (key.to_string(), value));
    let outcome = Outcome { custom: custom.into_iter().collect(), ..Outcome::default() };
    let line = Json::Object(fair.line(&outcome));
    let leaves = json!([went, last]);
    assert_eq!(line["fair"]["memcgs"], leaves, "without their parent, as they were made");
    assert_eq!(line["repeat"]["qemu"], "7", "what repeats the line");
    let again = run(FAIR, &format!(",\"fair\":{}", line["fair"]));
    assert_eq!(again.fair.as_ref().and_then(|fair| fair.accesses), Some(7));
    assert_eq!(fair.measured(&again)["scanned per page stolen"], 1.8);
}

#[test]
fn what_is_not_known_says_so() {
    let of = |cmd: &str| Program::of(&run(cmd, "")).and_then(|p| p.sections(&run(cmd, ""), None));
    assert!(of("sleep 1").unwrap_err().starts_with("is no job"));
    assert_eq!(of("mixoom x").unwrap_err(), "cmd: limit_mb is missing");
    assert_eq!(of(&FAIR.replace("n=16", "n=x")).unwrap_err(), "cmd: n=x: no number");
    assert_eq!(of(&FAIR.replace("shmem", "odd")).unwrap_err(), "cmd: kind=odd: unknown");
}
