use super::*;
use crate::op::Control;

const TWO: &str = "\
[parts.web]
kind = \"touch\"
engine = \"anon\"
pages = 8
operations = 3
order = \"sequential\"
group = \"/a/web\"
[parts.scan]
kind = \"job\"
delay_ms = 5
background = true
text = \"\"\"
task s group=/a
region kind=mmap path=/f pages=4
stream region=0 gen=seq n=4 base=0 wr=0
phase pass ops=2 mix=0:1
barrier 0
reclaim 4096
\"\"\"
";

fn params(text: &str) -> Result<SeveralParams, String> {
    toml::from_str(text).map_err(|e| e.to_string())
}

fn error(from: &str, to: &str) -> String {
    assert!(TWO.contains(from), "{from}");
    match params(&TWO.replace(from, to)) {
        Err(error) => error,
        Ok(params) => params.check().and_then(|()| params.build(1, 1.0)).err().unwrap().to_string(),
    }
}

#[test]
fn parts_keep_what_is_theirs_and_share_groups() {
    let layout = params(TWO).unwrap().build(1, 1.0).unwrap().layout();
    let groups: Vec<_> = layout.groups.iter().map(|g| (g.name.as_str(), g.parent)).collect();
    assert_eq!(groups, [("/a", None), ("/a/web", Some(0))]);
    let tasks: Vec<_> = layout.tasks.iter().map(|t| (t.mm, t.group, t.background)).collect();
    assert_eq!(tasks, [(0, Some(0), true), (1, Some(1), false)], "by name: scan, then web");
    assert_eq!(layout.barrier_sets, [Some(0), Some(1)], "nobody waits at another part's barriers");
    assert_eq!((&layout.phases[0], layout.sequences.len()), (&"scan.pass".to_owned(), 4));
    assert_eq!(layout.classes, ["web.read", "web.write"]);
    assert_eq!(layout.files[0].name, "scan./f");
}

#[test]
fn operations_bear_the_numbers_of_all() {
    let mut several = params(TWO).unwrap().build(1, 1.0).unwrap();
    let all = |several: &mut SeveralWorkload, task| -> Vec<Op> {
        std::iter::repeat_with(|| several.next(task)).take_while(|op| *op != Op::Done).collect()
    };
    let touch = |region, page| Op::Touch { region, page, write: false };
    let scan = all(&mut several, 0);
    let reclaim = Control::Reclaim { group: Some(0), bytes: 4096, swappiness: None };
    assert_eq!(
        scan[..4],
        [Op::Think { ns: 5_000_000 }, Op::Mark { phase: 0 }, touch(0, 0), touch(0, 1)]
    );
    assert_eq!(scan[scan.len() - 2..], [Op::Control(reclaim), Op::Mark { phase: 3 }]);
    let web = all(&mut several, 1);
    assert_eq!(web[..2], [touch(1, 0), Op::End { class: 0 }]);
    let mut batched = Vec::new();
    let mut again = params(TWO).unwrap().build(1, 1.0).unwrap();
    while batched.last() != Some(&Op::Done) {
        again.fill(0, &mut batched);
    }
    assert_eq!(batched[..batched.len() - 1], scan);
}

#[test]
fn parts_of_one_kind_draw_different_numbers() {
    let twins = "[parts.a]\nkind = \"touch\"\n[parts.b]\nkind = \"touch\"\n";
    let mut several = params(twins).unwrap().build(1, 1.0).unwrap();
    let draw = |several: &mut SeveralWorkload, task| -> Vec<Op> {
        let ops = std::iter::repeat_with(|| several.next(task)).take(40);
        let page = |op| match op {
            Op::Touch { page, write, .. } => Op::Touch { region: 0, page, write },
            _ => Op::Done,
        };
        ops.map(page).collect()
    };
    assert_ne!(draw(&mut several, 0), draw(&mut several, 1));
}

#[test]
fn faults_name_the_part() {
    assert_eq!(
        error("pages = 8", "pages = 0"),
        "parts.web: touch.pages = 0: must be from 1 to 4294967295"
    );
    assert_eq!(
        error("phase pass", "phse pass").split(" (").next(),
        Some("parts.scan: job: line 4: phse: no such statement")
    );
    let nested = error("kind = \"touch\"\nengine", "kind = \"several\"\nparts = {}\nengine");
    assert!(nested.contains("unknown field") || nested.contains("parts have no parts"), "{nested}");
    assert!(error("background = true", "background = 3").contains("background"));
    assert!(error("pages = 8", "pagse = 8").contains("pagse"), "unknown keys are refused");
    let all = error("group = \"/a/web\"", "group = \"/a/web\"\nbackground = true");
    assert_eq!(all, "several.parts: all are in the background: the run waits for nobody");
}
