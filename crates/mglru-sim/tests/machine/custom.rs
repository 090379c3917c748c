//! Policies from outside choose what is evicted.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use mglru_sim::custom::{CustomPolicy, Rules};
use mglru_sim::{Machine, Outcome, SimError, run};
use mglru_workload::rng::Rng;
use mglru_workload::{MemoryAdvice, Op, RegionKind};

use crate::script::{Script, config, pages, read, spec, touch, touch_all, write};

const MACHINE: &str = "memory = \"64MiB\"\nreadahead_kb = 0\nfault_around_kb = 4\n\
    swap = { kind = \"zram\" }\n[groups.\"/a\"]\n\"memory.max\" = \"1MiB\"\n";

/// Evicts in the order of arrival; or the least recently used of what it hears.
#[derive(Default)]
struct Queue {
    pages: VecDeque<u64>,
    by_use: bool,
    named: BTreeSet<u64>,
    heard: Heard,
}

/// Counts what a policy hears.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<[usize; 6]>>);

impl Heard {
    fn count(&self, what: usize) {
        self.0.lock().unwrap()[what] += 1;
    }

    fn all(&self) -> [usize; 6] {
        *self.0.lock().unwrap()
    }
}

impl Queue {
    fn new(by_use: bool, heard: &Heard) -> Self {
        Self { by_use, heard: heard.clone(), ..Self::default() }
    }

    fn drop_page(&mut self, page: u64) -> Result<(), String> {
        let at = self.pages.iter().position(|&p| p == page).ok_or("it is not there")?;
        self.pages.remove(at);
        Ok(())
    }

    fn add(&mut self, page: u64) -> Result<(), String> {
        match self.pages.contains(&page) {
            true => Err(format!("page {page} is there already")),
            false => {
                self.pages.push_back(page);
                Ok(())
            }
        }
    }
}

impl CustomPolicy for Queue {
    fn inserted(&mut self, page: u64, _: bool) -> Result<(), String> {
        self.heard.count(0);
        assert!(!self.named.contains(&page), "it comes back as `returned`");
        self.add(page)
    }

    fn accessed(&mut self, page: u64) -> Result<(), String> {
        self.heard.count(1);
        if self.by_use {
            self.drop_page(page)?;
            self.pages.push_back(page);
        }
        Ok(())
    }

    fn removed(&mut self, page: u64) -> Result<(), String> {
        self.heard.count(2);
        self.drop_page(page)
    }

    fn returned(&mut self, page: u64, accessed: bool) -> Result<(), String> {
        self.heard.count(if accessed { 3 } else { 4 });
        assert!(self.named.remove(&page), "only what was named comes back");
        self.add(page)
    }

    fn cold(&mut self, page: u64) -> Result<(), String> {
        self.drop_page(page)?;
        self.pages.push_front(page);
        Ok(())
    }

    fn evicted(&mut self, page: u64) -> Result<(), String> {
        self.heard.count(5);
        assert!(self.named.remove(&page), "only what was named is evicted");
        Ok(())
    }

    fn victims(&mut self, count: u64, out: &mut Vec<u64>) -> Result<(), String> {
        let n = self.pages.len().min(count as usize);
        out.extend(self.pages.drain(..n));
        self.named.extend(out.iter());
        Ok(())
    }
}

fn queues(by_use: bool) -> (Rules, Heard) {
    let heard = Heard::default();
    let inner = heard.clone();
    let make = Arc::new(move |_| Ok(Box::new(Queue::new(by_use, &inner)) as Box<dyn CustomPolicy>));
    (Rules::custom(config("classic"), make), heard)
}

/// Skewed reads of a file four times as large as the group.
fn skewed_reads() -> Script {
    let mut script = Script::default();
    let group = script.group("/a", None);
    script.file(4 << 20);
    let mut rng = Rng::new(7, 0);
    let page = move || rng.below(64) * rng.below(64) * rng.below(64) / 256;
    let reads = std::iter::repeat_with(page).take(20_000).map(|page| read(0, page, 1));
    let ops = reads.collect();
    script.task(0, Some(group), ops);
    script
}

fn end(script: &Script, rules: Rules) -> Outcome {
    let mut machine = Machine::new(&spec(MACHINE), rules, Box::new(script.clone()), 1).unwrap();
    machine.run(None).unwrap();
    machine.lru.check();
    machine.outcome()
}

#[test]
fn a_queue_from_outside_reads_as_much_as_the_machines_own_fifo() {
    let script = skewed_reads();
    let own = script.run(&spec(MACHINE), "fifo");
    let (rules, heard) = queues(false);
    let outcome = end(&script, rules);
    let [inserted, accessed, removed, .., evicted] = heard.all();
    assert_eq!(Some(evicted as u64), outcome.counter("pgsteal_direct"));
    assert!(inserted > evicted && accessed > 10_000 && removed == 0, "{:?}", heard.all());
    // Batches are of other sizes: without an active list the machine's own one scans files alone.
    let [own, theirs] = [own, outcome].map(|end| end.counter("pgpgin").unwrap());
    assert!(own.abs_diff(theirs) * 100 <= own, "{own} {theirs}");
}

#[test]
fn accesses_that_a_policy_hears_of_save_reads() {
    let script = skewed_reads();
    let reads = |by_use| end(&script, queues(by_use).0).counter("pgpgin").unwrap();
    let [fifo, lru] = [false, true].map(reads);
    assert!(lru * 10 < fifo * 9, "{lru} {fifo}");
}

#[test]
fn pages_used_through_a_mapping_return_as_accessed() {
    let mut script = Script::default();
    let group = script.group("/a", None);
    let file = script.file(4 << 20);
    let mapped = script.region(0, RegionKind::File { file, first_page: 0 }, 1024);
    let touches = pages(3, 1024, 20_000).into_iter().map(|page| touch(mapped, page, false));
    script.task(0, Some(group), touches.collect());
    let (rules, heard) = queues(false);
    end(&script, rules);
    let [.., accessed, _, evicted] = heard.all();
    assert!(accessed > 1000 && evicted > 1000, "{accessed} {evicted}");
}

#[test]
fn dirty_and_anonymous_pages_and_unmapping_keep_the_account() {
    let mut script = Script::default();
    let group = script.group("/a", None);
    script.file(4 << 20);
    let anon = script.anon(0, 400);
    let writes = pages(5, 1024, 8_000).into_iter().map(|page| write(0, u64::from(page), 1));
    let ops = touch_all(anon, 400, true).into_iter().chain(writes);
    let ops = ops.chain(touch_all(anon, 400, false)).chain([Op::Unmap { region: anon }]);
    script.task(0, Some(group), ops.collect());
    let (rules, heard) = queues(true);
    let outcome = end(&script, rules);
    let [_, _, removed, _, returned, evicted] = heard.all();
    assert!(removed > 100 && returned > 0 && evicted > 1000, "{:?}", heard.all());
    assert!(outcome.counter("pswpout") > Some(0));
}

#[test]
fn advice_and_locks_keep_the_account() {
    let advise = |region, advice| Op::Advise { region, page: 0, nr: 100, advice };
    let mut script = Script::default();
    let group = script.group("/a", None);
    let file = script.file(4 << 20);
    let mapped = script.region(0, RegionKind::File { file, first_page: 0 }, 1024);
    let anon = script.anon(0, 100);
    let touch_pages = |seed| pages(seed, 1024, 2_000).into_iter().map(|n| touch(mapped, n, true));
    let mut ops = touch_all(anon, 100, true);
    for (seed, what) in
        [(1, MemoryAdvice::Cold), (2, MemoryAdvice::PageOut), (3, MemoryAdvice::PageOut)]
    {
        ops.extend(touch_pages(seed));
        ops.extend([advise(anon, what), advise(mapped, what)]);
        ops.extend(touch_all(anon, 100, seed == 1));
    }
    ops.push(Op::Lock { region: anon });
    ops.extend(touch_pages(9));
    ops.push(Op::Unlock { region: anon });
    ops.extend(touch_pages(10));
    script.task(0, Some(group), ops);
    let (rules, heard) = queues(false);
    end(&script, rules);
    let [inserted, _, removed, _, _, evicted] = heard.all();
    assert!(removed > 100 && inserted > evicted, "{:?}", heard.all());
}

#[test]
fn a_page_that_moves_to_slow_memory_leaves_one_policy_for_another() {
    let mut script = Script::default();
    let anon = script.anon(0, 1024);
    script.file(80 << 20);
    let mut ops = touch_all(anon, 1024, true);
    ops.extend((0..20 * 1024).map(|page| read(0, page, 1)));
    ops.extend(pages(1, 20 * 1024, 20_000).into_iter().map(|p| read(0, u64::from(p), 1)));
    script.task(0, None, ops);
    let machine = "memory = \"64MiB\"\ncpus = 2\nnodes = 2\nreadahead_kb = 0\nslow_nodes = 1";
    let (rules, heard) = queues(false);
    let mut machine = Machine::new(&spec(machine), rules, Box::new(script), 1).unwrap();
    machine.run(None).unwrap();
    let outcome = machine.outcome();
    let count = |name| outcome.counter(name).unwrap();
    assert!(count("pgdemote_kswapd") + count("pgdemote_direct") > 1000);
    assert!(heard.all()[5] > 1000, "{:?}", heard.all());
}

/// Names a page that does not exist, or none.
struct Wrong(Option<u64>);

impl CustomPolicy for Wrong {
    fn inserted(&mut self, _: u64, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn removed(&mut self, _: u64) -> Result<(), String> {
        Ok(())
    }

    fn victims(&mut self, _: u64, out: &mut Vec<u64>) -> Result<(), String> {
        out.extend(self.0);
        Ok(())
    }
}

#[test]
fn a_name_that_is_not_on_the_list_ends_the_run() {
    let end = |name| {
        let make = Arc::new(move |_| Ok(Box::new(Wrong(name)) as Box<dyn CustomPolicy>));
        let rules = Rules::custom(config("classic"), make);
        let found = run(&spec(MACHINE), rules, Box::new(skewed_reads()), 1, None);
        match found.unwrap_err() {
            SimError::Policy(text) => text,
            other => panic!("{other}"),
        }
    };
    let none = end(None);
    assert!(none.ends_with("named none") && none.starts_with("file list of group"), "{none}");
    let absent = end(Some(1 << 32 | 9));
    assert!(absent.ends_with("(page 9 of file 1), which is not on its list"), "{absent}");
}
