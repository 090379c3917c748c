//! The examples run and say what they should. Where the pager cannot run the test says so.

use std::process::Command;

use mglru_pager::probe;

fn say(example: &str) -> Option<String> {
    if let Some(fact) = probe().into_iter().find(|fact| fact.required && !fact.ok) {
        println!("skipped: {} ({})", fact.detail, fact.fix);
        return None;
    }
    let mut cargo = Command::new(env!("CARGO"));
    let me = std::env::current_exe().unwrap();
    let target = me.ancestors().nth(3).unwrap();
    cargo.args(["run", "--quiet", "-p", "mglru-pager", "--target-dir"]).arg(target);
    let output = cargo.args(["--example", example]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {:?} {said}", output.status);
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_table_larger_than_its_budget_is_kept() {
    let Some(said) = say("table") else { return };
    assert!(said.starts_with("8388608 rows, 0 wrong\nmemory.peak 1"), "{said}");
}

#[test]
fn a_store_that_is_no_file_backs_a_mapping() {
    let Some(said) = say("own_store") else { return };
    let expected = "0 wrong of 4194304 squares, 512 of 512 stores kept\n512 pages in the store\n";
    assert_eq!(said, expected);
}

#[test]
fn a_protected_group_is_left_alone_by_its_neighbour() {
    let Some(said) = say("two_groups") else { return };
    assert!(said.starts_with("index: 8 of 8 MiB resident, 0 major faults\n"), "{said}");
}

#[test]
fn a_journal_reads_as_it_was_committed() {
    let Some(said) = say("journal") else { return };
    assert_eq!(said, "4096 of 4096 records as committed\n");
}
