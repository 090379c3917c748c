//! `kill -9` at any point: a mapped file is left as a page cache could have left it after a crash
//! of the program. What was flushed is there, and nothing that was never stored.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use mglru_pager::Map;

use crate::{MIB, PAGE, content, pager, pattern};

const FILE: &str = "MGLRU_PAGER_KILLED_FILE";
const PAGES: usize = 3072;

/// In the child: whole pages of ever newer versions, flushed after each round. It says which
/// version it begins to store, and which is durable.
fn store_for_ever(path: &std::ffi::OsStr) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let Some(pager) = pager(6 * MIB) else { return };
    // SAFETY: nobody else has the file while this process lives.
    let mut map = unsafe { pager.root().map(Map::file_mut(&file).unwrap()) }.unwrap();
    let say = |what: &str, version: u32| {
        let mut out = std::io::stdout();
        writeln!(out, "{what} {version}").and_then(|()| out.flush()).unwrap();
    };
    for version in 1.. {
        say("stores", version);
        for page in 0..PAGES {
            map[page * PAGE..][..PAGE].copy_from_slice(&pattern(page, version));
        }
        map.flush().unwrap();
        say("flushed", version);
    }
}

/// Reads what the child says until `after` lines, and a little longer.
fn last_said(out: impl std::io::Read, after: usize, kill: impl FnOnce()) -> (u32, u32) {
    let (mut flushed, mut begun, mut kill) = (0, 0, Some(kill));
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    let reports = lines.filter_map(|line| {
        let (what, version) = line.rsplit_once(' ')?;
        Some((what.ends_with("flushed"), what.ends_with("stores"), version.parse().ok()?))
    });
    for (nth, (is_flushed, is_begun, version)) in reports.enumerate() {
        if is_flushed {
            flushed = version;
        } else if is_begun {
            begun = version;
        }
        if nth + 1 >= after {
            kill.take().into_iter().for_each(|kill| kill());
        }
    }
    (flushed, begun)
}

#[test]
fn a_killed_program_leaves_what_a_page_cache_could_have_left() {
    if let Some(path) = std::env::var_os(FILE) {
        return store_for_ever(&path);
    }
    if pager(6 * MIB).is_none() {
        return;
    }
    for round in 0..4u64 {
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.as_file().set_len((PAGES * PAGE) as u64).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        let test = "killed::a_killed_program_leaves_what_a_page_cache_could_have_left";
        child.args(["--exact", test, "--nocapture"]).env(FILE, file.path());
        let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
        let (out, pid) = (child.stdout.take().unwrap(), child.id() as libc::pid_t);
        let (flushed, begun) = last_said(out, 2 + round as usize, || {
            std::thread::sleep(Duration::from_millis(round * 7));
            // SAFETY: ends the child of this test, which was not waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        });
        child.wait().unwrap();
        assert!(begun >= 1, "it stored nothing");
        check(&content(file.as_file()), flushed, begun);
    }
}

/// Each word is of a version that may be there: a page may be caught half stored.
fn check(content: &[u8], flushed: u32, begun: u32) {
    for (nth, page) in content.chunks(PAGE).enumerate() {
        let versions: Vec<Vec<u8>> = (flushed..=begun).map(|v| version(nth, v)).collect();
        for at in (0..PAGE).step_by(4) {
            let known = versions.iter().any(|version| version[at..][..4] == page[at..][..4]);
            assert!(known, "page {nth} at {at}: neither of {flushed} nor up to {begun}");
        }
    }
}

/// Before the first there were zeros.
fn version(page: usize, version: u32) -> Vec<u8> {
    if version == 0 { vec![0; PAGE] } else { pattern(page, version) }
}
