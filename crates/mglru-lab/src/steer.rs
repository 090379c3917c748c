//! Running pagers from outside: where their sockets are, which one is meant, and what is made of
//! what they answer.

pub mod background;
pub mod cgroupfs;
pub mod exposition;
pub mod http;
pub mod sample;
pub mod top;
pub mod what_if;

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use mglru_pager::control::{Client, ControlError, is_stale};
use mglru_pager::launch::{ENV_CONTROL, socket_of};

use crate::error::Error;

/// A pager that runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Running {
    /// Its process; unknown of a socket that was named.
    pub pid: Option<u32>,
    /// What the process is called.
    pub name: String,
    /// Where it answers.
    pub socket: PathBuf,
}

impl Running {
    fn of_pid(pid: u32, socket: PathBuf) -> Self {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Self { pid: Some(pid), name: comm.trim().to_string(), socket }
    }

    /// Calls it.
    ///
    /// # Errors
    /// It does not answer.
    pub fn call(&self) -> Result<Client, Error> {
        Client::connect(&self.socket).map_err(|error| told(&self.socket, &error))
    }
}

/// A pager's refusal as this program's.
pub fn told(what: impl AsRef<Path>, error: &ControlError) -> Error {
    Error::Request(format!("{}: {error}", what.as_ref().display()))
}

/// The folder for sockets: named in the environment, or this user's own of those made anew with
/// every boot.
pub fn folder() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let uid = rustix::process::getuid();
    named(ENV_CONTROL)
        .or_else(|| named("XDG_RUNTIME_DIR").map(|folder| folder.join("mglru")))
        .or_else(|| uid.is_root().then(|| PathBuf::from("/run/mglru")))
        .unwrap_or_else(|| std::env::temp_dir().join(format!("mglru-{}", uid.as_raw())))
}

/// Makes the folder, for this user alone: who can open a socket may steer the program.
///
/// # Errors
/// It cannot be made, or others can get in.
pub fn make_folder(folder: &Path) -> Result<(), Error> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::io(folder, error))?;
    let meta = std::fs::metadata(folder).map_err(|error| Error::io(folder, error))?;
    let own = meta.uid() == rustix::process::getuid().as_raw() && meta.mode() & 0o022 == 0;
    let others = || format!("{}: others can write to the folder for sockets", folder.display());
    if own { Ok(()) } else { Err(Error::Request(others())) }
}

/// The pagers that run, by process. Sockets that nobody answers any more are taken away.
pub fn running() -> Vec<Running> {
    let folder = folder();
    let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = names.filter_map(|entry| pid_of(&entry.path())).collect();
    pids.sort_unstable();
    let sockets = pids.into_iter().map(|pid| (pid, socket_of(&folder, pid)));
    sockets.filter(|(_, socket)| is_alive(socket)).map(|(p, s)| Running::of_pid(p, s)).collect()
}

fn pid_of(socket: &Path) -> Option<u32> {
    socket.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
}

fn is_alive(socket: &Path) -> bool {
    let stale = is_stale(socket);
    if stale {
        // Somebody else may have done so.
        let _ = std::fs::remove_file(socket);
    }
    !stale
}

/// Which pager is meant.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Choice {
    /// The pager of this process
    #[arg(long, value_name = "N", global = true)]
    pub pid: Option<u32>,
    /// The pager that answers at this socket
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "pid")]
    pub socket: Option<PathBuf>,
}

impl Choice {
    /// Was one named?
    pub fn is_named(&self) -> bool {
        self.pid.is_some() || self.socket.is_some()
    }

    /// The one that was named, or the only one.
    ///
    /// # Errors
    /// None runs, or several do.
    pub fn one(&self) -> Result<Running, Error> {
        if let Some(socket) = &self.socket {
            return Ok(Running { pid: None, name: String::new(), socket: socket.clone() });
        }
        if let Some(pid) = self.pid {
            return Ok(Running::of_pid(pid, socket_of(&folder(), pid)));
        }
        only(running(), &folder())
    }
}

fn only(mut running: Vec<Running>, folder: &Path) -> Result<Running, Error> {
    match (running.pop(), running.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => {
            Err(Error::Request(format!("no pager runs (none answers in {})", folder.display())))
        }
        (Some(last), _) => {
            running.push(last);
            let name = |r: &Running| format!("{} ({})", r.pid.unwrap_or(0), r.name);
            let names: Vec<String> = running.iter().map(name).collect();
            let names = names.join(", ");
            Err(Error::Request(format!("several pagers run: {names}; choose one with --pid")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pager_needs_no_name_and_several_do() {
        let running = |pid: u32| Running {
            pid: Some(pid),
            name: "redis".into(),
            socket: socket_of(Path::new("/x"), pid),
        };
        let only = |pids: &[u32]| {
            let all = pids.iter().map(|&pid| running(pid)).collect();
            super::only(all, Path::new("/x")).map_err(|error| error.to_string())
        };
        assert_eq!(only(&[7]), Ok(running(7)));
        assert_eq!(only(&[]).unwrap_err(), "no pager runs (none answers in /x)");
        let several = "several pagers run: 7 (redis), 9 (redis); choose one with --pid";
        assert_eq!(only(&[7, 9]).unwrap_err(), several);
        assert_eq!(pid_of(&running(7).socket), Some(7));
        assert_eq!(pid_of(Path::new("/x/7.lock")), None);
    }

    #[test]
    fn a_folder_that_others_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        make_folder(&inner).unwrap();
        assert_eq!(std::fs::metadata(&inner).unwrap().mode() & 0o777, 0o700);
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&inner, open).unwrap();
        assert!(make_folder(&inner).is_err());
    }
}
