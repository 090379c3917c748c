use std::collections::VecDeque;
use std::sync::Arc;

use mglru_sim::custom::CustomPolicy;

use super::*;
use crate::backend::{Backend, Outcome, Sections, sim::Sim};
use crate::limits;

#[derive(Default)]
struct Fifo(VecDeque<u64>);

impl CustomPolicy for Fifo {
    fn inserted(&mut self, page: u64, _: bool) -> Result<(), String> {
        self.0.push_back(page);
        Ok(())
    }

    fn removed(&mut self, page: u64) -> Result<(), String> {
        self.0.retain(|&other| other != page);
        Ok(())
    }

    fn victims(&mut self, count: u64, out: &mut Vec<u64>) -> Result<(), String> {
        let n = self.0.len().min(count as usize);
        out.extend(self.0.drain(..n));
        Ok(())
    }
}

fn fifo() -> PolicyFactory {
    Arc::new(|_| Ok(Box::new(Fifo::default()) as Box<dyn CustomPolicy>))
}

fn sections(reclaim: &str) -> Sections {
    let machine = "memory = \"64MiB\"\nreadahead_kb = 0\n";
    let load = "kind = \"touch\"\nengine = \"pread\"\npages = 2048\noperations = 9000\n";
    let limit: Table = "\"memory.max\" = \"4MiB\"".parse().unwrap();
    Sections {
        machine: machine.parse().unwrap(),
        groups: [("/touch".to_string(), limits::parse(&limit, 1.0).unwrap())].into(),
        workload: load.parse().unwrap(),
        reclaim: reclaim.parse().unwrap(),
        kernel: Table::new(),
        scale: 1.0,
    }
}

fn outcome(variant: &str) -> Outcome {
    let job = Sim.prepare(&sections(""), &Variant::parse(variant).unwrap()).unwrap();
    job.run(1, &|_| ()).unwrap()
}

fn refused(reclaim: &str, variant: &str) -> String {
    let prepared = Sim.prepare(&sections(reclaim), &Variant::parse(variant).unwrap());
    prepared.err().unwrap().to_string()
}

#[test]
fn a_registered_policy_is_a_variant_of_the_model() {
    let name = register("queue", "first in, first out", fifo()).unwrap();
    assert!(Sim.variants().iter().any(|(known, _)| *known == name));
    let [own, theirs] = ["fifo", &name].map(outcome);
    let read = |outcome: &Outcome| outcome.counters["pgpgin"];
    assert!(read(&theirs) > 0);
    assert!(read(&own).abs_diff(read(&theirs)) * 100 < read(&own));
}

#[test]
fn a_name_says_which_state_of_the_source_it_is() {
    let [one, two] = ["a", "b"].map(|source| register("mine", source, fifo()).unwrap());
    assert!(one.starts_with("mine@") && one != two);
    assert_eq!(register("mine", "a", fifo()).unwrap(), one);
}

#[test]
fn names_and_keys_that_do_not_fit_are_refused() {
    let problem = register("a+b", "", fifo()).unwrap_err().to_string();
    assert_eq!(problem, "policy = a+b: takes letters, digits, `_`, `-` and `.`");
    let name = register("q", "", fifo()).unwrap();
    assert!(refused("", &format!("{name}+lru=mglru")).ends_with("stands in its place"));
    assert!(refused("flor = \"v5\"", &name).starts_with("reclaim.flor: unknown key"));
    assert!(refused("", "q@00000000").starts_with("variant = q@00000000: unknown"));
}
