use super::*;

const GOOD: &str = r#"
name = "t"
title = "a test"
variants = ["before", "after"]
metrics = ["ops_per_s"]
[machine]
memory = "1GiB"
[groups."/a"]
memory.max = "64MiB"
[workload]
kind = "mock"
"#;

fn error(text: &str, sets: &[&str]) -> String {
    let sets: Vec<Assignment> = sets.iter().map(|s| s.parse().unwrap()).collect();
    Plan::parse("t.toml", text, &sets).unwrap_err().to_string()
}

#[test]
fn reads_defaults() {
    let plan = Plan::parse("t.toml", GOOD, &[]).unwrap();
    assert_eq!((plan.base.as_str(), plan.seeds.len(), plan.scale), ("before", 6, 1.0));
    let limit = &plan.sections["groups"]["/a"]["memory.max"];
    assert_eq!(limit.as_str(), Some("64MiB"));
}

#[test]
fn set_reaches_group_limits() {
    let set = "groups./a.memory.max=128MiB".parse().unwrap();
    let plan = Plan::parse("t.toml", GOOD, &[set]).unwrap();
    assert_eq!(plan.sections["groups"]["/a"]["memory.max"].as_str(), Some("128MiB"));
}

#[test]
fn syntax_errors_have_a_place() {
    let text = "name = \"t\"\ntitle = = 3\n";
    let want = "t.toml:2:9: ";
    assert!(error(text, &[]).starts_with(want), "{}", error(text, &[]));
}

#[test]
fn each_mistake_is_one_line_naming_its_key() {
    let cases = [
        ("wrkload.kind=1", "t.toml: wrkload: unknown key (did you mean workload?)"),
        (
            "seeds=0",
            "t.toml: seeds = 0: must be a count 1..10000 or a list of different whole numbers",
        ),
        (
            "seeds=[1,1]",
            "t.toml: seeds = [1, 1]: must be a count 1..10000 or a list of different whole numbers",
        ),
        ("base=v9", "t.toml: base = v9: must be one of the plan's variants (before, after)"),
        ("machine=3", "t.toml: machine = 3: expected a table"),
        ("name=a/b", "t.toml: name = a/b: use letters, digits, - and _ only"),
        ("scale=0", "t.toml: scale = 0: must be above 0 and at most 1, such as 0.25 or 1/64"),
        ("variants=[]", "t.toml: variants: needs at least one variant"),
        ("variants=[\"before\",\"before\"]", "t.toml: variants = before: named twice"),
        ("title=3", "t.toml: title: invalid type: integer `3`, expected a string"),
        (
            "groups.mongo.memory.max=1",
            "t.toml: groups.mongo: a group's name starts with /, such as /mongo",
        ),
        (
            "published=[{metric=\"m\",document=\"d\",before=0.0,after=1.0}]",
            "t.toml: published[0].before = 0: must be above 0",
        ),
        (
            "control=[{name=\"n\",metric=\"m\",variant=\"after\"}]",
            "t.toml: control[0]: needs exactly one of ratio, value and share",
        ),
        (
            "neutral=[{metric=\"m\",variant=\"after\",band=[2.0,1.0]}]",
            "t.toml: neutral[0].band = [2, 1]: low end above high end",
        ),
        (
            "neutral=[{metrik=\"m\",variant=\"after\"}]",
            "t.toml: neutral[0].metrik: unknown key (did you mean metric?)",
        ),
    ];
    for (set, want) in cases {
        assert_eq!(error(GOOD, &[set]), want, "--set {set}");
    }
}

#[test]
fn a_plan_may_differ_on_a_backend() {
    let text = "name=\"t\"\ntitle=\"t\"\nbackend=[\"kernel\",\"sim\"]\nvariants=[\"k6.12\"]\n\
        [machine]\ncpus=2\nmemory=\"1GiB\"\n[workload]\nkind=\"program\"\nscript=\"x\"\n\
        [on.sim.machine]\ncpus=4\n[on.sim.workload]\nkind=\"fio\"\njobs=3";
    let plan = Plan::parse("t.toml", text, &[]).unwrap();
    assert_eq!(plan.backends, ["kernel", "sim"]);
    let on = plan.clone().on("sim").sections;
    assert_eq!((on["machine"]["cpus"].as_integer(), on["workload"].get("script")), (Some(4), None));
    assert_eq!(on["machine"]["memory"].as_str(), Some("1GiB"), "other keys stay");
    assert_eq!(plan.clone().on("kernel").sections, plan.sections);
    let set = ["on.sim.machine.cpus=8".parse().unwrap()];
    let plan = Plan::parse("t.toml", text, &set).unwrap().on("sim");
    assert_eq!(plan.sections["machine"]["cpus"].as_integer(), Some(8));
}

#[test]
fn what_differs_on_a_backend_is_checked_for_its_names() {
    let error = |more: &str| {
        let text = format!("name=\"t\"\ntitle=\"t\"\nvariants=[\"after\"]\n{more}");
        Plan::parse("t.toml", &text, &[]).unwrap_err().to_string()
    };
    assert_eq!(
        error("[on.sim.machin]\ncpus=1"),
        "t.toml: on.sim.machin: unknown key (did you mean machine?)"
    );
    assert_eq!(error("on = 3"), "t.toml: on = 3: expected tables [on.BACKEND]");
    let twice = error("backend = [\"sim\", \"sim\"]");
    assert!(twice.ends_with("must be a name or a list of different names"), "{twice}");
    assert!(error("backend = []").contains("must be a name"));
}

#[test]
fn what_a_plan_expects_may_stand_under_its_older_name() {
    let one = |list: &str| {
        let head = "name = \"t\"\ntitle = \"t\"\nvariants = [\"a\"]\n";
        let body = "name = \"n\"\nmetric = \"ops\"\nvariant = \"a\"\nvalue = [1, 2]\n";
        Plan::parse("t.toml", &format!("{head}[[{list}]]\n{body}"), &[]).unwrap().expects
    };
    assert_eq!((one("expect").len(), one("control").len()), (1, 1));
    assert_eq!(one("control")[0].value, Some([1.0, 2.0]));
}
