//! A pager's policy thread while it runs, and what is the same for all of its arenas.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::account::Account;
use crate::engine::FaultEngine;
use crate::policy::Shared;

/// Sets the least budget that leaves room for the pager itself, bytes.
pub const LEAST_MAX: u64 = 4 << 20;

/// Keeps the policy thread alive.
pub struct Running {
    shared: Arc<Shared>,
    root: Arc<Account>,
    /// The engine that serves faults.
    faults: FaultEngine,
    /// The kernel's accessed bits are used, if it keeps any.
    kept_bits: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Running {
    /// Takes over a policy thread that was started.
    pub fn new(
        (shared, thread): (Arc<Shared>, JoinHandle<()>),
        root: Arc<Account>,
        faults: FaultEngine,
        kept_bits: bool,
    ) -> Self {
        Self { shared, root, faults, kept_bits, thread: Mutex::new(Some(thread)) }
    }

    /// Returns the way to the policy thread.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns the account of the group above all others.
    pub fn root(&self) -> &Arc<Account> {
        &self.root
    }

    /// Returns the engine that serves faults, and whether the kernel's accessed bits are used.
    pub fn faults(&self) -> (FaultEngine, bool) {
        (self.faults, self.kept_bits)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A policy thread that panicked has said so.
        thread.map(JoinHandle::join);
    }
}
