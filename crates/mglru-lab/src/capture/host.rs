//! Takes captures on this host: `/proc/vmstat`, stall times, a group's files and the generation
//! table where the kernel has it, in the form of `tail -n +1 FILE…` with a line of time above.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use mglru_error::Error;

/// Files of the machine.
const OF_MACHINE: [&str; 4] = [
    "/proc/vmstat",
    "/proc/pressure/memory",
    "/proc/pressure/io",
    "/sys/kernel/debug/lru_gen_full",
];
/// Files of a group; some kernels lack some.
const OF_GROUP: [&str; 7] = [
    "memory.stat",
    "memory.current",
    "memory.swap.current",
    "memory.events",
    "memory.pressure",
    "io.pressure",
    "memory.usage_in_bytes",
];
/// Where groups are, unless a path says.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"];
/// How often an end of the command is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// Lists the files that are read at each moment.
#[derive(Clone, Debug)]
pub struct Host {
    files: Vec<PathBuf>,
}

/// Describes how a capture ended.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Counts the samples in the file.
    pub samples: usize,
    /// Holds the status of the command, if there was one.
    pub status: Option<ExitStatus>,
}

impl Host {
    /// Finds what can be read, `group` among it: a path, or one below where groups are.
    ///
    /// # Errors
    /// There is no such group.
    pub fn new(group: Option<&Path>) -> Result<Self, Error> {
        let mut files: Vec<PathBuf> = OF_MACHINE.iter().map(PathBuf::from).collect();
        if let Some(group) = group {
            let below =
                |root: &&str| Path::new(root).join(group.strip_prefix("/").unwrap_or(group));
            let places = [group.to_path_buf()].into_iter().chain(GROUPS.iter().map(below));
            let found = places.into_iter().find(|place| place.join("memory.stat").exists());
            let problem = || format!("--group {}: no such group of memory", group.display());
            let found = found.ok_or_else(|| Error::Request(problem()))?;
            files.extend(OF_GROUP.iter().map(|file| found.join(file)));
        }
        files.retain(|file| fs::read(file).is_ok());
        Ok(Self { files })
    }

    /// Reads everything now. A group that is gone has no more figures.
    fn sample(&self, at: Duration) -> String {
        let mut text = format!("time: {:.3}\n", at.as_secs_f64());
        for file in &self.files {
            if let Ok(read) = fs::read_to_string(file) {
                text += &format!("==> {} <==\n{}\n", file.display(), read.trim_end());
            }
        }
        text + "\n"
    }
}

/// Writes a sample now, one each `every`, and one at the end: of the command, after `at_most`, or
/// when `is_over` says so, which is asked every 10 ms.
///
/// # Errors
/// The file cannot be written, or the command not be waited for.
pub fn take(
    host: &Host,
    out: &mut dyn Write,
    every: Option<Duration>,
    at_most: Option<Duration>,
    mut command: Option<Child>,
    mut is_over: impl FnMut(Option<&Child>) -> bool,
) -> std::io::Result<Taken> {
    let (start, mut samples, mut due) = (Instant::now(), 0, every);
    let mut write = |at: Duration, samples: &mut usize| {
        *samples += 1;
        out.write_all(host.sample(at).as_bytes()).and_then(|()| out.flush())
    };
    write(Duration::ZERO, &mut samples)?;
    loop {
        std::thread::sleep(LOOK.min(every.unwrap_or(LOOK)));
        let status = command.as_mut().map(Child::try_wait).transpose()?.flatten();
        let at = start.elapsed();
        let is_late = at_most.is_some_and(|most| at >= most);
        if status.is_some() || is_late || is_over(command.as_ref()) {
            write(at, &mut samples)?;
            return Ok(Taken { samples, status });
        }
        if let (Some(when), Some(every)) = (due, every)
            && at >= when
        {
            write(at, &mut samples)?;
            due = Some((when + every).max(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Capture;
    use super::*;

    #[test]
    fn a_command_is_captured_from_its_start_to_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let host = Host::new(None).unwrap();
        let command = std::process::Command::new("sleep").arg("0.3").spawn().unwrap();
        let every = Some(Duration::from_millis(100));
        let mut out = file.reopen().unwrap();
        let taken = take(&host, &mut out, every, None, Some(command), |_| false).unwrap();
        assert!(taken.status.is_some_and(|status| status.success()));
        let figures = Capture::load(file.path()).unwrap().figures();
        assert!(taken.samples >= 3, "{}", taken.samples);
        assert!(figures["seconds"] >= 0.3 && figures["pgfault"] > 0.0, "{figures:?}");
        assert!(figures["nr_free_pages"] > 0.0);
    }

    #[test]
    fn a_group_that_is_not_there_is_named() {
        let message = Host::new(Some(Path::new("/no/such"))).unwrap_err().to_string();
        assert_eq!(message, "--group /no/such: no such group of memory");
    }
}
