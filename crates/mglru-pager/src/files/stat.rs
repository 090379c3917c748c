//! `memory.stat` and the event files, in the kernel's key names. What a pager does not know is
//! not there.

use std::fmt::Write;

use crate::error::PagerError;
use crate::group::Group;

/// Keys of `memory.stat` that have the name of their counter.
const KEYS: &[&str] = &[
    "anon",
    "file",
    "file_dirty",
    "file_writeback",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "pgscan",
    "pgsteal",
    "pswpin",
    "pswpout",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_proactive",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgsteal_proactive",
    "pgfault",
    "pgmajfault",
    "pgrefill",
    "pgactivate",
    "pgdeactivate",
    "pglazyfreed",
    "swpout_zero",
    "zswpin",
    "zswpout",
];

/// Keys of `memory.events`.
const EVENTS: &[&str] = &["low", "high", "max", "oom"];
/// Those that stay at zero: a pager refuses pages, and kills nobody.
const NEVER: &str = "oom_kill 0\noom_group_kill 0\n";
/// Lists keys of `memory.swap.events`, beside the group's names for them.
pub const SWAP_EVENTS: &[&str] = &["swap_fail"];

/// Returns the text of `memory.stat`.
pub fn memory(group: &Group) -> Result<String, PagerError> {
    events(group, KEYS)
}

/// Returns the text of `memory.events`.
pub fn memory_events(group: &Group) -> Result<String, PagerError> {
    Ok(events(group, EVENTS)? + NEVER)
}

/// Returns a line for each key.
pub fn events(group: &Group, keys: &[&str]) -> Result<String, PagerError> {
    let stat = group.stat()?;
    let mut text = String::new();
    for key in keys {
        let value = stat.get(key).expect("a group counts it");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {value}", key.trim_start_matches("swap_"));
    }
    Ok(text)
}
