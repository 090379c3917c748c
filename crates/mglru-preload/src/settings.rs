//! Reads from the environment what the launcher asked for.

use std::sync::OnceLock;

use mglru_pager::{FaultEngine, ForkPolicy, Pager, PagerError, PagerOptions, SwapOptions, launch};

use crate::limits;
use crate::table::say;

/// Returns the length below which a mapping is left to the kernel, bytes.
pub fn least() -> usize {
    static LEAST: OnceLock<usize> = OnceLock::new();
    *LEAST.get_or_init(|| number(launch::ENV_LEAST).map_or(launch::LEAST, |n| n as usize))
}

/// Opens the pager of this process.
pub fn open() -> Result<Pager, PagerError> {
    let mut options = PagerOptions::new();
    if let Some(bytes) = number(launch::ENV_MAX) {
        options = options.memory_max(bytes);
    }
    if let Some(bytes) = number(launch::ENV_HIGH) {
        options = options.memory_high(bytes);
    }
    options.fault_engine(faults()).swap(swap()).open()
}

/// Returns the bytes of managed memory that may be locked: the rest of the budget must hold what is
/// not.
pub fn most_locked() -> usize {
    number(launch::ENV_MAX).map_or(usize::MAX, |max| max as usize / 2)
}

/// Returns the engine that serves faults of file mappings.
pub fn faults() -> FaultEngine {
    static FAULTS: OnceLock<FaultEngine> = OnceLock::new();
    *FAULTS.get_or_init(|| match std::env::var(launch::ENV_FAULTS).as_deref() {
        Ok("sigbus") => FaultEngine::Sigbus,
        _ => FaultEngine::Thread,
    })
}

/// Tells whether shared mappings of files are managed. Unless the launcher says so they stay with
/// the kernel, which keeps stores however the program ends and shows them to other processes.
pub fn manages_shared_files() -> bool {
    static SHARED: OnceLock<bool> = OnceLock::new();
    *SHARED.get_or_init(|| std::env::var(launch::ENV_SHARED_FILES).as_deref() == Ok("1"))
}

/// A quarter of the budget compressed in memory, what does not fit in a file. The pool is paid
/// from the budget: larger, it would leave too little for what is in use.
fn swap() -> SwapOptions {
    let pool = number(launch::ENV_MAX).map_or(0, |max| max / 4);
    let options = SwapOptions::in_memory(pool);
    let Some(bytes) = number(launch::ENV_SWAP).filter(|&bytes| bytes > 0) else { return options };
    let most = limits::of_file(bytes);
    if most < bytes {
        let why = format!("files are limited to {most} bytes (ulimit -f)");
        say("the swap file is smaller", &why);
    }
    let folder = std::env::var_os(launch::ENV_SWAP_DIR).unwrap_or(launch::SWAP_DIR.into());
    options.with_file_in(std::path::Path::new(&folder), most)
}

/// Returns where this process's socket is to be, if the launcher offers one.
pub fn control() -> Option<std::path::PathBuf> {
    let prefix = std::env::var_os(launch::ENV_CONTROL)?;
    Some(launch::socket_of(std::path::Path::new(&prefix), std::process::id()))
}

/// Tells when children of forks get their pages; `None`: heaps stay with the kernel.
pub fn fork() -> Option<ForkPolicy> {
    match std::env::var(launch::ENV_FORK).ok()?.as_str() {
        "serve" => Some(ForkPolicy::Serve),
        "copy" => Some(ForkPolicy::Copy),
        _ => None,
    }
}

/// The launcher wrote it: what is not a number is not set.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
