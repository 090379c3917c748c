//! Running pagers from outside: where their sockets are, which one is meant, and what is made of
//! what they answer.

pub mod background;
pub mod cgroupfs;
pub mod exposition;
pub mod hold;
pub mod http;
pub mod sample;
pub mod top;
pub mod what_if;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mglru_pager::control::{Client, ControlError};
use mglru_pager::launch::{ENV_CONTROL, socket_of};

use mglru_error::Error;

/// Describes a pager that runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Running {
    /// Numbers its process; unknown of a socket that was named.
    pub pid: Option<u32>,
    /// Names its process.
    pub name: String,
    /// Holds the path of its socket.
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
        Client::connect(&self.socket).map_err(|error| self.absent(&error))
    }

    /// Says that no pager runs where nobody listens.
    fn absent(&self, error: &ControlError) -> Error {
        match (error, self.pid) {
            (ControlError::Io(error), Some(pid))
                if error.kind() == std::io::ErrorKind::ConnectionRefused =>
            {
                Error::Request(format!("no pager runs in process {pid}; `mglru ctl ls` lists them"))
            }
            _ => refused(&self.socket, error),
        }
    }
}

/// Turns a pager's refusal into this program's error.
pub fn refused(what: impl AsRef<Path>, error: &ControlError) -> Error {
    Error::Request(format!("{}: {error}", what.as_ref().display()))
}

/// Begins the names of this user's sockets, unless the environment says otherwise. Names
/// are abstract: no folder is made that others might have made first, and none is left behind.
pub fn prefix() -> PathBuf {
    let named = std::env::var_os(ENV_CONTROL).filter(|prefix| !prefix.is_empty());
    let own = || format!("mglru/{}", rustix::process::geteuid().as_raw()).into();
    named.map_or_else(own, PathBuf::from)
}

/// Lists the pagers that run and may be asked, by process.
pub fn running() -> Vec<Running> {
    let prefix = prefix();
    let names = std::fs::read("/proc/net/unix").unwrap_or_default();
    let pids = pids(&String::from_utf8_lossy(&names), &prefix);
    let sockets = pids.into_iter().map(|pid| (pid, socket_of(&prefix, pid)));
    let answers = |(_, socket): &(u32, PathBuf)| Client::connect(socket).is_ok();
    sockets.filter(answers).map(|(pid, socket)| Running::of_pid(pid, socket)).collect()
}

/// The processes that have sockets with this prefix, from the kernel's list of sockets. A name is
/// there once more for each connection.
fn pids(list: &str, prefix: &Path) -> BTreeSet<u32> {
    let start = format!("@{}/", prefix.display());
    let pid = |line: &str| line.split_once(&start)?.1.parse().ok();
    list.lines().filter_map(pid).collect()
}

/// Selects a pager.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Choice {
    /// Select the pager of this process
    #[arg(long, value_name = "N", global = true)]
    pub pid: Option<u32>,
    /// Select the pager that answers at this socket
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "pid")]
    pub socket: Option<PathBuf>,
}

impl Choice {
    /// Says whether one was named.
    pub fn is_named(&self) -> bool {
        self.pid.is_some() || self.socket.is_some()
    }

    /// Returns the pager that was named, or the only one.
    ///
    /// # Errors
    /// None runs, or several do.
    pub fn one(&self) -> Result<Running, Error> {
        if let Some(socket) = &self.socket {
            return Ok(Running { pid: None, name: String::new(), socket: socket.clone() });
        }
        if let Some(pid) = self.pid {
            return Ok(Running::of_pid(pid, socket_of(&prefix(), pid)));
        }
        only(running(), &prefix())
    }
}

fn only(mut running: Vec<Running>, prefix: &Path) -> Result<Running, Error> {
    match (running.pop(), running.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(Error::Request(format!(
            "no pager runs (none answers at @{}/PID)",
            prefix.display()
        ))),
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
        assert_eq!(only(&[]).unwrap_err(), "no pager runs (none answers at @/x/PID)");
        let several = "several pagers run: 7 (redis), 9 (redis); choose one with --pid";
        assert_eq!(only(&[7, 9]).unwrap_err(), several);
    }

    #[test]
    fn sockets_are_recognised_by_their_names() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff: 00000002 00000000 00010000 0001 01 11 @/x/7\n\
            ffff: 00000003 00000000 00000000 0001 03 12 @/x/7\n\
            ffff: 00000002 00000000 00010000 0001 01 13 @/x/y/8\n\
            ffff: 00000002 00000000 00010000 0001 01 14 /x/9\n\
            ffff: 00000002 00000000 00010000 0001 01 15 @/xx/10\n\
            ffff: 00000002 00000000 00010000 0001 01 16 @/x/11\n";
        assert_eq!(pids(list, Path::new("/x")), BTreeSet::from([7, 11]));
    }
}
