//! Runs the next program of a process under the translator too, in place of the translator's own
//! way, which would run it untranslated.

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::format::{EXEC, OUTSIDE};
use crate::{elf, guest, pages, stream};

/// Says how this process was started: all that the next one needs.
pub struct Start {
    /// Names the translator.
    pub translator: CString,
    /// Holds the library's path.
    pub library: String,
    /// Names the socket.
    pub socket: String,
    /// Holds log2 of a window.
    pub window: u32,
}

/// Holds the start, set once, when QEMU loads the library.
pub static START: OnceLock<Start> = OnceLock::new();

/// Most interpreters of scripts behind one another.
const INTERPRETERS: usize = 4;
/// Bytes of a file that say what it is.
const HEAD: usize = 256;
const EXECUTABLE: c_int = 1;
const SET_ID: u32 = 0o6000;

unsafe extern "C" {
    fn execve(path: *const c_char, args: *const *const c_char, env: *const *const c_char) -> c_int;
    fn access(path: *const c_char, mode: c_int) -> c_int;
    fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
}

/// A `sigset_t`: room for 1024 signals.
type SignalSet = [u64; 16];
const SIG_SETMASK: c_int = 2;

/// Sees `execve` before it is made. Returns if the program cannot be recorded, or does not run.
pub fn replace(path: u64, args: u64, env: u64) {
    // SAFETY: the kernel reads the same; a wrong address ends this program, which would go on.
    let (path, args, env) = unsafe { (guest::text(path), guest::texts(args), guest::texts(env)) };
    // SAFETY: the text ends with a zero byte.
    if unsafe { access(path.as_ptr(), EXECUTABLE) } != 0 {
        return;
    }
    let Some(program) = translatable(&path, args) else {
        return stream::last(OUTSIDE, path.to_bytes());
    };
    let Some(words) = command(&program) else { return };
    stream::last(EXEC, path.to_bytes());
    let (words, env) = (pointers(&words), pointers(&env));
    // QEMU blocks every signal meanwhile, and the next program would inherit that: nothing but
    // SIGKILL would end it.
    let (none, mut before): (SignalSet, SignalSet) = ([0; 16], [0; 16]);
    // SAFETY: texts and lists end as they must, sets have the size of `sigset_t`; execve returns if
    // it fails, and then QEMU goes on as it was.
    unsafe {
        sigprocmask(SIG_SETMASK, &none, &mut before);
        execve(words[0], words.as_ptr(), env.as_ptr());
        sigprocmask(SIG_SETMASK, &before, &mut [0; 16]);
    }
}

fn pointers(words: &[CString]) -> Vec<*const c_char> {
    words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
}

/// A program that the translator can run.
struct Program {
    path: CString,
    /// With the name that the program sees first.
    args: Vec<CString>,
}

/// Finds the program that runs in the end: that of a script is its interpreter.
fn translatable(path: &CStr, args: Vec<CString>) -> Option<Program> {
    let mut program = Program { path: path.to_owned(), args };
    for _ in 0..INTERPRETERS {
        let head = head(&program.path)?;
        if let Some(line) = head.strip_prefix(b"#!") {
            program = interpreted(line, program)?;
            continue;
        }
        return elf::is_x86_64(&head).then_some(program);
    }
    None
}

fn head(path: &CStr) -> Option<Vec<u8>> {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let file = File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    let mut head = Vec::new();
    file.take(HEAD as u64).read_to_end(&mut head).ok()?;
    // The translator would not change the user.
    let changes_user = meta.permissions().mode() & SET_ID != 0;
    (meta.is_file() && !changes_user && meta.size() > 0).then_some(head)
}

fn interpreted(line: &[u8], script: Program) -> Option<Program> {
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let (path, word) = match line.iter().position(u8::is_ascii_whitespace) {
        Some(at) => (&line[..at], Some(line[at..].trim_ascii())),
        None => (line, None),
    };
    let path = CString::new(path).ok()?;
    let mut args = vec![path.clone()];
    args.extend(word.and_then(|word| CString::new(word).ok()));
    args.push(script.path);
    args.extend(script.args.into_iter().skip(1));
    Some(Program { path, args })
}

fn command(program: &Program) -> Option<Vec<CString>> {
    let start = START.get()?;
    let now = pages::NOW.load(Ordering::Relaxed);
    let Start { library, socket, window, .. } = start;
    let plugin = format!("{library},socket={socket},window={window},now={now}");
    let mut words = vec![start.translator.clone(), c"-plugin".into()];
    words.push(CString::new(plugin).ok()?);
    if let Some(name) = program.args.first() {
        words.extend([c"-0".into(), name.clone()]);
    }
    words.push(program.path.clone());
    words.extend(program.args.iter().skip(1).cloned());
    Some(words)
}
