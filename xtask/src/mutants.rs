//! Do the tests bite? Each named edit breaks one rule in a copy of a crate; the crate's own tests
//! must notice. An edit whose text is not found is an error: the source has moved on and the table
//! must follow.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

mod edits;
mod pager_edits;
mod subject;

use edits::Edit;
use subject::Subject;

/// A broken rule may make a test run for ever.
const LIMIT: Duration = Duration::from_secs(120);

/// How often tests may miss an edit: those of races notice a broken rule mostly, not always.
const TRIES: usize = 3;

/// Says what the tests made of an edit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// A test failed.
    Caught,
    /// All tests passed.
    Survived,
    /// It does not compile.
    Broken,
    /// The tests did not end in time.
    Endless,
}

/// Tells whether the unchanged crates passed and every edit was caught: of all crates, or of the
/// one of a name.
pub fn passes(root: &Path, only: &str) -> bool {
    let subjects = Subject::all(root);
    let wanted = |subject: &&Subject| only.is_empty() || subject.name == only;
    let failed: Vec<_> = subjects.iter().filter(wanted).map(try_all).collect();
    if failed.is_empty() {
        eprintln!("mutants: no crate {only}");
        return false;
    }
    failed.into_iter().all(|failed| match failed {
        Ok(failed) => failed == 0,
        Err(error) => {
            eprintln!("mutants: {error}");
            false
        }
    })
}

fn try_all(subject: &Subject) -> Result<usize, String> {
    for edit in subject.edits {
        mutated(subject, edit)?;
    }
    subject.copy()?;
    if !subject.runs()? {
        println!("skipped: mutants of {}, whose tests do nothing here", subject.name);
        return Ok(0);
    }
    let mut failed = 0;
    println!("{:10} {:>6}  edit of {}", "verdict", "s", subject.name);
    for edit in subject.edits {
        let start = Instant::now();
        let verdict = try_edit(subject, edit)?;
        let passed = matches!(verdict, Verdict::Caught | Verdict::Endless);
        failed += usize::from(!passed);
        println!("{:10} {:6.1}  {}", name(verdict), start.elapsed().as_secs_f32(), edit.says);
    }
    println!("{} passed, {failed} failed", subject.edits.len() - failed);
    Ok(failed)
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Caught => "caught",
        Verdict::Survived => "SURVIVED",
        Verdict::Broken => "BROKEN",
        Verdict::Endless => "endless",
    }
}

/// The edited text of the file.
fn mutated(subject: &Subject, edit: &Edit) -> Result<String, String> {
    let path = subject.source.join(edit.file);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    match text.matches(edit.text).count() {
        1 => Ok(text.replace(edit.text, edit.replacement)),
        0 => Err(format!("{}: text of \"{}\" not found", path.display(), edit.says)),
        n => Err(format!("{}: text of \"{}\" found {n} times", path.display(), edit.says)),
    }
}

fn try_edit(subject: &Subject, edit: &Edit) -> Result<Verdict, String> {
    let path = subject.copied.join(edit.file);
    let original = fs::read_to_string(subject.source.join(edit.file))
        .map_err(|e| format!("{}: {e}", edit.file))?;
    subject::write(&path, &mutated(subject, edit)?)?;
    let verdict = test(subject, edit.by);
    subject::write(&path, &original)?;
    verdict
}

fn test(subject: &Subject, by: &[&str]) -> Result<Verdict, String> {
    let fail = |e: std::io::Error| format!("cargo: {e}");
    if !subject.cargo().arg("--no-run").status().map_err(fail)?.success() {
        return Ok(Verdict::Broken);
    }
    let once = || {
        let mut child = subject.cargo().arg("--").args(by).spawn()?;
        ended(&mut child)
    };
    let missed = |verdict: &std::io::Result<Verdict>| matches!(verdict, Ok(Verdict::Survived));
    let mut tries = (0..TRIES).map(|_| once()).skip_while(missed);
    tries.next().unwrap_or(Ok(Verdict::Survived)).map_err(fail)
}

fn ended(child: &mut Child) -> std::io::Result<Verdict> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Verdict::Survived } else { Verdict::Caught });
        }
        if start.elapsed() > LIMIT {
            child.kill().and_then(|()| child.wait())?;
            return Ok(Verdict::Endless);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edit_finds_its_text() {
        for subject in Subject::all(&crate::root()) {
            for edit in subject.edits {
                let found = mutated(&subject, edit);
                assert!(found.is_ok(), "{}", found.err().unwrap_or_default());
            }
        }
    }
}
