use super::*;

fn state(stat: &str, events: &str, memory: &str) -> GroupState {
    GroupState {
        stat: stat.to_string(),
        events: events.to_string(),
        current: 9000,
        pressure: mglru_guest::report::Pressure { memory: memory.to_string(), io: String::new() },
        ..GroupState::default()
    }
}

fn snapshot(at_us: u64, state: GroupState, vmstat: &str) -> Snapshot {
    Snapshot {
        at_us,
        vmstat: vmstat.to_string(),
        lru_gen: "memcg 2 /job\n node 0\n 4 100 1 2 \n".to_string(),
        groups: [("/job".to_string(), state)].into(),
        ..Snapshot::default()
    }
}

#[test]
fn differences_levels_and_pressure_are_written_as_in_a_truth_file() {
    let before = state("pgscan 5\nanon 4096\n", "max 2\noom 0\n", "some avg10=0 total=10\n");
    let after = state("pgscan 9\nanon 8192\nodd 3\n", "max 7\noom 0\n", "some avg10=0 total=25\n");
    let differences: Vec<_> =
        differences(&before.stat, &after.stat, |name| DELTAS.contains(&name)).collect();
    assert_eq!(differences, [("pgscan".to_string(), 4)]);
    assert_eq!(pressure(Some(&before), Some(&after))["mem_some_us"], 15);
    let levels = levels(&after);
    assert_eq!((&levels["anon"], &levels["current"]), (&8192.into(), &9000.into()));
    assert!(levels.get("odd").is_none() && levels.get("file").is_none());
}

#[test]
fn a_step_of_a_command_carries_the_kernels_answer() {
    let answer = Command { text: "+ 2 0 3 1 0".to_string(), rc: -34, took_us: 700 };
    let marks = vec![
        (0, snapshot(0, GroupState::default(), "")),
        (1, snapshot(5, GroupState::default(), "")),
    ];
    let report = GuestReport { marks, commands: vec![(2, answer)], ..GuestReport::default() };
    assert!(command(&report, 0).is_empty());
    let line = command(&report, 1);
    assert_eq!((&line["lgcmd"], &line["rc"]), (&"+ 2 0 3 1 0".into(), &(-34).into()));
}
