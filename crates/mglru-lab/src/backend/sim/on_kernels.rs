//! What booted kernels did in plans of several groups, and what the model says. The kernels'
//! figures are of seed 1, in virtual time; the plans name the releases.

use super::*;
use crate::plans;
use crate::record::Record;
use crate::runner::{Progress as Bar, run_all};
use crate::spec::{Experiment, Selection};
use crate::store::Store;

const RELEASES: [&str; 4] = ["k6.12", "k7.1", "k7.2", "k7.3"];

/// One run of each variant, in this order.
fn records<const N: usize>(plan: &str, variants: [&str; N]) -> [Record; N] {
    let variants = variants.map(String::from).to_vec();
    let selection = Selection { variants, seeds: Some(1), ..Selection::default() };
    let experiment = Experiment::new(plans::find(plan, &[]).unwrap(), &selection, &Sim)
        .map_err(|e| e.to_string());
    let (experiment, dir) = (experiment.unwrap(), tempfile::tempdir().unwrap());
    let (mut store, _) = Store::open(dir.path(), &experiment).unwrap();
    run_all(&experiment, &mut store, 1, &Bar::hidden()).unwrap().try_into().unwrap()
}

fn near(ours: f64, kernel: f64, what: &str) {
    assert!((ours / kernel - 1.0).abs() < 0.025, "{what}: {ours}, on the kernel {kernel}");
}

#[test]
fn a_removed_groups_pages_go_first_or_become_the_parents() {
    let kernels = [(4096.0, 12416.0), (2177.0, 10434.0), (2124.0, 10377.0), (2121.0, 10364.0)];
    for (record, (read, taken)) in records("vm-removed", RELEASES).iter().zip(kernels) {
        let metric = |name: &str| record.metric(name).unwrap();
        near(metric("pgpgin@back") / 4.0, read, &record.variant);
        near(metric("/p:pgsteal"), taken, &record.variant);
    }
}

/// Which group a request meets first is chance up to 7.2: the sum is compared.
#[test]
fn a_request_to_the_root_spares_a_protected_group_from_7_3_on() {
    let kernels = [(1856, 6336), (3984, 4309), (3922, 4387), (0, 8398), (0, 8389)];
    let variants = ["k6.12", "k7.1", "k7.2", "k7.3", "classic"];
    for (record, (kept, open)) in records("vm-protected", variants).iter().zip(kernels) {
        let taken = |group: &str| record.groups[group].counter("pgsteal").unwrap();
        let (ours, sum) = (taken("/kept"), taken("/kept") + taken("/open"));
        assert_eq!(ours > 1000, kept > 1000, "{}: {ours}", record.variant);
        assert!(kept > 0 || ours == 0, "{}: {ours}", record.variant);
        near(sum as f64, f64::from(kept + open), &record.variant);
    }
}
