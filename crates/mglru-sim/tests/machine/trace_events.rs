//! Trace events: what they add up to is what the counters say, and listening changes nothing.

use std::sync::{Arc, Mutex};

use mglru_sim::tracing::{Event, Sink};
use mglru_sim::{Outcome, SimError, run, run_traced};
use mglru_workload::Op;

use crate::script::{PAGE, Script, config, pages, read, spec, touch, touch_all, write};

/// When, by whom, what.
#[derive(Clone, Debug, PartialEq)]
struct Emitted {
    at: u64,
    pid: u32,
    name: String,
    fields: String,
}

impl Emitted {
    fn value(&self, key: &str) -> u64 {
        let of = |field: &str| field.strip_prefix(key)?.strip_prefix('=')?.parse().ok();
        self.fields.split(' ').find_map(of).unwrap_or_else(|| panic!("{key}: {self:?}"))
    }
}

#[derive(Clone, Default)]
struct Listener {
    events: Arc<Mutex<Vec<Emitted>>>,
    /// So many are taken, then there is no room.
    room: Option<usize>,
}

impl Sink for Listener {
    fn event(&mut self, event: &Event<'_>) -> Result<(), String> {
        let Event { at, pid, name, fields, .. } = *event;
        let mut events = self.events.lock().unwrap();
        if self.room == Some(events.len()) {
            return Err("no room".to_string());
        }
        events.push(Emitted { at, pid, name: name.to_string(), fields: fields.to_string() });
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

fn traced(
    script: &Script,
    machine: &str,
    variant: &str,
    listener: &Listener,
) -> Result<Outcome, SimError> {
    let (script, sink) = (Box::new(script.clone()), Box::new(listener.clone()));
    let result = run_traced(&spec(machine), config(variant), script, 1, None, sink);
    result.map(|(outcome, _)| outcome)
}

/// The run with a listener, which must come out as without, and what it heard.
fn heard(script: &Script, machine: &str, variant: &str) -> (Outcome, Vec<Emitted>) {
    let listener = Listener::default();
    let outcome = traced(script, machine, variant, &listener).unwrap();
    let quiet = run(&spec(machine), config(variant), Box::new(script.clone()), 1, None).unwrap();
    assert_eq!(outcome, quiet, "{variant}: a listener makes no difference");
    let events = listener.events.lock().unwrap().clone();
    (outcome, events)
}

fn count(events: &[Emitted], name: &str) -> u64 {
    events.iter().filter(|event| event.name == name).count() as u64
}

fn sum(events: &[Emitted], name: &str, key: &str) -> u64 {
    events.iter().filter(|event| event.name == name).map(|event| event.value(key)).sum()
}

/// Readers and writers of files and memory, in a group and outside it, on a machine that is short.
fn busy() -> Script {
    let mut script = Script::default();
    let group = script.group("/touch", None);
    let (file, log) = (script.file(64 << 20), script.file(0));
    let (anon, own) = (script.anon(0, 8192), script.anon(1, 2048));
    let reads =
        |seed| pages(seed, 16_384, 6_000).into_iter().map(move |page| read(file, page.into(), 1));
    script.task(0, None, touch_all(anon, 8192, true).into_iter().chain(reads(1)).collect());
    let touches = pages(2, 2048, 4_000).into_iter().map(|page| touch(own, page, true));
    let writes = (0..200).map(|at| write(log, at * 16, 16));
    let ops = touches.chain(writes).chain(reads(3)).collect();
    script.task(1, Some(group), ops);
    script
}

const SHORT: &str = "memory = \"48MiB\"\nswap = { kind = \"device\", device = \"ufs\" }\n\
    device = \"ufs\"\n[groups.\"/touch\"]\n\"memory.max\" = \"8MiB\"\n";

#[test]
fn events_add_up_to_the_counters() {
    for variant in ["k6.12", "before", "after", "k7.2", "classic", "k6.12+lru=random"] {
        let (outcome, events) = heard(&busy(), SHORT, variant);
        let c = |name: &str| outcome.counter(name).unwrap_or_else(|| panic!("{name}"));
        let all = |name: &str| c(&format!("{name}_kswapd")) + c(&format!("{name}_direct"));
        assert!(all("pgsteal") > 5_000 && c("pgsteal_kswapd") > 0, "{variant}");
        let shrunk = "mm_vmscan_lru_shrink_inactive";
        assert_eq!(sum(&events, shrunk, "nr_reclaimed"), all("pgsteal"), "{variant}");
        let activated: u64 =
            ["nr_activate_anon", "nr_activate_file"].map(|k| sum(&events, shrunk, k)).iter().sum();
        assert!(activated <= c("pgactivate"), "{variant}: readers activate too");
        let isolated: Vec<Emitted> =
            events.iter().filter(|e| e.name == "mm_vmscan_lru_isolate").cloned().collect();
        let inactive = |e: &&Emitted| e.fields.contains("lru=inactive_");
        let taken: u64 = isolated.iter().filter(inactive).map(|e| e.value("nr_taken")).sum();
        assert_eq!(taken, all("pgscan"), "{variant}");
        for event in &isolated {
            let [scanned, skipped, taken] =
                ["nr_scanned", "nr_skipped", "nr_taken"].map(|k| event.value(k));
            assert!(taken + skipped <= scanned, "{variant}: {event:?}");
        }
        let active: u64 =
            isolated.iter().filter(|e| !inactive(e)).map(|e| e.value("nr_taken")).sum();
        assert_eq!(active, sum(&events, "mm_vmscan_lru_shrink_active", "nr_taken"), "{variant}");
        let begun =
            ["direct", "memcg"].map(|w| count(&events, &format!("mm_vmscan_{w}_reclaim_begin")));
        let ended =
            ["direct", "memcg"].map(|w| count(&events, &format!("mm_vmscan_{w}_reclaim_end")));
        assert_eq!(begun[0] + begun[1], c("reclaim_calls"), "{variant}");
        assert!(begun[1] > 10 && begun[0] - ended[0] + begun[1] - ended[1] <= 1, "{variant}");
        let cached = ["add_to", "delete_from"]
            .map(|w| count(&events, &format!("mm_filemap_{w}_page_cache")));
        let held = outcome.stat("/", "file").unwrap() / PAGE;
        assert_eq!(cached[0] - cached[1], held, "{variant}");
        let wakes =
            ["kswapd_wake", "kswapd_sleep"].map(|w| count(&events, &format!("mm_vmscan_{w}")));
        assert!(wakes[0] > 0 && wakes[0] - wakes[1] <= 1, "{variant}: {wakes:?}");
        assert_eq!(count(&events, "mm_vmscan_write_folio"), c("nr_vmscan_write"), "{variant}");
        assert_eq!(count(&events, "mglru_new_generation"), c("aging_passes"), "{variant}");
    }
}

#[test]
fn events_come_in_order_and_tasks_have_their_names() {
    let (_, events) = heard(&busy(), SHORT, "after");
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let by = |name: &str| {
        events
            .iter()
            .filter(|e| e.name == name)
            .map(|e| e.pid)
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(Vec::from_iter(by("mm_vmscan_memcg_reclaim_begin")), [1001]);
    assert_eq!(Vec::from_iter(by("mm_vmscan_kswapd_wake")), [50]);
    assert!(by("mm_filemap_add_to_page_cache").is_superset(&[1000, 1001].into()));
}

#[test]
fn throttles_writers_and_kills_are_traced() {
    let mut script = Script::default();
    let group = script.group("/touch", None);
    let log = script.file(0);
    let anon = script.anon(1, 4096);
    script.task(0, None, (0..256).map(|at| write(log, at * 256, 256)).collect());
    script.task(1, Some(group), touch_all(anon, 4096, true));
    let machine =
        "memory = \"256MiB\"\ndevice = \"hdd\"\n[groups.\"/touch\"]\n\"memory.max\" = \"8MiB\"\n";
    let (outcome, events) = heard(&script, machine, "after");
    assert_eq!(count(&events, "mark_victim"), 1);
    assert_eq!(count(&events, "mark_victim"), outcome.counter("oom_kill").unwrap());
    // Told in whole milliseconds.
    let pauses = count(&events, "balance_dirty_pages");
    let paused = sum(&events, "balance_dirty_pages", "pause") * 1000;
    let counted = outcome.counter("dirty_paused_us").unwrap();
    assert!(
        pauses > 0 && (paused..paused + pauses * 1000).contains(&counted),
        "{paused} {counted}"
    );
    assert!(count(&events, "writeback_start") > 0);
    let written = events.iter().filter(|e| e.name == "writeback_pages_written");
    let written: u64 = written.map(|e| e.fields.parse::<u64>().unwrap()).sum();
    assert!(written > 256 * 100, "{written}");
}

/// A group whose reclaim meets nothing but dirty pages throttles the tasks that reclaim.
#[test]
fn a_throttled_reclaimer_says_how_long_it_slept() {
    let mut script = Script::default();
    let group = script.group("/dd", None);
    let log = script.file(0);
    script.task(0, Some(group), (0..192).map(|at| write(log, at * 256, 256)).collect());
    let machine = "memory = \"2GiB\"\ncpus = 2\ndevice = \"delay\"\ndirty.per_group = false\n\
        groups.\"/dd\" = { \"memory.max\" = \"128MiB\" }";
    for variant in ["classic", "after"] {
        let (outcome, events) = heard(&script, machine, variant);
        let congested = outcome.counter("throttle_congested").unwrap();
        assert!(congested > 50, "{variant}");
        assert_eq!(count(&events, "mm_vmscan_throttled"), congested, "{variant}");
        let reason = "reason=VMSCAN_THROTTLE_CONGESTED";
        let mut throttled = events.iter().filter(|e| e.name == "mm_vmscan_throttled");
        assert!(throttled.clone().all(|e| e.fields.ends_with(reason)), "{variant}");
        // At most a tick, and until the next one.
        let tick = config(variant).tick_ns / 1000;
        let slept = |e: &Emitted| (1..=2 * tick).contains(&e.value("usect_delayed"));
        assert!(throttled.all(|e| e.value("usec_timeout") == tick && slept(e)), "{variant}");
    }
}

#[test]
fn a_sink_that_cannot_go_on_ends_the_run() {
    let listener = Listener { room: Some(1000), ..Listener::default() };
    let error = traced(&busy(), SHORT, "after", &listener).unwrap_err();
    assert_eq!(error.to_string(), "no room");
    assert_eq!(listener.events.lock().unwrap().len(), 1000, "it is not asked again");
}

#[test]
fn requests_report_each_call_that_they_make() {
    let mut script = Script::default();
    let group = script.group("/touch", None);
    let anon = script.anon(0, 2048);
    let mut ops = touch_all(anon, 2048, true);
    ops.push(Op::Control(mglru_workload::Control::Reclaim {
        group: Some(group),
        bytes: 4 << 20,
        swappiness: None,
    }));
    script.task(0, Some(group), ops);
    let (outcome, events) = heard(&script, "swap = { kind = \"zram\" }\n", "k7.2");
    let [begun, ended] =
        ["begin", "end"].map(|edge| count(&events, &format!("mm_vmscan_memcg_reclaim_{edge}")));
    assert!(begun > 1 && begun == ended, "{begun} {ended}");
    let stolen = outcome.counter("pgsteal_proactive").unwrap();
    assert!(stolen >= 1024);
    assert_eq!(sum(&events, "mm_vmscan_memcg_reclaim_end", "nr_reclaimed"), stolen);
}
