//! Starts a program under the translator, with the plugin.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use mglru_error::Error;
use mglru_qemu::elf;

/// The translator of programs for x86-64.
const TRANSLATOR: &str = "qemu-x86_64";
/// Starts a program whose addresses are the same each time.
const SETARCH: &str = "setarch";

/// Bytes of a file that say what it is.
const HEAD: u64 = 20;

/// Starts the program; it sends to the socket. The plugin is written to the folder.
///
/// # Errors
/// The translator or the program is missing, or the folder cannot be written to.
pub(crate) fn start(
    command: &[OsString],
    folder: &Path,
    socket: &str,
    window: u32,
) -> Result<Child, Error> {
    let translator = found(TRANSLATOR).ok_or_else(|| {
        let mend = "apt install qemu-user, or mglru doctor --install";
        Error::Request(format!("{TRANSLATOR} is missing: {mend}"))
    })?;
    let (name, args) = command.split_first().expect("the command asks for a program");
    let program = resolved(name)?;
    let library = folder.join("libmglru_record.so");
    fs::write(&library, mglru_qemu::PROGRAM).map_err(|e| Error::io(&library, e))?;
    let plugin = format!("{},socket={socket},window={window},now=0", library.display());
    let mut command = Command::new(SETARCH);
    command.args(["--addr-no-randomize".as_ref(), translator.as_os_str()]);
    command.args(["-seed", "1", "-plugin", &plugin, "-0"]).arg(name);
    command.arg(program).args(args);
    command.spawn().map_err(|e| Error::Request(format!("{SETARCH}: {e}")))
}

/// Finds what runs in the end: a script's interpreter is the translator's to find, once.
fn resolved(name: &OsStr) -> Result<PathBuf, Error> {
    let refused = |why: &str| refused(name, why);
    let path = program(name)?;
    let mut head = Vec::new();
    let file = fs::File::open(&path).map(|file| file.take(HEAD));
    file.and_then(|mut file| file.read_to_end(&mut head)).map_err(|e| Error::io(&path, e))?;
    if head.starts_with(b"#!") {
        return Err(refused("a script: name its interpreter first, as in sh script.sh"));
    }
    if elf::is_x86_64(&head) { Ok(path) } else { Err(refused("no program for x86-64")) }
}

fn refused(name: &OsStr, why: &str) -> Error {
    Error::Request(format!("{}: {why}", name.to_string_lossy()))
}

/// Finds the program that is to be recorded.
///
/// # Errors
/// There is none of this name.
pub(crate) fn program(name: &OsStr) -> Result<PathBuf, Error> {
    found(name).ok_or_else(|| refused(name, "no such program"))
}

/// Finds a program as a shell does.
fn found(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let name = Path::new(name.as_ref());
    let is_program = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.components().count() > 1 {
        return Some(name.to_path_buf()).filter(is_program);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program)
}
