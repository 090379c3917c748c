//! A memory cgroup of the host, of either version, that a program is started in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mglru_error::Error;

/// Where version 1 has its memory controller, and version 2 everything.
const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";

/// A cgroup; it goes when this is dropped.
pub(super) struct KernelGroup {
    path: PathBuf,
    join: &'static str,
}

impl KernelGroup {
    /// A group with so many bytes.
    pub(super) fn new(bytes: usize) -> Result<Self, Error> {
        let v1 = Path::new(V1).join("memory.limit_in_bytes").is_file();
        let (root, limit, join) = match v1 {
            true => (V1, "memory.limit_in_bytes", "tasks"),
            false => (V2, "memory.max", "cgroup.procs"),
        };
        let path = Path::new(root).join(format!("mglru-measure-{}", std::process::id()));
        let refused = |e: std::io::Error| {
            Error::Request(format!(
                "{}: {e} (needs root and the memory controller)",
                path.display()
            ))
        };
        fs::create_dir_all(&path).map_err(refused)?;
        let group = Self { path: path.clone(), join };
        fs::write(path.join(limit), bytes.to_string()).map_err(refused)?;
        Ok(group)
    }

    /// The command, started in the group.
    pub(super) fn run(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.arg("-c").arg("echo $$ > \"$0\" && exec \"$@\"").arg(self.path.join(self.join));
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            value.map(|value| inside.env(name, value));
        }
        inside
    }
}

impl Drop for KernelGroup {
    fn drop(&mut self) {
        // Its processes have ended; what stays behind is empty.
        let _ = fs::remove_dir(&self.path);
    }
}
