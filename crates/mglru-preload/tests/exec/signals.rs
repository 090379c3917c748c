//! SIGBUS shared between the pager and the program.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use crate::{PAGE, PAGES, is_managed, is_stamped, map, open, parent, parent_with, stamp};

static SEEN: AtomicUsize = AtomicUsize::new(0);

/// Puts a page where there was none, as a program does that bears with files that shrink.
extern "C" fn mend(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    SEEN.fetch_add(1, Ordering::Relaxed);
    let (prot, flags) =
        (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    // SAFETY: replaces the page that failed, which is this test's.
    unsafe {
        let page = (*info).si_addr() as usize & !(PAGE - 1);
        libc::syscall(libc::SYS_mmap, page, PAGE, prot, flags, -1, 0);
    }
}

/// The handler in place.
fn handler() -> usize {
    // SAFETY: asks only.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut now), 0);
        now.sa_sigaction
    }
}

fn set_handler(signal: libc::c_int, function: usize, flags: libc::c_int) {
    // SAFETY: a handler of this test's, which may run at any time.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (function, flags);
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

fn all_but(signal: Option<libc::c_int>) -> libc::sigset_t {
    // SAFETY: a set of this function's own.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        signal.map(|signal| libc::sigdelset(&mut all, signal));
        all
    }
}

fn block_all() {
    let all = all_but(None);
    // SAFETY: a set of this function's own.
    assert_eq!(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut()) }, 0);
}

/// A page of a file that has none.
fn beyond_the_end() -> *const u8 {
    let empty = tempfile::tempfile_in(".").unwrap();
    let (none, fd) = (std::ptr::null_mut(), std::os::fd::AsRawFd::as_raw_fd(&empty));
    // SAFETY: a new mapping.
    unsafe { libc::mmap(none, PAGE, libc::PROT_READ, libc::MAP_SHARED, fd, 0).cast() }
}

#[test]
fn the_programs_handler_gets_what_is_not_the_pagers_and_blocks_nothing() {
    let name = "signals::the_programs_handler_gets_what_is_not_the_pagers_and_blocks_nothing";
    if let Some((file, _)) = parent_with(name, "sigbus") {
        return assert!(is_stamped(&std::fs::read(file.path()).unwrap(), 0x29));
    }
    let Some(file) = open() else { return };
    let before = handler();
    let memory = map(&file);
    assert!(is_managed());
    assert_eq!(handler(), before, "the program sees its own");
    set_handler(libc::SIGBUS, mend as *const () as usize, libc::SA_SIGINFO);
    assert_eq!(handler(), mend as *const () as usize);
    block_all();
    stamp(memory, 0x29);
    assert!(is_stamped(memory, 0x29));
    assert_eq!(SEEN.load(Ordering::Relaxed), 0, "pages of the pager's are its own");
    assert_eq!(memory.len(), PAGES * PAGE);
    // SAFETY: the handler makes the page readable.
    assert_eq!(unsafe { beyond_the_end().read_volatile() }, 0);
    assert_eq!(SEEN.load(Ordering::Relaxed), 1);
}

#[test]
fn without_a_handler_of_its_own_the_program_ends() {
    let name = "signals::without_a_handler_of_its_own_the_program_ends";
    if parent_with(name, "sigbus").is_some() {
        return;
    }
    let Some(file) = open() else { return };
    stamp(map(&file), 1);
    // SAFETY: the child ends at once, by the load or after it.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
            beyond_the_end().read_volatile();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGBUS, "{status}");
    }
}

static PIPE: AtomicI32 = AtomicI32::new(-1);

/// As programs do that wait for descriptors and signals at once.
extern "C" fn write_to_pipe(_signal: libc::c_int) {
    // SAFETY: one byte of a constant; a full pipe wakes its reader already.
    unsafe { libc::write(PIPE.load(Ordering::Relaxed), b"s".as_ptr().cast(), 1) };
    SEEN.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_signal_handler_may_write_while_its_thread_is_in_a_call() {
    let name = "signals::a_signal_handler_may_write_while_its_thread_is_in_a_call";
    if parent(name).is_some() {
        return;
    }
    let Some(file) = open() else { return };
    let memory = map(&file);
    stamp(memory, 3);
    let (mut ends, done) = ([0; 2], AtomicBool::new(false));
    // SAFETY: a pipe and a handler of this test's. Should it wait for itself, the alarm ends it.
    let own = unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK), 0);
        PIPE.store(ends[1], Ordering::Relaxed);
        set_handler(libc::SIGUSR1, write_to_pipe as *const () as usize, libc::SA_RESTART);
        libc::alarm(600);
        libc::pthread_self()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: the thread outlives the scope.
                unsafe { libc::pthread_kill(own, libc::SIGUSR1) };
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        });
        let mut content = [0; PAGE];
        for page in 0..PAGES {
            memory[page * PAGE] = 1;
            file.read_exact_at(&mut content, (page * PAGE) as u64).unwrap();
            assert_eq!(content[0], 1);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(SEEN.load(Ordering::Relaxed) > 100);
}

static MEMORY: AtomicUsize = AtomicUsize::new(0);

/// Touches every page, of which most are not there.
extern "C" fn touch(_signal: libc::c_int) {
    let memory = MEMORY.load(Ordering::Relaxed) as *mut u8;
    for page in 0..PAGES {
        // SAFETY: the mapping of the test, which lasts.
        unsafe { memory.add(page * PAGE).write_volatile(page as u8) };
    }
    SEEN.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" {
    fn __ppoll_chk(
        fds: *mut libc::pollfd,
        n: libc::nfds_t,
        at_most: *const libc::timespec,
        set: *const libc::sigset_t,
        len: libc::size_t,
    ) -> libc::c_int;
}

#[test]
fn a_handler_may_touch_memory_whatever_its_thread_waits_with() {
    let name = "signals::a_handler_may_touch_memory_whatever_its_thread_waits_with";
    if parent_with(name, "sigbus").is_some() {
        return;
    }
    let Some(file) = open() else { return };
    MEMORY.store(map(&file).as_mut_ptr() as usize, Ordering::Relaxed);
    assert!(is_managed());
    set_handler(libc::SIGUSR1, touch as *const () as usize, 0);
    block_all();
    let (set, none) = (all_but(Some(libc::SIGUSR1)), std::ptr::null_mut::<libc::fd_set>());
    // SAFETY: nothing is waited for but the signal, and nothing is written but one event.
    unsafe {
        let epoll = libc::epoll_create1(0);
        let mut event: libc::epoll_event = std::mem::zeroed();
        let event = &raw mut event;
        let waits: [&dyn Fn() -> libc::c_int; 6] = [
            &|| libc::sigsuspend(&set),
            &|| libc::ppoll(none.cast(), 0, none.cast(), &set),
            &|| __ppoll_chk(none.cast(), 0, none.cast(), &set, 0),
            &|| libc::pselect(0, none, none, none, none.cast(), &set),
            &|| libc::epoll_pwait(epoll, event, 1, -1, &set),
            &|| libc::epoll_pwait2(epoll, event, 1, none.cast(), &set),
        ];
        for wait in waits {
            libc::raise(libc::SIGUSR1);
            assert_eq!(wait(), -1, "interrupted");
        }
    }
    assert_eq!(SEEN.load(Ordering::Relaxed), 6);
}
