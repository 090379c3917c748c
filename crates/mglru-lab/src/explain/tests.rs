use mglru_workload::{FileSpec, GroupSpec, RegionSpec};

use super::*;

fn layout() -> Layout {
    let file = |name: &str| FileSpec { name: name.to_string(), bytes: 1 << 20 };
    Layout {
        groups: vec![GroupSpec { name: "/a".to_string(), parent: None }],
        files: vec![file("data"), file("log")],
        regions: vec![
            RegionSpec::plain(0, RegionKind::File { file: 0, first_page: 0 }, 4),
            RegionSpec::plain(0, RegionKind::Anon, 16),
        ],
        ..Layout::default()
    }
}

#[test]
fn pages_are_named_by_file_or_region() {
    let found = |text: &str| find(text, &layout());
    assert_eq!(found("log:7"), Ok(PageId::File { file: 1, page: 7 }));
    assert_eq!(found("file0:7"), Ok(PageId::File { file: 0, page: 7 }));
    assert_eq!(found("anon1:15"), Ok(PageId::Memory { region: 1, page: 15 }));
    assert_eq!(found("anon1:16").unwrap_err(), "anon1 has 16 pages, from 0 on");
    assert!(found("data").unwrap_err().starts_with("want FILE:PAGE"));
    assert_eq!(found("log:x").unwrap_err(), "page x: want a number");
    let none = "the workload has no `anon0` (it has: file0 (data), file1 (log), anon1)";
    assert_eq!(found("anon0:1").unwrap_err(), none);
}

#[test]
fn a_page_behind_its_file_is_refused_where_nothing_happened_to_it() {
    let at = |page| check(PageId::File { file: 1, page }, &layout());
    assert_eq!(at(255), Ok(()));
    assert_eq!(at(256).unwrap_err(), "file1 (log) has 256 pages, from 0 on");
    assert_eq!(check(PageId::Memory { region: 1, page: 99 }, &layout()), Ok(()));
}

#[test]
fn a_life_is_printed_in_lines_and_as_data() {
    let list = List::Generation { seq: 2, oldest: 1, youngest: 4 };
    let came = What::Came { memcg: 1, list, refault: Some(31) };
    let moment = |at, pid, what| Moment { at, comm: "a".to_string(), pid, what };
    let moments = [moment(1_500_000, 1000, came), moment(2_000_000_000, 0, What::Written)];
    let life = Life::new("after seed 1".to_string(), "log:7", &moments, &layout());
    assert_eq!(
        life.text(),
        "after seed 1: page log:7\n\
         \x20    0.001500 s  a-1000                 comes back after 31 pages were reclaimed, \
         charged to /a, generation 2 of 1 to 4\n\
         \x20    2.000000 s  a device               its write has ended\n"
    );
    let json = serde_json::to_value(&life.moments[0]).unwrap();
    assert_eq!((json["event"].as_str(), json["distance"].as_u64()), (Some("refaulted"), Some(31)));
    assert_eq!((json["group"].as_str(), json["generation"][1].as_u64()), (Some("/a"), Some(4)));
    assert_eq!(json["tier"], serde_json::Value::Null);
    let none = Life::new("a".to_string(), "log:7", &[], &layout());
    assert!(none.text().ends_with("it never came into memory\n"));
}
