//! `mglru exec --trace-events`: what a program's pager reclaims, in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::Command;

use mglru_lab::trace_events::{Owned, fields, parse};

use crate::exec::{exec, lacking};

/// Stores to three times the budget, twice, and asks the pager how much it reclaimed once it rests;
/// prints that and when it was, ns.
const PROGRAM: &str = "
import os, socket, time
held = [bytearray(os.urandom(1 << 20)) for _ in range(48)]
for block in held:
    block[::4096] = bytes(256)
pager = socket.socket(socket.AF_UNIX)
pager.connect('\\0' + os.environ['MGLRU_CONTROL'] + '/' + str(os.getpid()))
def stolen():
    pager.sendall(b'get\\t/\\tmemory.stat\\n')
    words = pager.recv(1 << 16).split()
    return int(words[words.index(b'pgsteal') + 1])
before, now = -1, stolen()
while before != now:
    time.sleep(0.1)
    before, now = now, stolen()
print(now, time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
";

/// The interpreter itself: `python3` may be a script that runs several processes before. `None`,
/// with the reason printed: there is none, or no pager.
fn python() -> Option<String> {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let path = asked.ok().map(|asked| String::from_utf8_lossy(&asked.stdout).trim().to_string());
    let python = path.filter(|path| !lacking() && !path.is_empty());
    if python.is_none() {
        println!("skipped: needs the pager, libjemalloc2 and python3");
    }
    python
}

/// Runs a program under 16 MiB with its events in a file of this name. Returns its status, what it
/// printed, what `mglru exec` said, and the file.
fn traced(
    name: &str,
    options: &[&str],
    program: &[&str],
) -> (Option<i32>, String, String, Option<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let file = path.display().to_string();
    let ours = ["--memory.max", "16M", "--swap-dir", ".", "--trace-events", &file];
    // Room for what comes in while guests of other tests have the processors.
    let roomy = ["--trace-slots", "32768"];
    let options = if options.is_empty() { &roomy[..] } else { options };
    let (status, out, said) = exec(&[&ours, options, &["--"], program].concat());
    // Another line says what lay outside of the budget, if that was seen.
    let about_events = |line: &&str| line.contains(": trace events: ");
    let said = said.lines().filter(about_events).collect::<Vec<_>>().join("\n");
    let said = said.replace(&format!("{}/", folder.path().display()), "");
    (status, out, said, std::fs::read(path).ok())
}

fn text(file: Option<Vec<u8>>) -> String {
    String::from_utf8(file.expect("there is a file")).unwrap()
}

/// Every line that is no comment is an event.
fn events(text: &str) -> Vec<Owned> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).unwrap_or_else(|| panic!("no event: {line}"))).collect()
}

fn field(event: &Owned, name: &str) -> u64 {
    let mut all = fields(&event.fields);
    let value = all.find_map(|(key, value)| (key == name).then(|| value.parse().ok())?);
    value.unwrap_or_else(|| panic!("{name} in {event:?}"))
}

fn reclaimed<'a>(events: impl Iterator<Item = &'a Owned>) -> u64 {
    let shrinks = events.filter(|event| event.name == "mm_vmscan_lru_shrink_inactive");
    shrinks.map(|event| field(event, "nr_reclaimed")).sum()
}

#[test]
fn events_add_up_to_what_the_pager_reclaimed() {
    let Some(python) = python() else { return };
    let (status, out, said, file) = traced("t.txt", &[], &[&python, "-c", PROGRAM]);
    let text = text(file);
    let events = events(&text);
    let n = events.len();
    let line = format!("mglru exec: trace events: t.txt: {n} events");
    assert_eq!((status, said), (Some(0), line));
    let (stolen, at) = out.split_once(' ').unwrap();
    let (stolen, at): (u64, u64) = (stolen.parse().unwrap(), at.parse().unwrap());
    assert!(stolen > 32 << 8, "{stolen} pages: more than the budget does not hold");
    assert_eq!(reclaimed(events.iter().filter(|event| event.at <= at)), stolen);
    let mut counts = BTreeMap::<&str, u64>::new();
    events.iter().for_each(|event| *counts.entry(&event.name).or_default() += 1);
    for name in ["mm_vmscan_lru_isolate", "mglru_new_generation"] {
        assert!(counts.contains_key(name), "{counts:?}");
    }
    assert!(events.iter().all(|event| event.comm == "mglru-policy"));
    assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert!(text.ends_with(&format!("\n# entries-in-buffer/entries-written: {n}/{n}\n")));
}

#[test]
fn what_finds_no_room_is_counted_and_the_program_goes_on() {
    let Some(python) = python() else { return };
    let small = ["--trace-slots", "4"];
    let program = format!("{PROGRAM}raise SystemExit(7)");
    let (status, out, said, file) = traced("t.txt", &small, &[&python, "-c", &program]);
    let text = text(file);
    let events = events(&text);
    let start = format!("mglru exec: trace events: t.txt: {} events, ", events.len());
    let lost = said.strip_prefix(&start).unwrap_or_else(|| panic!("{said}"));
    let lost = lost.strip_suffix(" lost: their buffer was full").unwrap();
    assert!(lost.parse::<u64>().unwrap() > 10, "{said}");
    assert_eq!(status, Some(7));
    assert!(text.ends_with(&format!("\n# {lost} events were lost: their buffer was full\n")));
    let stolen: u64 = out.split(' ').next().unwrap().parse().unwrap();
    assert!(reclaimed(events.iter()) < stolen);
}

/// A field of a protocol buffer: its number, and a number or bytes.
type Field<'a> = (u64, u64, &'a [u8]);

/// Takes a message apart.
fn message(mut bytes: &[u8]) -> Vec<Field<'_>> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for nth in 0.. {
            let mut byte = [0];
            bytes.read_exact(&mut byte).expect("a whole number");
            value |= u64::from(byte[0] & 0x7f) << (7 * nth);
            if byte[0] < 0x80 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (key, value) = (varint(&mut bytes), varint(&mut bytes));
        let len = if key & 7 == 2 { value as usize } else { 0 };
        let (content, rest) = bytes.split_at(len);
        fields.push((key >> 3, value, content));
        bytes = rest;
    }
    fields
}

fn of(message: &[Field<'_>], field: u64) -> Option<u64> {
    message.iter().find(|(number, ..)| *number == field).map(|(_, value, _)| *value)
}

/// Field numbers are Perfetto's: of a packet 11 is an event and 34 are the statistics of ftrace.
#[test]
fn a_perfetto_trace_has_the_same_events_and_what_was_lost() {
    let Some(python) = python() else { return };
    for (slots, loses) in [("4096", false), ("4", true)] {
        let options = ["--trace-slots", slots];
        let (status, _, said, file) = traced("t.pftrace", &options, &[&python, "-c", PROGRAM]);
        assert_eq!(status, Some(0), "{said}");
        let file = file.unwrap();
        let packets: Vec<_> =
            message(&file).iter().map(|(_, _, content)| message(content)).collect();
        let events = packets.iter().filter(|packet| of(packet, 11).is_some()).count();
        let start = format!("mglru exec: trace events: t.pftrace: {events} events");
        let rest = said.strip_prefix(&start).unwrap_or_else(|| panic!("{events}: {said}"));
        let inner = |message: &[Field<'_>], field: u64| {
            let (.., content) = *message.iter().find(|(number, ..)| *number == field).unwrap();
            content.to_vec()
        };
        let stats = inner(packets.last().unwrap(), 34);
        let of_buffer = inner(&message(&stats), 2);
        let dropped = of(&message(&of_buffer), 8).unwrap();
        assert_eq!(dropped > 0, loses, "{said}");
        let lost = format!(", {dropped} lost: their buffer was full");
        assert_eq!(rest, if loses { lost.as_str() } else { "" });
    }
}

#[test]
fn a_place_where_no_file_can_be_is_refused_before_anything_runs() {
    if lacking() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (file, why) in [
        (at("none/t.txt"), "No such file or directory"),
        (at(""), "Is a directory"),
        ("/dev/full".to_string(), "No space left on device"),
    ] {
        let (status, out, said) = exec(&["--trace-events", &file, "--", "echo", "ran"]);
        assert_eq!((status, out.as_str(), said.lines().count()), (Some(2), "", 1), "{said}");
        assert!(said.starts_with(&format!("mglru: error: {file}: {why}")), "{said}");
    }
}

/// The reader of the pipe closes it after the first bytes, so that later writes fail.
#[test]
fn a_file_that_fails_later_is_said_at_the_end_and_the_status_is_the_programs() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let pipe = path.clone();
    let reader = std::thread::spawn(move || {
        std::fs::File::open(pipe).unwrap().read_exact(&mut [0; 16]).unwrap();
    });
    let file = path.display().to_string();
    let program = format!("{PROGRAM}raise SystemExit(7)");
    let ours = ["--memory.max", "16M", "--trace-events", &file, "--", &python, "-c", &program];
    let (status, _, said) = exec(&ours);
    reader.join().unwrap();
    let right = format!("mglru exec: --trace-events: {file}: Broken pipe (os error 32)");
    assert_eq!((status, said), (Some(7), right));
    assert!(path.exists(), "a pipe is nobody's to remove");
}

/// The program has neither a descriptor nor a child that it does not know.
#[test]
fn the_program_sees_nothing_of_it() {
    let Some(python) = python() else { return };
    const LOOKS: &str = "
import os
print(sorted(os.listdir('/proc/self/fd'), key=int))
try: print(os.wait())
except ChildProcessError: print('no child')";
    let program = [python.as_str(), "-c", LOOKS];
    let (_, plain, _) = exec(&[&["--memory.max", "16M", "--"], &program[..]].concat());
    let (status, out, said, _) = traced("t.txt", &[], &program);
    assert_eq!((status, &out), (Some(0), &plain), "{said}");
    assert!(out.ends_with("no child"), "{out}");
}

/// Processes below that have a pager have a ring each; a forked child has none, and goes on.
#[test]
fn processes_below_are_traced_too() {
    let Some(python) = python() else { return };
    let forks = format!(
        "{PROGRAM}
pid = os.fork()
if pid == 0: os._exit(sum(block[0] for block in held) & 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == sum(b[0] for b in held) & 1)"
    );
    let shell = r#""$0" -c "$1"; "$0" -c "$1"; exec "$0" -c 'raise SystemExit(3)'"#;
    let (status, out, said, file) = traced("t.txt", &[], &["sh", "-c", shell, &python, &forks]);
    assert_eq!((status, out.matches("True").count()), (Some(3), 2), "{out}\n{said}");
    let events = events(&text(file));
    let right = format!("mglru exec: trace events: t.txt: {} events of 4 processes", events.len());
    assert_eq!(said, right);
    let threads: BTreeSet<u32> = events.iter().map(|event| event.pid).collect();
    assert!(threads.len() >= 2, "{threads:?}");
    let stolen = out.lines().filter_map(|line| line.split_once(' ')?.0.parse::<u64>().ok());
    assert!(reclaimed(events.iter()) >= stolen.sum());
}

#[test]
fn the_file_is_whole_when_the_program_is_killed() {
    let Some(python) = python() else { return };
    let killed = format!("{PROGRAM}os.kill(os.getpid(), 9)");
    let (status, _, said, file) = traced("t.txt", &[], &[&python, "-c", &killed]);
    let text = text(file);
    let n = events(&text).len();
    assert_eq!((status, said), (None, format!("mglru exec: trace events: t.txt: {n} events")));
    assert!(text.ends_with(&format!("\n# entries-in-buffer/entries-written: {n}/{n}\n")), "{n}");
    assert!(!Path::new("t.txt").exists());
}
