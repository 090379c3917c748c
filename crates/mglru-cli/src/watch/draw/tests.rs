use mglru::Sizes;
use mglru::types::Reclaimer;
use mglru_sim::live::{Act, Actor, Wait};
use mglru_sim::samples::{COUNTERS, Sample};
use mglru_sim::stall::Stalled;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn look(has_generations: bool) -> Look {
    let generation = |seq, anon, file| mglru::GenerationSize {
        seq,
        born: seq,
        pages: [anon, file],
        slots: [None; 2],
    };
    let generations = if has_generations {
        vec![generation(7, 100, 0), generation(8, 50, 900)]
    } else {
        Vec::new()
    };
    let group = GroupSample {
        columns: [4 << 20, 1 << 20, 3 << 20, 8192, 0, 0, 0, 0, 0, 0],
        generations,
        refaulted: [[0; 4], [10, 0, 0, 0]],
        judged: [[0; 4], [100, 0, 0, 0]],
        limits: [0, 1],
    };
    let sample = Sample {
        at: 2_000_000_000,
        ops: 10,
        counters: [0; COUNTERS.len()],
        groups: vec![group.clone(), group],
    };
    let act = Act::Reclaims { by: Reclaimer::Direct, target: Some(1), priority: 11 };
    let actor = |name: &str, act, wait| Actor { name: name.to_string(), group: 1, act, wait };
    Look {
        sample,
        accesses: 77,
        lists: vec![Sizes { active_file: 60, inactive_file: 30, ..Sizes::default() }; 2],
        pressure: vec![Stalled { some: 500_000_000, full: 0 }; 2],
        actors: vec![
            actor("kswapd0", Act::Idle, None),
            actor("a-0", Act::Other("reads"), Some(Wait::Data)),
            actor("a-1", act, None),
        ],
    }
}

fn drawn(look: &Look, size: (u16, u16), prompt: Option<&str>) -> String {
    let groups = ["/".to_string(), "/a".to_string()];
    let breaks = ["oom_kill>0".parse().unwrap()];
    let view = View {
        run: "after seed 1",
        state: "paused".to_string(),
        share: Some(0.255),
        look,
        history: &History::default(),
        groups: &groups,
        limits: vec![None, Some(4 << 20)],
        group: 1,
        breaks: &breaks,
        prompt,
        complaint: "no such counter",
    };
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, &view)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_picture_has_groups_generations_rates_and_threads() {
    let text = drawn(&look(true), (120, 30), None);
    for part in [
        "after seed 1  2 s of virtual time  paused",
        "25.5 %",
        "/a             4.0M     4.0M     1.0M     3.0M     8.0K     25.0",
        "    8   2.00 s",
        "▒ 50 + 900",
        "file tiers 10% 0% 0% 0%",
        "operations",
        "Threads: 1 reclaim, 1 wait, 1 idle or ended",
        "reclaims /a, prio 11",
        "for data",
        "stops at: oom_kill>0",
        "space pause",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn the_classic_lists_stand_where_there_are_no_generations() {
    let text = drawn(&look(false), (120, 30), Some("oom_kil>"));
    assert!(text.contains("active") && text.contains("▒ 0 + 60"), "{text}");
    assert!(!text.contains("tiers"), "{text}");
    assert!(text.contains("oom_kil>_ no such counter"), "{text}");
}

#[test]
fn no_size_of_the_terminal_is_too_small() {
    for size in [(1, 1), (5, 3), (20, 8), (80, 24), (300, 100)] {
        drawn(&look(true), size, None);
    }
}
