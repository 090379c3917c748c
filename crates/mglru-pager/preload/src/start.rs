//! Before the program: its pager starts, if its heap is to be managed, before any memory is.

use mglru_pager::held;
use mglru_pager::own::{self, as_own};

use crate::table::{say, table};
use crate::{ends, fatal, fork, heap, settings, signals};

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    held::start();
    settings::least();
    settings::manages_shared_files();
    signals::start();
    ends::note_process();
    own::set_allocates_apart();
    if settings::fork().is_some() || settings::manages_shared_files() {
        as_own(fatal::start);
    }
    let Some(policy) = settings::fork() else { return };
    fork::prepare();
    let started = as_own(|| heap::start(|| table().pager(), policy));
    if let Err(error) = started {
        say("heaps stay with the kernel", &error);
    }
}
