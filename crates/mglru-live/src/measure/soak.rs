//! Nothing is ever lost: for minutes, threads rewrite and check pages of a file and of anonymous
//! memory in groups whose limits change under way, and a program under the launcher does so with
//! its heap and the children that it forks. Each byte is known from its page and version.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mglru_pager::launch::Launch;
use mglru_pager::{ForkPolicy, Group, Limit, Pager, PagerOptions, SharedMapping, SwapOptions};

use super::{Finding, MIB, Numbers, Section, Settings, Spread, Target, WORDS, failed, progress};
use mglru_error::Error;

/// memory.max of the pager, and the size of each mapping.
const MAX: usize = 48 * MIB;
const LEN: usize = 64 * MIB;
/// memory.max of the forking program, whose heap is about three times that.
const HEAP_MAX: u64 = 24 << 20;
/// Threads on each mapping.
const THREADS: usize = 2;
/// Time from one change of limits to the next.
const CHANGE: Duration = Duration::from_millis(200);
/// The forking program: rewrites strings, has children check all of them as they were at the
/// fork, and checks them itself. Tells of each that is wrong, and how many of how many it were.
const FORKS: &str = r#"
my ($end, $n, $len) = (time + shift, 4000, 16384);
my (@all, @version); my ($checked, $wrong) = (0, 0);
sub text {
    my ($i, $v) = @_;
    pack("VV", $i * 2654435761 % 4294967296, $v * 40503) x ($len / 8)
}
sub bad {
    my @bad = grep { $all[$_] ne text($_, $version[$_]) } @_;
    for my $i (@bad) {
        my $at = unpack "J", pack "p", $all[$i];
        my $what = $all[$i] =~ /^\0*$/ ? "zeros" : "something else";
        printf STDERR "process %d, string %d at %x: %s\n", $$, $i, $at, $what;
    }
    scalar @bad
}
for my $i (0 .. $n - 1) { $version[$i] = 0; $all[$i] = text($i, 0) }
while (time < $end) {
    for (1 .. 500) { my $i = int rand $n; $version[$i]++; $all[$i] = text($i, $version[$i]) }
    my $child = fork; die "fork: $!" unless defined $child;
    if (!$child) {
        my $bad = bad(map { int rand $n } 1 .. 1000);
        require POSIX;
        POSIX::_exit($bad ? 1 : 0)
    }
    for (1 .. 200) { my $i = int rand $n; $version[$i]++; $all[$i] = text($i, $version[$i]) }
    $wrong += bad(map { int rand $n } 1 .. 1000);
    waitpid $child, 0; $wrong++ if $?; $checked += 2000;
}
$wrong += bad(0 .. $n - 1); $checked += $n;
print "$checked $wrong\n";
"#;

pub(super) fn measure(settings: &Settings) -> Result<Vec<Finding>, Error> {
    let minutes = settings.size(settings.minutes, settings.minutes.min(0.05));
    progress(&format!("soak: {minutes} minutes"));
    let long = Duration::from_secs_f64(minutes * 60.0);
    let forking = start_forking(settings, long)?;
    let mapped = mappings(settings, long)?;
    let heap = end_forking(forking)?;
    let finding = |what: &str, (checked, wrong): (u64, u64)| {
        let what = format!("wrong pages of {what} in {minutes} minutes");
        let spread = Spread::of(&[wrong as f64]);
        Finding::new(Section::Soak, what, spread, Target::AtMost(0.0), format!("{checked} checked"))
    };
    let [file, anon] = mapped;
    Ok(vec![finding("a file", file), finding("anonymous memory", anon), finding("a heap", heap)])
}

fn start_forking(settings: &Settings, long: Duration) -> Result<Child, Error> {
    let launch = Launch {
        library: mglru_carried::library()?,
        memory_max: Some(HEAP_MAX),
        heap: Some(ForkPolicy::Serve),
        swap: Some(1 << 30),
        swap_dir: Some(settings.dir.clone()),
        ..Launch::default()
    };
    let refused = |e: &dyn std::fmt::Display| Error::Request(format!("soak: {e}"));
    let mut command: Command = launch.command("perl").map_err(|e| refused(&e))?;
    command.args(["-e", FORKS]).arg(long.as_secs().max(1).to_string()).stdout(Stdio::piped());
    command.spawn().map_err(|e| refused(&e))
}

fn end_forking(child: Child) -> Result<(u64, u64), Error> {
    let done = child.wait_with_output().map_err(|e| Error::Request(format!("soak: perl: {e}")))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    match (done.status.success(), &numbers[..]) {
        (true, &[checked, wrong]) => Ok((checked, wrong)),
        // It died: nothing that it held can be verified.
        _ => Ok((0, u64::MAX)),
    }
}

/// Pages checked and wrong, of the file and of anonymous memory.
fn mappings(settings: &Settings, long: Duration) -> Result<[(u64, u64); 2], Error> {
    let swap = SwapOptions::in_memory(MAX as u64 / 8).with_file_in(&settings.dir, 1 << 30);
    let pager = PagerOptions::new().memory_max(MAX as u64).swap(swap);
    let pager = pager.open().map_err(failed("soak"))?;
    let groups = [group(&pager, "file")?, group(&pager, "anon")?];
    let file = groups[0].share_scratch(&settings.dir, LEN).map_err(failed("soak"))?;
    let anon = groups[1].share_anon(LEN).map_err(failed("soak"))?;
    let (over, maps) = (AtomicBool::new(false), [Checked::new(file), Checked::new(anon)]);
    thread::scope(|scope| {
        for nth in 0..2 * THREADS {
            let (map, over) = (&maps[nth % 2], &over);
            scope.spawn(move || map.rewrite(nth / 2, over));
        }
        change_limits(&groups, long);
        over.store(true, Ordering::Relaxed);
    });
    pager.check().map_err(failed("soak"))?;
    Ok(maps.map(|map| {
        (0..map.words.len() / WORDS).for_each(|page| map.check(page));
        (map.checked.into_inner(), map.wrong.into_inner())
    }))
}

fn group(pager: &Pager, name: &str) -> Result<Group, Error> {
    pager.root().create(name).map_err(failed("soak"))
}

/// Each group gets between a third and half of the pager's memory, again and again: more than
/// what is packed of it takes, which cannot leave.
fn change_limits(groups: &[Group; 2], long: Duration) {
    let (begin, mut numbers) = (Instant::now(), Numbers(1));
    while begin.elapsed() < long {
        for group in groups {
            let bytes = MAX / 3 + numbers.below(MAX / 6);
            group.set_limit(Limit::Max, Some(bytes as u64));
        }
        thread::sleep(CHANGE);
    }
}

/// A mapping, the version of each page, and what was found.
struct Checked {
    words: SharedMapping,
    /// 0 is what the mapping held at first, and not known.
    versions: Vec<AtomicU64>,
    checked: AtomicU64,
    wrong: AtomicU64,
}

impl Checked {
    fn new(words: SharedMapping) -> Self {
        let versions = (0..words.len() / WORDS).map(|_| AtomicU64::new(0)).collect();
        Self { words, versions, checked: AtomicU64::new(0), wrong: AtomicU64::new(0) }
    }

    /// Checks and rewrites the pages of one thread until it is over; of two draws the lower one,
    /// so that some pages are used more than others.
    fn rewrite(&self, nth: usize, over: &AtomicBool) {
        let mut numbers = Numbers(nth as u64 + 1);
        let pages = self.versions.len() / THREADS;
        while !over.load(Ordering::Relaxed) {
            let page = numbers.below(pages).min(numbers.below(pages)) * THREADS + nth;
            self.check(page);
            if numbers.below(2) == 0 {
                self.write(page);
            }
        }
    }

    fn write(&self, page: usize) {
        let version = self.versions[page].fetch_add(1, Ordering::Relaxed) + 1;
        for (at, word) in self.page(page).iter().enumerate() {
            word.store(content(page, version, at), Ordering::Relaxed);
        }
    }

    fn check(&self, page: usize) {
        let version = self.versions[page].load(Ordering::Relaxed);
        if version == 0 {
            return;
        }
        let right = |(at, word): (usize, &AtomicU64)| {
            word.load(Ordering::Relaxed) == content(page, version, at)
        };
        let wrong = !self.page(page).iter().enumerate().all(right);
        self.wrong.fetch_add(wrong.into(), Ordering::Relaxed);
        self.checked.fetch_add(1, Ordering::Relaxed);
    }

    fn page(&self, page: usize) -> &[AtomicU64] {
        &self.words[page * WORDS..][..WORDS]
    }
}

/// A word; every eighth is new, so that pages pack a little.
fn content(page: usize, version: u64, at: usize) -> u64 {
    let seed = (page as u64) << 32 ^ version;
    (seed ^ (at as u64 / 8) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_word_is_a_wrong_page() {
        if super::super::lacks_nothing().is_err() {
            println!("skipped: no live pager here");
            return;
        }
        let pager = PagerOptions::new().memory_max(8 << 20).open().unwrap();
        let map = Checked::new(pager.root().share_anon(MIB).unwrap());
        map.write(3);
        map.check(3);
        map.check(4);
        assert_eq!(
            (map.checked.load(Ordering::Relaxed), map.wrong.load(Ordering::Relaxed)),
            (1, 0)
        );
        map.page(3)[100].fetch_xor(1, Ordering::Relaxed);
        map.check(3);
        assert_eq!(map.wrong.load(Ordering::Relaxed), 1);
    }
}
