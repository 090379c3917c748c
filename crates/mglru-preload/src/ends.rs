//! Every way out of the process that a library can see. Before it is taken, children of forks are
//! given what this process still owes them, and stores to managed files are written back.

use std::arch::naked_asm;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_char, c_int, c_long, c_void};
use mglru_pager::{held, threads};

use crate::next::{Next, next};
use crate::table::{any, table};
use crate::{close, heap, limits, trace_events, unmanaged};

type Exit = unsafe extern "C" fn(c_int) -> !;
type Abort = unsafe extern "C" fn() -> !;
type Strings = *const *const c_char;
type Exec = unsafe extern "C" fn(*const c_char, Strings) -> c_int;
type ExecWith = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
type ExecFile = unsafe extern "C" fn(c_int, Strings, Strings) -> c_int;
type ExecAt = unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int;
type Kill = unsafe extern "C" fn(libc::pid_t, c_int) -> c_int;
type Raise = unsafe extern "C" fn(c_int) -> c_int;

/// The process whose memory the pager manages.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Notes that the calling process is the one whose memory is managed.
pub fn note_process() {
    // SAFETY: returns a number.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Release);
}

/// Tells whether the calling process is that one: a child of vfork(2) shares its memory, and ends
/// alone.
pub fn is_managed_process() -> bool {
    // SAFETY: returns a number.
    PROCESS.load(Ordering::Acquire) == unsafe { libc::getpid() }
}

/// Finishes what must not be lost when the process ends, or becomes another program.
pub fn finish() {
    if threads::is_pager() || !is_managed_process() {
        return;
    }
    unmanaged::say_at_end();
    heap::finish();
    if any() {
        table().write_back();
    }
}

/// Finishes when the process is sure to end.
fn finish_last() {
    finish();
    if !threads::is_pager() && is_managed_process() {
        trace_events::end();
    }
}

/// Finishes at exit(3), after which nothing of the program's runs.
pub extern "C" fn at_exit() {
    if is_managed_process() {
        unmanaged::say_at_end();
        heap::finish();
        table().finish();
        trace_events::end();
    }
}

macro_rules! exits {
    ($($name:ident;)*) => {$(
        /// Stands in for the function of this name, which runs no handlers.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(code: c_int) -> ! {
            finish_last();
            next!($name(code) as Exit)
        }
    )*};
}

exits! {
    _exit;
    _Exit;
}

/// Stands in for abort(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abort() -> ! {
    finish();
    next!(abort() as Abort)
}

macro_rules! execs {
    ($($name:ident($($arg:ident: $of:ty),*) as $type:ty;)*) => {$(
        /// Stands in for the function of this name: mappings end with the program.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $of),*) -> c_int {
            finish();
            limits::exec(|| next!($name($($arg),*) as $type))
        }
    )*};
}

execs! {
    execv(path: *const c_char, args: Strings) as Exec;
    execvp(file: *const c_char, args: Strings) as Exec;
    execve(path: *const c_char, args: Strings, env: Strings) as ExecWith;
    execvpe(file: *const c_char, args: Strings, env: Strings) as ExecWith;
    fexecve(fd: c_int, args: Strings, env: Strings) as ExecFile;
    execveat(at: c_int, path: *const c_char, args: Strings, env: Strings, flags: c_int) as ExecAt;
}

/// Tells whether a signal to `pid` ends this process at once.
fn kills_us(pid: libc::pid_t, signal: c_int) -> bool {
    // SAFETY: returns numbers.
    let (me, group) = unsafe { (libc::getpid(), libc::getpgrp()) };
    signal == libc::SIGKILL && [me, 0, -group].contains(&pid)
}

/// Stands in for kill(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kill(pid: libc::pid_t, signal: c_int) -> c_int {
    if kills_us(pid, signal) {
        finish();
    }
    next!(kill(pid, signal) as Kill)
}

/// Stands in for raise(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn raise(signal: c_int) -> c_int {
    if signal == libc::SIGKILL {
        finish();
    }
    next!(raise(signal) as Raise)
}

/// Answers a system call as the kernel does one on a descriptor that is not open.
extern "C" fn not_open() -> c_long {
    c_long::from(close::not_open())
}

/// Acts before a system call that the program makes by syscall(2), and says where it goes on.
extern "C" fn before_syscall(number: c_long, first: c_long, second: c_long) -> *mut c_void {
    static NEXT: Next = Next::new(c"syscall");
    let at = |of: c_long| !threads::is_pager() && held::is_held(of as c_int);
    match number {
        libc::SYS_exit_group => finish_last(),
        libc::SYS_execve | libc::SYS_execveat => finish(),
        libc::SYS_kill if kills_us(first as libc::pid_t, second as c_int) => finish(),
        libc::SYS_close if at(first) => return not_open as *mut c_void,
        libc::SYS_dup2 | libc::SYS_dup3 if at(first) || at(second) => {
            return not_open as *mut c_void;
        }
        _ => {}
    }
    NEXT.address()
}

/// Stands in for syscall(2): goes on where [`before_syscall`] says, with arguments as they came.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    naked_asm!(
        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
        "call {before}",
        "mov r11, rax",
        "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "jmp r11",
        before = sym before_syscall,
    )
}

/// Lists the arguments of a function that takes any number: five came in registers, the others in
/// memory.
///
/// # Safety
/// Both point to as many as the caller gave, the last one null.
unsafe fn listed(first: Strings, others: Strings) -> Vec<*const c_char> {
    let nth = |n: usize| match n {
        // SAFETY: as the caller promises.
        0..5 => unsafe { *first.add(n) },
        // SAFETY: the list goes on there, and ends with null, as the caller promises.
        _ => unsafe { *others.add(n - 5) },
    };
    let mut list = Vec::new();
    while !nth(list.len()).is_null() {
        list.push(nth(list.len()));
    }
    list.push(std::ptr::null());
    list
}

unsafe extern "C" fn exec_list(path: *const c_char, first: Strings, others: Strings) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { execv(path, listed(first, others).as_ptr()) }
}

unsafe extern "C" fn exec_file(file: *const c_char, first: Strings, others: Strings) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { execvp(file, listed(first, others).as_ptr()) }
}

unsafe extern "C" fn exec_with(path: *const c_char, first: Strings, others: Strings) -> c_int {
    // SAFETY: the caller's own arguments; the environment comes behind the null.
    unsafe {
        let list = listed(first, others);
        let env = match list.len() {
            n @ 0..5 => *first.add(n),
            n => *others.add(n - 5),
        };
        execve(path, list.as_ptr(), env.cast())
    }
}

/// Defines functions that take any number of strings: each calls `with` with its first argument,
/// where those are that came in registers, and where the others are.
macro_rules! lists {
    ($($name:ident: $with:ident;)*) => {$(
        /// Stands in for the function of this name.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "push r9", "push r8", "push rcx", "push rdx", "push rsi",
                "mov rsi, rsp",
                "lea rdx, [rsp + 48]",
                "call {with}",
                "add rsp, 40",
                "ret",
                with = sym $with,
            )
        }
    )*};
}

lists! {
    execl: exec_list;
    execlp: exec_file;
    execle: exec_with;
}
