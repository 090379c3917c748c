use super::*;
use crate::script::Scripted;
use crate::script::tests::{ends, strings};

fn small() -> ChromeNodeParams {
    ChromeNodeParams { groups: 4, requests: 800, ..Default::default() }.scaled(1.0 / 4096.0)
}

fn run(seed: u64) -> (Vec<Vec<Op>>, Scripted<ChromeNode>) {
    let mut workload = Scripted::new(ChromeNode::new(&small(), seed).unwrap());
    (strings(&mut workload), workload)
}

fn figure(workload: &Scripted<ChromeNode>, name: &str) -> f64 {
    use crate::op::Workload;
    workload.figures().into_iter().find(|(n, _)| n == name).unwrap().1
}

#[test]
fn the_budget_is_served_once_and_evenly_by_turns() {
    let (tasks, workload) = run(1);
    assert_eq!((ends(&tasks, 0), ends(&tasks, SETUP)), (800, 16));
    assert_eq!(figure(&workload, "jain"), 1.0);
    assert_eq!(figure(&workload, "worker_stdev"), 0.0);
    assert_eq!(figure(&workload, "worst_share"), 1.0);
}

#[test]
fn uneven_service_is_reported() {
    let mut workload = ChromeNode::new(&small(), 1).unwrap();
    let served = [10, 20, 30, 40, 10, 20, 30, 40];
    workload.workers.iter_mut().zip(served).for_each(|(w, served)| w.requests = served);
    let workload = Scripted::new(workload);
    // Σx = 200, Σx² = 6000: J = 200²/(8·6000), s² = (6000 − 8·25²)/7.
    assert!((figure(&workload, "jain") - 40_000.0 / 48_000.0).abs() < 1e-12);
    assert!((figure(&workload, "worker_stdev") - (1000.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    assert_eq!(figure(&workload, "worst_share"), 10.0 / 25.0);
}

#[test]
fn a_request_writes_one_buffer_whole_and_most_of_the_browser() {
    let (tasks, _) = run(1);
    let gate = tasks[3].iter().position(|op| *op == Op::Barrier { id: 1 }).unwrap();
    let requests: Vec<&[Op]> = tasks[3][gate + 2..tasks[3].len() - 1]
        .split_inclusive(|op| *op == Op::End { class: 0 })
        .collect();
    let mut chosen = [0; 10];
    for request in &requests {
        let pages = |region: u32| {
            let page = move |op: &Op| match *op {
                Op::Touch { region: r, page, .. } if r == 9 + region => Some(page),
                _ => None,
            };
            request.iter().filter_map(page).collect::<Vec<u32>>()
        };
        let buffer = pages(0);
        assert!(buffer.len() == 32 && buffer[0] % 32 == 0 && buffer.is_sorted());
        chosen[buffer[0] as usize / 32] += 1;
        assert_eq!(pages(2).len(), small().array_pages as usize);
    }
    assert_eq!(requests.len(), 100);
    assert!(chosen.iter().all(|&n| (1..25).contains(&n)), "{chosen:?}");
}

#[test]
fn seeds_differ_and_repeat() {
    use crate::op::Workload;
    let hash = |seed| run(seed).1.string_hash();
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn wrong_numbers_are_named() {
    let params = ChromeNodeParams { buffers: 0, ..small() };
    let error = ChromeNode::new(&params, 1).unwrap_err().to_string();
    assert_eq!(error, "chrome-node.buffers = 0: must be from 1 to 4096");
}
