//! Before the program: its pager starts, if its heap is to be managed, before any memory is.

use mglru_pager::held;
use mglru_pager::threads::{self, as_pager};

use crate::table::{say, table};
use crate::{ends, fatal, fork, heap, last, limits, settings, signals, unmanaged};

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    held::start();
    settings::least();
    settings::manages_shared_files();
    signals::start();
    ends::note_process();
    last::first_begins();
    threads::set_allocates_apart();
    fork::prepare();
    let room = as_pager(limits::make_room);
    // Its threads, as the pager's, start before the heap is used.
    unmanaged::start();
    as_pager(fatal::start);
    start_heap(room);
    unmanaged::started();
}

fn start_heap(room: Result<limits::Before, String>) {
    let Some(policy) = settings::fork() else { return };
    let started = as_pager(|| {
        let before = room?;
        let started = heap::start(|| table().pager(), policy);
        before.settle();
        started
    });
    if let Err(error) = started {
        say("heaps stay with the kernel", &error);
    }
}
